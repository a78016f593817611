// Package console formats output for people: a status line on a terminal, tables, colours, and numbers with
// grouped digits. It knows nothing about IDs.
package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// IsTerminal reports whether a file, or what a Plain writer writes to, is a terminal, as far as is known.
func IsTerminal(file any) bool {
	if p, ok := file.(plain); ok {
		file = p.to
	}
	f, ok := file.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// StatusLine is the last line of a terminal, which changes. Without a terminal it writes no status. Its methods
// are safe for concurrent use.
type StatusLine struct {
	mu       sync.Mutex // guards what follows
	w        io.Writer
	terminal bool
	text     string
}

// NewStatusLine returns an empty StatusLine. Printed lines go to w, and so does the status if w is a terminal, which
// gets both as a Plain writer writes them.
func NewStatusLine(w io.Writer) *StatusLine {
	terminal := IsTerminal(w)
	if p, ok := w.(plain); ok && terminal {
		w = p.to // for the control sequences
	}
	return &StatusLine{w: w, terminal: terminal}
}

// Terminal reports whether w is a terminal, which shows the status.
func (s *StatusLine) Terminal() bool { return s.terminal }

// Set changes the status; empty removes it.
func (s *StatusLine) Set(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = printable(text)
	s.drawLocked()
}

// Control sequences of terminals. The terminal cuts off a long status instead of wrapping it, or Set could not
// erase it.
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

// Print writes whole lines above the status.
func (s *StatusLine) Print(lines string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		lines = eraseLine + printable(lines)
	}
	_, err := io.WriteString(s.w, lines)
	s.drawLocked()
	return err
}

// Progress sets the status to the result of now, five times a second, until stop is called, which removes it.
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

// Bar draws a progress bar; done is 0 to 1.
func Bar(done float64) string {
	full := int(done * progressWidth)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", progressWidth-full) + "]"
}
