package firn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// current is a layout whose time begins now, as it is in a bubble.
func current(l Layout) Layout {
	l.Epoch = time.Now()
	return l
}

// Who is given an ID at once does not wait. Who waits for the clock is counted, with the time that it took, alone or with others.
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
