package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// isTerminal tells whether a person looks at what is written, for all that is known.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// statusLine is the last line of a terminal, which changes. Nothing of it is written to anything else. Its methods are
// safe for concurrent use.
type statusLine struct {
	mu       sync.Mutex // guards what follows
	w        io.Writer
	terminal bool
	text     string
}

func newStatusLine(w io.Writer) *statusLine { return &statusLine{w: w, terminal: isTerminal(w)} }

// set changes it; empty takes it away.
func (s *statusLine) set(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
	s.drawLocked()
}

// What terminals understand. What is too long for one is cut off rather than wrapped, or it could not be erased.
const (
	eraseLine = "\r\x1b[K"
	cutOff    = "\x1b[?7l"
	wrap      = "\x1b[?7h"
)

func (s *statusLine) drawLocked() {
	if s.terminal {
		fmt.Fprint(s.w, eraseLine, cutOff, s.text, wrap)
	}
}

// print writes whole lines above it.
func (s *statusLine) print(lines string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		lines = eraseLine + lines
	}
	_, err := io.WriteString(s.w, lines)
	s.drawLocked()
	return err
}

// every sets it to what now says, again and again, until stop is called, which takes it away.
func (s *statusLine) every(d time.Duration, now func() string) (stop func()) {
	if !s.terminal {
		return func() {}
	}
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			s.set(now())
			select {
			case <-end:
				s.set("")
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(end)
		<-done
	}
}

const (
	progressEvery = 200 * time.Millisecond
	progressWidth = 20
)

// progressBar draws how much is done, 0 to 1.
func progressBar(done float64) string {
	full := int(done * progressWidth)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", progressWidth-full) + "]"
}
