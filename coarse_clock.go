package firn

import (
	"math"
	"sync/atomic"
	"time"
)

// CoarseClock is a clock for those who may read it very often. While it ticks, a reading is
// one atomic load: of what its source showed at the last tick, half a millisecond ago or
// little more where a CPU is free. It ticks for 16 ms after 256 readings within half a
// millisecond. Else it sleeps: each reading is one of the source, and nothing runs.
//
// It shows what its source showed, and never less than before unless that goes back.
//
// NewCoarseClock makes a CoarseClock; the zero value does not work. It is safe for
// concurrent use; the generators of a process can share one. There is nothing to close: a
// clock that is not read falls asleep, and is collected when nobody refers to it.
type CoarseClock struct {
	source Clock
	ticker *time.Timer
	began  atomic.Int64 // the source's time at the last of each 256 readings

	// Whoever wakes the clock owns these, and then tick, until the clock sleeps again.
	left     int   // ticks
	readings int64 // of the source, when it was woken

	_ [cacheLine]byte

	// shown is the time while the clock ticks. While it sleeps, shown is negative: asleep plus
	// the number of readings of the source. Nothing else is on its cache line, which all readers share.
	shown atomic.Int64
	_     [cacheLine - 8]byte
}

const (
	coarseTick  = 500 * time.Microsecond
	coarseTicks = 32

	// manyReadings of the source cost about as much CPU time as a tick.
	manyReadings = 256

	asleep = math.MinInt64
)

// sleeps is what a CoarseClock shows that nobody ever wakes.
var sleeps = func() *atomic.Int64 {
	shown := new(atomic.Int64)
	shown.Store(asleep)
	return shown
}()

// NewCoarseClock returns a CoarseClock that sleeps. It shows the time of source, which never goes below zero.
func NewCoarseClock(source Clock) *CoarseClock {
	c := &CoarseClock{source: source}
	c.shown.Store(asleep)
	c.ticker = time.AfterFunc(time.Hour, c.tick)
	c.ticker.Stop()
	return c
}

// Now returns the time in nanoseconds since 1970-01-01T00:00:00Z. A source that shows an
// earlier time counts as showing that.
func (c *CoarseClock) Now() int64 {
	if now := c.shown.Load(); now >= 0 {
		return now
	}
	return c.Sync()
}

// Sync returns the time of the source, which the clock shows from now on.
func (c *CoarseClock) Sync() int64 {
	for {
		old, now := c.look()
		if old >= 0 {
			if c.shown.CompareAndSwap(old, now) {
				return now
			}
			continue
		}
		if c.shown.CompareAndSwap(old, old+1) {
			if (old+1-asleep)%manyReadings == 0 && now-c.began.Swap(now) < int64(coarseTick) {
				c.wake()
			}
			return now
		}
	}
}

// look reads the source. Who looks changes shown by it only if nobody has changed it since,
// each reading included. So what is shown follows all that was shown before.
func (c *CoarseClock) look() (shown, now int64) {
	shown = c.shown.Load()
	return shown, max(c.source.Now(), 0)
}

// wake has the clock tick, if it sleeps.
func (c *CoarseClock) wake() {
	for {
		old, now := c.look()
		if old >= 0 {
			return
		}
		if c.shown.CompareAndSwap(old, now) {
			c.readings, c.left = old, coarseTicks
			c.ticker.Reset(coarseTick)
			return
		}
	}
}

// tick runs in a goroutine of its own for each tick. Whether anybody still reads the clock
// it can't know, since a reading leaves no trace. So it falls asleep after a while, and
// whoever reads it often wakes it.
func (c *CoarseClock) tick() {
	if c.left--; c.left > 0 {
		c.Sync()
		c.ticker.Reset(coarseTick)
		return
	}
	c.shown.Store(c.readings + 1) // another than any that was looked at before
}
