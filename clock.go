package firn

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Clock tells a generator the time, in nanoseconds since 1970-01-01T00:00:00Z. It must
// be safe for concurrent use. It may stand still, jump and go back: the generator then
// waits, and never repeats an ID.
type Clock interface{ Now() int64 }

// DefaultMaxStep is how far ahead the wall may step for a SteadyClock to follow by
// itself: 10 s.
const DefaultMaxStep = 10 * time.Second

// SteadyClock is wall time that never goes back, but for Reset. It reads the wall once, carries that
// forward by the monotonic clock, and compares with the wall once a second, in the first
// call of Now that comes then; it has no goroutine.
//
//   - It follows a wall that has run ahead at once, by up to its maximum step. A greater
//     step means a wrong clock, a correction, or a machine that was suspended: Ahead
//     reports it, and the owner of the clock decides whether to call Follow.
//   - It approaches a wall that has fallen back by running an eighth slower until the wall
//     has caught up: a step back of 10 s takes 80 s. Where nobody depends on that, Reset
//     takes the wall's time at once.
//
// NewSteadyClock makes a SteadyClock; the zero value does not work. It is safe for
// concurrent use.
type SteadyClock struct {
	start   time.Time                 // monotonic readings count from here
	source  func() (wall, mono int64) // nil: package time
	maxStep int64
	course  atomic.Pointer[course]
	mu      sync.Mutex // held while comparing with the wall, and guards what follows
	apart   int64      // wall minus monotonic clock at the last comparison

	ahead, back atomic.Uint64 // how many steps of the wall were seen
}

// course is how the clock runs from one comparison with the wall to the next. The
// monotonic readings and times are in nanoseconds.
type course struct {
	from int64 // the monotonic reading at which it begins
	time int64 // what the clock shows at from
	slow bool  // it runs an eighth slower from there on
	next int64 // the monotonic reading of the next comparison
}

const (
	compareEvery = int64(time.Second)

	// A slow course begins a little later than the comparison, so that no caller has
	// read a time past its beginning yet.
	slowsDownIn = int64(10 * time.Millisecond)

	// The wall steps when it moves by this much against the monotonic clock from one
	// comparison to the next. Discipline by NTP that slews a clock moves both.
	stepAtLeast = 100 * time.Millisecond
)

func (c *course) at(mono int64) int64 {
	passed := mono - c.from
	if c.slow && passed > 0 {
		passed -= passed >> 3
	}
	return c.time + passed
}

// NewSteadyClock returns a clock that shows the current wall time. It follows steps ahead
// of up to maxStep by itself; zero means DefaultMaxStep.
func NewSteadyClock(maxStep time.Duration) *SteadyClock {
	return NewSteadyClockFrom(maxStep, nil)
}

// NewSteadyClockFrom is NewSteadyClock with another source of time than package time, for
// simulations: source returns the wall time in nanoseconds since 1970 and a monotonic
// time in nanoseconds since any instant, read at the same moment. Nil: package time.
func NewSteadyClockFrom(maxStep time.Duration, source func() (wall, mono int64)) *SteadyClock {
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

// Ahead compares with the wall and returns by how much it leads this clock, if that is
// more than the maximum step, which the clock does not follow by itself; otherwise zero.
func (c *SteadyClock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compareLocked(c.maxStep)
}

// Follow takes the wall's time if the wall is ahead, by however much. It never goes back.
func (c *SteadyClock) Follow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compareLocked(math.MaxInt64)
}

// Reset takes the wall's time, whichever way that lies. It is for an owner that makes no
// IDs by the clock now, and nothing else either that must not see it go back.
func (c *SteadyClock) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compareLocked(math.MaxInt64) // counts a step
	wall, mono := c.read()
	c.course.Store(&course{from: mono, time: wall, next: mono + compareEvery})
}

// Steps returns how often the wall was seen to step ahead and back, by 100 ms or more,
// since the clock was made. Each step counts once, whether the clock follows it or not.
// The clock sees steps when it compares with the wall: at most a second late while Now
// is called. A machine that was suspended has stepped ahead, too, where its monotonic
// clock stands still meanwhile, as on Linux.
func (c *SteadyClock) Steps() (ahead, back uint64) { return c.ahead.Load(), c.back.Load() }

// Offset returns by how much the wall leads this clock now; negative: it lags. It is
// within microseconds of zero unless the clock does not follow a step or still works
// one off.
func (c *SteadyClock) Offset() time.Duration {
	course := c.course.Load() // before the wall: a later course may have taken a later wall's time
	wall, mono := c.read()
	return time.Duration(wall - course.at(mono))
}

// Wall returns the wall's time in nanoseconds since 1970-01-01T00:00:00Z, whether this clock
// follows it or not.
func (c *SteadyClock) Wall() int64 {
	wall, _ := c.read()
	return wall
}

// compareLocked sets a new course by the wall, and returns by how much the wall is ahead
// if that is more than maxStep. c.mu is held.
func (c *SteadyClock) compareLocked(maxStep int64) time.Duration {
	wall, mono := c.read()
	switch moved := time.Duration(wall - mono - c.apart); {
	case moved >= stepAtLeast:
		c.ahead.Add(1)
	case moved <= -stepAtLeast:
		c.back.Add(1)
	}
	c.apart = wall - mono
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
		return 0 // it slows down in a moment
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
