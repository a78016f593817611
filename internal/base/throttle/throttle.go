// Package throttle keeps a log readable when the same thing happens thousands of times a second: it writes the first
// lines of each kind in a period, and then one line that counts the others.
//
// Lines that must all be written go through All.
package throttle

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// First is how many lines of a kind it writes in a Period.
	First = 60

	// Period begins with the first line of a kind, and ends with the line that counts those that were left out, if any.
	Period = time.Minute

	// maxKinds is how many kinds it distinguishes at a time. The lines of further kinds are counted together.
	maxKinds = 1000

	// maxPlaces is how many kinds it distinguishes by where their lines come from at a time, beside those. The lines of
	// further places are counted by the rest of their kind.
	maxPlaces = 1000
)

// Log writes lines to a logger, at most First of each kind in a Period. Make it with New or NewOnce. A nil Log writes
// nothing. Its methods are safe for concurrent use.
type Log struct {
	log   *slog.Logger
	first int // lines of a kind in a period

	mu     sync.Mutex // guards the rest
	kinds  map[kind]*count
	placed int // kinds with a place
}

// kind is what lines that are counted together have in common.
type kind struct {
	level         slog.Level
	message, more string
	place         string // empty: any
}

// count holds the lines of a kind in the current period.
type count struct {
	written, leftOut int
	end              *time.Timer
}

// New returns a Log that writes to a logger.
func New(log *slog.Logger) *Log { return &Log{log: log, first: First, kinds: map[kind]*count{}} }

// NewOnce returns a Log that writes one line of each kind in a Period, instead of First.
func NewOnce(log *slog.Logger) *Log { return &Log{log: log, first: 1, kinds: map[kind]*count{}} }

// Write writes a line, unless the period has First lines of its kind already. Lines with the same level, message and
// more are of one kind. more may be empty, and must be one of few values: not text that callers send.
func (l *Log) Write(level slog.Level, more, message string, args ...any) {
	l.WriteFrom("", level, more, message, args...)
}

// WriteFrom is Write for lines that are counted by where they come from, too, so that one place hides no other: an
// address.
func (l *Log) WriteFrom(place string, level slog.Level, more, message string, args ...any) {
	if l == nil || !l.log.Enabled(context.Background(), level) {
		return
	}
	if l.due(kind{level, message, more, place}) {
		l.log.Log(context.Background(), level, message, args...)
	}
}

// All writes a line, whatever came before.
func (l *Log) All(level slog.Level, message string, args ...any) {
	if l != nil {
		l.log.Log(context.Background(), level, message, args...)
	}
}

// due counts a line, and reports whether to write it.
func (l *Log) due(k kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.kinds[k]
	if !ok && k.place != "" && l.placed >= maxPlaces {
		k.place = ""
		c, ok = l.kinds[k]
	}
	if !ok && k.place == "" && len(l.kinds)-l.placed >= maxKinds {
		k = kind{level: k.level, message: "lines of many kinds"}
		c, ok = l.kinds[k]
	}
	if !ok {
		c = &count{}
		c.end = time.AfterFunc(Period, func() { l.end(k, c) })
		l.kinds[k] = c
		if k.place != "" {
			l.placed++
		}
	}
	if c.written < l.first {
		c.written++
		return true
	}
	c.leftOut++
	return false
}

// end ends a period of a kind.
func (l *Log) end(k kind, c *count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kinds[k] == c { // else Flush was faster
		l.endLocked(k, c)
	}
}

func (l *Log) endLocked(k kind, c *count) {
	c.end.Stop()
	delete(l.kinds, k)
	if k.place != "" {
		l.placed--
	}
	if c.leftOut > 0 {
		l.log.Log(context.Background(), k.level, "lines were left out: there were too many", "of", k.message, "kind",
			strings.TrimSpace(k.more+" "+k.place), "left_out", c.leftOut)
	}
}

// Flush ends all periods now, and writes the lines that count what was left out.
func (l *Log) Flush() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, c := range l.kinds {
		l.endLocked(k, c)
	}
}
