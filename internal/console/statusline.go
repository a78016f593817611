// Package console prints for people: the last line of a terminal, which changes while a command works, and numbers whose
// digits are grouped. It knows nothing of what is shown.
package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// IsTerminal reports whether a person is at the other end of a file that is read or written, as far as is known.
func IsTerminal(file any) bool {
	f, ok := file.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// StatusLine is the last line of a terminal, which changes. Nothing of it is written to anything else. Its methods are
// safe for concurrent use.
type StatusLine struct {
	mu       sync.Mutex // guards what follows
	w        io.Writer
	terminal bool
	text     string
}

// NewStatusLine returns one that is empty. Lines that are printed go to w, and it too where w is a terminal.
func NewStatusLine(w io.Writer) *StatusLine { return &StatusLine{w: w, terminal: IsTerminal(w)} }

// Terminal tells whether the line is shown, because a person looks.
func (s *StatusLine) Terminal() bool { return s.terminal }

// Set changes it; empty takes it away.
func (s *StatusLine) Set(text string) {
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

func (s *StatusLine) drawLocked() {
	if s.terminal {
		fmt.Fprint(s.w, eraseLine, cutOff, s.text, wrap)
	}
}

// Print writes whole lines above it.
func (s *StatusLine) Print(lines string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		lines = eraseLine + lines
	}
	_, err := io.WriteString(s.w, lines)
	s.drawLocked()
	return err
}

// Progress sets it to what now says, five times a second, until stop is called, which takes it away.
func (s *StatusLine) Progress(now func() string) (stop func()) {
	if !s.terminal {
		return func() {}
	}
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			s.Set(now())
			select {
			case <-end:
				s.Set("")
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

// Bar draws how much is done, 0 to 1.
func Bar(done float64) string {
	full := int(done * progressWidth)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", progressWidth-full) + "]"
}
