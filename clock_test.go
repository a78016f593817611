package firn

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// hands is a wall and a monotonic clock that a test moves.
type hands struct{ wall, mono int64 }

func (h *hands) read() (wall, mono int64) { return h.wall, h.mono }

func (h *hands) pass(d time.Duration) {
	h.wall += int64(d)
	h.mono += int64(d)
}

func (h *hands) step(d time.Duration) { h.wall += int64(d) }

func newHands() (*hands, *SteadyClock) {
	h := &hands{wall: Default.Epoch.UnixNano(), mono: 77}
	return h, NewSteadyClockFrom(DefaultMaxStep, h.read)
}

// lag is how far the clock is behind the wall.
func lag(h *hands, c *SteadyClock) time.Duration { return time.Duration(h.wall - c.Now()) }

func TestSteadyClockFollowsAStepAheadUpToMaxStep(t *testing.T) {
	h, c := newHands()
	h.step(10 * time.Second)
	h.pass(time.Second)
	if got := lag(h, c); got != 0 {
		t.Errorf("after a step of 10s it lags by %v", got)
	}
	h.step(10*time.Second + 1)
	h.pass(time.Second)
	if got := lag(h, c); got != 10*time.Second+1 {
		t.Errorf("after a step of more than MaxStep it lags by %v; it should not follow", got)
	}
	if got := c.Ahead(); got != 10*time.Second+1 {
		t.Errorf("it reports a step of %v", got)
	}
	c.Follow()
	if got := lag(h, c); got != 0 || c.Ahead() != 0 {
		t.Errorf("after Follow it lags by %v and reports %v", got, c.Ahead())
	}
}

func TestSteadyClockReportsAStepUntilItIsTakenBack(t *testing.T) {
	h, c := newHands()
	h.step(time.Hour)
	if got := c.Ahead(); got != time.Hour {
		t.Errorf("it reports a step of %v", got)
	}
	h.step(-time.Hour)
	if got := c.Ahead(); got != 0 {
		t.Errorf("the step was taken back, and it still reports %v", got)
	}
}

func TestSteadyClockApproachesAWallThatFellBack(t *testing.T) {
	h, c := newHands()
	h.step(-10 * time.Second)
	last := c.Now()
	for range 90 * 20 {
		h.pass(50 * time.Millisecond)
		now := c.Now()
		if now < last {
			t.Fatalf("it went back by %d ns", last-now)
		}
		if slow := time.Duration(now - last); slow < 43*time.Millisecond {
			t.Fatalf("it ran %v in 50ms; no more than an eighth slower is allowed", slow)
		}
		last = now
	}
	if got := lag(h, c); got < -time.Millisecond || got > time.Millisecond {
		t.Errorf("90s after a step back of 10s it lags by %v", got)
	}
}

func TestSteadyClockRunsOnBetweenComparisons(t *testing.T) {
	h, c := newHands()
	from := c.Now()
	h.step(-time.Hour) // not noticed yet
	h.pass(999 * time.Millisecond)
	if got := c.Now() - from; got != int64(999*time.Millisecond) {
		t.Errorf("it ran %d ns in 999ms", got)
	}
}

func TestSteadyClockReset(t *testing.T) {
	h, c := newHands()
	for _, step := range []time.Duration{-time.Hour, 2 * time.Hour, -time.Second, time.Second, 0} {
		h.step(step)
		c.Reset()
		if got := lag(h, c); got != 0 || c.Offset() != 0 || c.Ahead() != 0 {
			t.Errorf("after a step of %v and Reset it lags by %v", step, got)
		}
		for range 10 {
			h.pass(time.Second)
			if got := lag(h, c); got != 0 {
				t.Errorf("after a step of %v, Reset and a while it lags by %v", step, got)
			}
		}
	}
	if ahead, back := c.Steps(); ahead != 2 || back != 2 {
		t.Errorf("it saw %d steps ahead and %d back", ahead, back)
	}
}

// Whatever the wall does, the clock never goes back and never runs faster than the monotonic
// clock but for steps ahead.
func TestSteadyClockNeverGoesBack(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		h, c := newHands()
		last := c.Now()
		for range 500 {
			switch r.IntN(8) {
			case 0:
				h.step(time.Duration(r.Int64N(int64(40*time.Second))) - 20*time.Second)
			case 1:
				c.Ahead()
			case 2:
				if r.IntN(10) == 0 {
					c.Follow()
				}
			default:
				h.pass(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
			}
			now := c.Now()
			if now < last {
				t.Fatalf("seed %d: it went back by %d ns", seed, last-now)
			}
			last = now
		}
	}
}

func TestSteadyClockOverPackageTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewSteadyClock(0)
		for range 5 {
			if got, want := c.Now(), time.Now().UnixNano(); got != want {
				t.Fatalf("it shows %d, the wall %d", got, want)
			}
			time.Sleep(700 * time.Millisecond)
		}
	})
}

// A step is one step, however long it is worked off; what a wall drifts is none.
func TestStepsAreCountedOnce(t *testing.T) {
	h, c := newHands()
	run := func(times int) {
		for range times {
			h.pass(500 * time.Millisecond)
			c.Now()
		}
	}
	want := func(offset time.Duration, wantAhead, wantBack uint64) {
		t.Helper()
		if ahead, back := c.Steps(); c.Offset() != offset || ahead != wantAhead || back != wantBack {
			t.Errorf("an offset of %v, %d steps ahead and %d back; want %v, %d and %d", c.Offset(), ahead, back, offset,
				wantAhead, wantBack)
		}
	}
	run(10)
	want(0, 0, 0)
	h.step(-10 * time.Second)
	want(-10*time.Second, 0, 0) // not compared yet
	run(1000)                   // it is worked off in 80 s
	want(0, 0, 1)
	h.step(5 * time.Second)
	run(10)
	want(0, 1, 1)
	h.step(time.Hour) // it is not followed
	run(1000)
	want(time.Hour, 2, 1)
	c.Follow()
	want(0, 2, 1)
	for range 100 { // half of the threshold, each time
		h.step(stepAtLeast / 2)
		run(2)
	}
	want(0, 2, 1)
	h.step(stepAtLeast)
	run(2)
	want(0, 3, 1)
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
