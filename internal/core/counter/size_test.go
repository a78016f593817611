package counter

import (
	"testing"
	"time"
)

func TestSizeFollowsTheRate(t *testing.T) {
	for _, c := range []struct {
		pace       Pace
		now, given int64
		in         time.Duration
		want       int64
		why        string
	}{
		{Pace{}, 0, 0, 0, 1, "the first"},
		{Pace{}, 1, 1, time.Hour, 1, "never less than one"},
		{Pace{}, 1, 0, time.Hour, 1, "none was given"},
		{Pace{}, 100, 100, 10 * time.Second, 100, "it lasts the least"},
		{Pace{}, 100, 100, 60 * time.Second, 100, "it lasts the most"},
		{Pace{}, 100, 50, 30 * time.Second, 100, "it would last 60 s"},
		{Pace{}, 100, 100, 5 * time.Second, 700, "20 a second for 35 s"},
		{Pace{}, 100, 100, 100 * time.Second, 35, "1 a second for 35 s"},
		{Pace{}, 100, 100, 24 * time.Hour, 1, "it shrinks at once"},
		{Pace{}, 100, 100, time.Millisecond, 1600, "it grows step by step"},
		{Pace{}, 100, 100, 0, 1600, "in no time"},
		{Pace{}, 1 << 30, 1 << 30, time.Millisecond, 1 << 32, "the largest"},
		{Pace{Largest: 500}, 100, 100, time.Millisecond, 500, "a smaller largest"},
		{Pace{Least: time.Second, Most: 3 * time.Second}, 100, 100, 4 * time.Second, 50, "25 a second for 2 s"},
		{Pace{Least: time.Second, Most: 3 * time.Second}, 100, 100, time.Second, 100, "another least"},
	} {
		if have := c.pace.Size(c.now, c.given, c.in); have != c.want {
			t.Errorf("%s: after %d, with %d in %v: %d, want %d", c.why, c.now, c.given, c.in, have, c.want)
		}
	}
}

// At any steady rate the size settles, and then a block lasts as long as it should.
func TestSizeSettles(t *testing.T) {
	for _, perSecond := range []float64{0.001, 0.1, 1, 7, 1000, 1e7} {
		size := int64(0)
		for range 12 {
			in := time.Duration(float64(size) / perSecond * float64(time.Second))
			size = Pace{}.Size(size, size, in)
		}
		lasts := float64(size) / perSecond
		if size > 1 && (lasts < 10 || lasts > 60) || size == 1 && lasts < 10 {
			t.Errorf("at %g a second a block of %d lasts %g s", perSecond, size, lasts)
		}
		in := time.Duration(lasts * float64(time.Second))
		if again := (Pace{}).Size(size, size, in); again != size {
			t.Errorf("at %g a second it goes on from %d to %d", perSecond, size, again)
		}
	}
}
