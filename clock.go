package firn

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Clock tells a generator the time, in nanoseconds since 1970-01-01T00:00:00Z. It must
// be safe for concurrent use. It may stand still, jump and go back: a generator then
// waits, and never repeats an ID.
type Clock interface{ Now() int64 }

// DefaultMaxStep is how far ahead a wall clock may step and still be followed without
// asking anybody: 10 s.
const DefaultMaxStep = 10 * time.Second

// SteadyClock is wall time that never goes back: the wall is read once, carried forward by
// the monotonic clock, and compared with the wall again once a second, by whoever asks for
// the time then (there is no goroutine).
//
//   - A wall that has run ahead is followed at once, by up to MaxStep. A greater step is
//     a wrong clock or a machine that was suspended; it is not followed until Follow is called.
//   - A wall that has fallen back is approached by running slower, by an eighth, until it
//     has caught up. A step back of 10 s is worked off in 80 s.
//
// A SteadyClock is made by NewSteadyClock and is safe for concurrent use.
type SteadyClock struct {
	start   time.Time                 // monotonic readings count from here
	source  func() (wall, mono int64) // nil: package time
	maxStep int64
	course  atomic.Pointer[course]
	mu      sync.Mutex // held while comparing with the wall, and guards what follows
	apart   int64      // how far the wall and the monotonic clock were apart at the last comparison

	ahead, back atomic.Uint64 // steps of the wall
}

// course is how the clock runs from one comparison with the wall to the next. The
// monotonic readings and times are in nanoseconds.
type course struct {
	from int64 // the monotonic reading at which it begins
	time int64 // what the clock shows at from
	slow bool  // from there on it runs an eighth slower
	next int64 // the monotonic reading of the next comparison
}

const (
	compareEvery = int64(time.Second)

	// A slow course begins a little after it is decided on, so that nobody has yet
	// read a time past its beginning.
	slowsDownIn = int64(10 * time.Millisecond)
)

func (c *course) at(mono int64) int64 {
	passed := mono - c.from
	if c.slow && passed > 0 {
		passed -= passed >> 3
	}
	return c.time + passed
}

// NewSteadyClock returns a clock that shows the wall time of now. It follows steps ahead of
// up to maxStep by itself; zero means DefaultMaxStep.
func NewSteadyClock(maxStep time.Duration) *SteadyClock {
	return newSteadyClock(maxStep, nil)
}

// NewSteadyClockFrom is NewSteadyClock over readings other than those of package time, for
// tests: source returns the wall time in nanoseconds since 1970 and a monotonic time
// in nanoseconds since any instant, read at the same moment.
func NewSteadyClockFrom(maxStep time.Duration, source func() (wall, mono int64)) *SteadyClock {
	return newSteadyClock(maxStep, source)
}

func newSteadyClock(maxStep time.Duration, source func() (wall, mono int64)) *SteadyClock {
	if maxStep == 0 {
		maxStep = DefaultMaxStep
	}
	c := &SteadyClock{start: time.Now(), source: source, maxStep: int64(maxStep)}
	wall, mono := c.read()
	c.course.Store(&course{from: mono, time: wall, next: mono + compareEvery})
	c.apart = wall - mono
	return c
}

// Now returns the time in nanoseconds since 1970-01-01T00:00:00Z.
func (c *SteadyClock) Now() int64 {
	var mono int64
	if c.source == nil {
		mono = int64(time.Since(c.start))
	} else {
		_, mono = c.source()
	}
	if course := c.course.Load(); mono < course.next {
		return course.at(mono)
	}
	return c.compareAndRead(mono)
}

func (c *SteadyClock) compareAndRead(mono int64) int64 {
	if c.mu.TryLock() {
		defer c.mu.Unlock()
		c.compareLocked(c.maxStep)
	}
	return c.course.Load().at(mono)
}

// Ahead compares with the wall and returns how far it is ahead of this clock if that
// is a step that was not followed, which is to say more than MaxStep; else zero.
func (c *SteadyClock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compareLocked(c.maxStep)
}

// Follow takes the wall's time if it is ahead, by however much. It never goes back.
func (c *SteadyClock) Follow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compareLocked(math.MaxInt64)
}

// compareLocked sets the course anew from a reading of the wall, and returns how far the
// wall is ahead if that is more than maxStep. c.mu is held.
func (c *SteadyClock) compareLocked(maxStep int64) time.Duration {
	wall, mono := c.read()
	c.countLocked(wall - mono)
	last := c.course.Load()
	next := course{from: mono, time: last.at(mono), next: mono + compareEvery}
	ahead := wall - next.time
	switch {
	case ahead > maxStep:
		c.course.Store(&next)
		return time.Duration(ahead)
	case ahead >= 0:
		next.time = wall
	case last.slow && mono < last.from:
		return 0 // it is about to slow down already
	default:
		if !last.slow {
			next.from += slowsDownIn
			next.time = last.at(next.from)
		}
		next.slow = true
		next.next = next.from + min(compareEvery, 8*min(-ahead, compareEvery))
	}
	c.course.Store(&next)
	return 0
}

func (c *SteadyClock) read() (wall, mono int64) {
	if c.source != nil {
		return c.source()
	}
	now := time.Now()
	return now.UnixNano(), int64(now.Sub(c.start))
}
