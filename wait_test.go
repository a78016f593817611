package firn

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// current is a layout whose time begins now, as it is in a bubble.
func current(l Layout) Layout {
	l.Epoch = time.Now()
	return l
}

// Who is given an ID at once does not wait. Who waits for the clock is counted, with the time that it took, alone or
// with others.
func TestWaitsForTheClockAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Waits
		g := newGenerator(t, current(tiny), WithLookAhead(0), WithWaits(&w))
		for range 4 {
			if _, err := g.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if w.Count() != 0 || w.Time() != 0 {
			t.Errorf("%d waits of %v without any", w.Count(), w.Time())
		}
		for range 2 {
			go func() { _, _ = g.Next(t.Context()) }()
		}
		synctest.Wait()
		if w.Count() != 2 || w.Time() != 0 {
			t.Errorf("%d waits of %v while two wait", w.Count(), w.Time())
		}
		time.Sleep(10 * time.Millisecond)
		if w.Count() != 2 || w.Time() != 2*time.Millisecond {
			t.Errorf("%d waits of %v, after two waited for the next tick", w.Count(), w.Time())
		}
	})
}

// A bound is the owner's business, and who does not wait long enough has waited all the same.
func TestOtherWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var w Waits
		bounded := newGenerator(t, current(tiny), WithBound(time.Now()), WithWaits(&w))
		if _, err := bounded.Next(ctx); !errors.Is(err, ErrBound) || w.Count() != 0 {
			t.Errorf("at the bound it counts %d waits, with %v", w.Count(), err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		early := newGenerator(t, current(tiny), WithFloor(time.Now().Add(time.Hour)), WithWaits(&w))
		if err := early.Fill(ctx, make([]ID, 2)); !errors.Is(err, ErrNotYet) || w.Time() != time.Second {
			t.Errorf("below the floor it waits for %v, with %v", w.Time(), err)
		}
	})
}

// jerky is package time that moves only every step, as time does for a process that gets a CPU
// no more often.
type jerky struct{ step atomic.Int64 }

func (j *jerky) Now() int64 {
	now := time.Now().UnixNano()
	return now - now%j.step.Load()
}

// Where wake-ups come so late that IDs are lost, the look-ahead grows until none are, up to its limit. Where
// they come in time, it is as it was.
func TestLookAheadFollowsLateWakeUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layout := current(tiny)
		clock := new(jerky)
		var bound time.Time
		// run saturates a generator for a second, and returns what part of the limit it reached.
		run := func(g *Generator, step time.Duration) float64 {
			clock.step.Store(int64(step))
			g.SetBound(time.Now().Add(time.Second))
			bound = time.Now().Add(time.Second)
			for n := 0.; ; n++ {
				id, err := g.Next(t.Context())
				if errors.Is(err, ErrBound) {
					return n / (1000 * 4)
				}
				if err != nil {
					t.Fatal(err)
				}
				made, _ := layout.Time(id)
				if ends := made.Add(layout.Tick); ends.After(bound) {
					t.Fatalf("an ID ends at %v, after the bound %v", ends, bound)
				}
				if ahead := made.Sub(time.Unix(0, clock.Now())); ahead > MaxLookAhead {
					t.Fatalf("an ID lies %v ahead", ahead)
				}
			}
		}
		clock.step.Store(1)
		newOne := func(options ...Option) *Generator {
			return newGenerator(t, layout, append(options, WithClock(clock), WithBound(time.Now()), FailAtBound())...)
		}
		g := newOne()
		if part := run(g, 1); part < 0.99 || g.lookAhead.Load() != uint64(DefaultLookAhead) {
			t.Errorf("in time: %v of the limit, with a look-ahead of %v", part, time.Duration(g.lookAhead.Load()))
		}
		for _, step := range []time.Duration{8 * time.Millisecond, 13 * time.Millisecond} {
			if part := run(g, step); part < 0.95 {
				t.Errorf("every %v: %v of the limit", step, part)
			}
		}
		if part := run(g, 40*time.Millisecond); part > 0.6 ||
			g.lookAhead.Load() < uint64(MaxLookAhead-time.Millisecond) {
			t.Errorf("every 40ms: %v of the limit, with a look-ahead of %v", part, time.Duration(g.lookAhead.Load()))
		}
		for range 5 {
			run(g, 1)
		}
		if got := time.Duration(g.lookAhead.Load()); got != DefaultLookAhead {
			t.Errorf("after 5 s in time the look-ahead is %v", got)
		}
		g = newOne(WithLookAhead(DefaultLookAhead))
		if part := run(g, 8*time.Millisecond); part > 0.8 || g.lookAhead.Load() != uint64(DefaultLookAhead) {
			t.Errorf("a look-ahead that was given: %v of the limit, and now %v", part,
				time.Duration(g.lookAhead.Load()))
		}
	})
}

// However long the look-ahead has grown, callers sleep for no longer than by the least: what it
// has grown by is for wake-ups that are late.
func TestALongLookAheadWakesEarlier(t *testing.T) {
	clock := newManual(at(5))
	g := newGenerator(t, tiny, WithClock(clock))
	for _, lookAhead := range []time.Duration{DefaultLookAhead, MaxLookAhead} {
		g.lookAhead.Store(uint64(lookAhead))
		if _, err := places(t, g, 99); !errors.Is(err, ErrNotYet) {
			t.Fatal(err)
		}
		if got, want := g.untilNeeded(), time.Millisecond+DefaultLookAhead/2; got != want {
			t.Errorf("with a look-ahead of %v it sleeps for %v, want %v", lookAhead, got, want)
		}
	}
}

func TestFollow(t *testing.T) {
	const ms = uint64(time.Millisecond)
	for _, c := range []struct {
		lookAhead uint64
		lost      time.Duration
		want      uint64
	}{
		{4 * ms, -time.Millisecond, 4 * ms}, // in time
		{4 * ms, 0, 4 * ms},
		{4 * ms, time.Millisecond, 8 * ms}, // late by 3 ms, twice that and 2 ms
		{8 * ms, time.Nanosecond, 14*ms + 2},
		{4 * ms, time.Hour, 16 * ms},
		{16 * ms, math.MaxInt64, 16 * ms},
		{16 * ms, -time.Hour, 16*ms - 16_000},
		{4*ms + 1, -1, 4 * ms},
	} {
		if got := follow(c.lookAhead, 4*ms, 16*ms, c.lost); got != c.want {
			t.Errorf("from %v, with %v lost: %v, want %v", time.Duration(c.lookAhead), c.lost, time.Duration(got),
				time.Duration(c.want))
		}
	}
	for _, fixed := range []uint64{0, 3, math.MaxInt64} {
		for _, lost := range []time.Duration{-1, 1, math.MaxInt64} {
			if got := follow(fixed, fixed, fixed, lost); got != fixed {
				t.Errorf("one that was given as %d: %d", fixed, got)
			}
		}
	}
}
