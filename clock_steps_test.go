package firn

import (
	"testing"
	"time"
)

// A step is one step, however long it is worked off; what a wall drifts is none.
func TestStepsAreCountedOnce(t *testing.T) {
	h, c := newHands()
	run := func(times int) {
		for range times {
			h.pass(500 * time.Millisecond)
			c.Now()
		}
	}
	want := func(offset time.Duration, steps Steps) {
		t.Helper()
		if c.Offset() != offset || c.Steps() != steps {
			t.Errorf("an offset of %v and the steps %+v; want %v and %+v", c.Offset(), c.Steps(), offset, steps)
		}
	}
	run(10)
	want(0, Steps{})
	h.step(-10 * time.Second)
	want(-10*time.Second, Steps{}) // not compared yet
	run(1000)                      // it is worked off in 80 s
	want(0, Steps{Back: 1})
	h.step(5 * time.Second)
	run(10)
	want(0, Steps{Ahead: 1, Back: 1})
	h.step(time.Hour) // it is not followed
	run(1000)
	want(time.Hour, Steps{Ahead: 2, Back: 1})
	c.Follow()
	want(0, Steps{Ahead: 2, Back: 1})
	for range 100 { // half of the threshold, each time
		h.step(StepAtLeast / 2)
		run(2)
	}
	want(0, Steps{Ahead: 2, Back: 1})
	h.step(StepAtLeast)
	run(2)
	want(0, Steps{Ahead: 3, Back: 1})
}

// What is left of a step back is less and less.
func TestOffsetWhileAStepIsWorkedOff(t *testing.T) {
	h, c := newHands()
	h.step(-8 * time.Second)
	for last := c.Offset(); last < -time.Second; {
		h.pass(time.Second)
		c.Now()
		now := c.Offset()
		if now <= last-time.Microsecond || now > 0 {
			t.Fatalf("the offset went from %v to %v", last, now)
		}
		if h.mono > int64(200*time.Second) {
			t.Fatalf("it is still %v", now)
		}
		last = now
	}
}
