package client

import (
	"sync"
	"time"
)

// elapsed is a clock for the age of IDs. It shows the time since it was made by the monotonic clock, and adds the time
// for which that stood still: while the machine slept, or between a snapshot of its memory and the moment at which that
// was resumed. Only the wall clock has counted that, so each leap ahead of the wall clock is added. A wall clock that
// is put right makes IDs older, never younger.
type elapsed struct {
	read func() (monotonic, wall int64) // nanoseconds since any instant

	mu    sync.Mutex // guards what follows
	ahead int64      // of the wall clock, at the last reading
	stood int64      // how long the monotonic clock stood still
}

// leap is more than the clocks differ by where they only tick differently, in nanoseconds.
const leap = int64(time.Millisecond)

func newElapsed() *elapsed {
	began := time.Now()
	return &elapsed{read: func() (monotonic, wall int64) {
		now := time.Now()
		return int64(now.Sub(began)), int64(now.Round(0).Sub(began.Round(0)))
	}}
}

// Now returns the time in nanoseconds, never less than before.
func (e *elapsed) Now() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	monotonic, wall := e.read()
	if more := wall - monotonic - e.ahead; more > leap {
		e.stood += more
	}
	e.ahead = wall - monotonic
	return monotonic + e.stood
}
