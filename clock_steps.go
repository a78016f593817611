package firn

import "time"

// StepAtLeast is by how much a wall must have moved against the monotonic clock, from one comparison to the next, to
// count as a step: 100 ms. Discipline by NTP that slews a clock moves both, and is none.
const StepAtLeast = 100 * time.Millisecond

// Steps are how often a wall was seen to step. A machine that was suspended has stepped ahead too, where its monotonic
// clock stands still meanwhile, as it does on Linux.
type Steps struct{ Ahead, Back uint64 }

// Steps returns the steps of the wall that were seen since the clock was made, each counted once, whether it was followed
// or not and however long it takes to be worked off. They are seen when the clock compares with the wall: at most a second late
// while somebody asks for the time.
func (c *SteadyClock) Steps() Steps { return Steps{c.ahead.Load(), c.back.Load()} }

// Offset returns how far the wall is ahead of this clock now; negative: behind. It is what is left of a step that is
// not followed, or is being worked off, and else within microseconds.
func (c *SteadyClock) Offset() time.Duration {
	course := c.course.Load() // before the wall, as a later one may have taken a later wall's time
	wall, mono := c.read()
	return time.Duration(wall - course.at(mono))
}

// countLocked counts a step if there was one, by how far the wall and the monotonic clock are apart now. c.mu is held.
func (c *SteadyClock) countLocked(apart int64) {
	switch moved := time.Duration(apart - c.apart); {
	case moved >= StepAtLeast:
		c.ahead.Add(1)
	case moved <= -StepAtLeast:
		c.back.Add(1)
	}
	c.apart = apart
}
