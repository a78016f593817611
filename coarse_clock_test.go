package firn

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"
)

// counted is package time, and counts how often it is read.
type counted struct{ reads atomic.Int64 }

func (c *counted) Now() int64 {
	c.reads.Add(1)
	return time.Now().UnixNano()
}

// awake reads the clock until it ticks.
func awake(t *testing.T, c *CoarseClock) {
	t.Helper()
	for range 3 * manyReadings {
		c.Now()
	}
	if c.shown.Load() < 0 {
		t.Fatal("the clock does not tick after many readings")
	}
}

// Who reads it now and then gets what the source shows, and nothing runs in between.
func TestCoarseClockThatIsReadSeldomSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := new(counted)
		c := NewCoarseClock(source)
		const readings = 10 * manyReadings
		for range readings {
			time.Sleep(coarseTick / (manyReadings - 1))
			if got, want := c.Now(), time.Now().UnixNano(); got != want {
				t.Fatalf("it shows %d, its source %d", got, want)
			}
		}
		if got := source.reads.Load(); got != readings {
			t.Errorf("%d readings of the source, want %d", got, readings)
		}
	})
}

// Who reads it often does not read the source; it lags by a tick at most. Once nobody reads
// it any more, nothing runs, and the next reading is one of the source.
func TestCoarseClockTicksWhileItIsReadOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := new(counted)
		c := NewCoarseClock(source)
		awake(t, c)
		var behind time.Duration
		before, readings := source.reads.Load(), 0
		for begin := time.Now(); time.Since(begin) < time.Second; time.Sleep(10 * time.Microsecond) {
			for range 10 {
				behind = max(behind, time.Duration(time.Now().UnixNano()-c.Now()))
				readings++
			}
		}
		if behind == 0 || behind > coarseTick {
			t.Errorf("it lags by up to %v, want up to %v", behind, coarseTick)
		}
		if got := source.reads.Load() - before; got > int64(readings)/10 {
			t.Errorf("%d of %d readings were of the source", got, readings)
		}

		time.Sleep(coarseTicks * coarseTick)
		before = source.reads.Load()
		time.Sleep(time.Hour)
		if got := source.reads.Load() - before; got != 0 {
			t.Errorf("it read its source %d times while nobody asked", got)
		}
		if got, want := c.Now(), time.Now().UnixNano(); got != want {
			t.Errorf("after that it lags by %v", time.Duration(want-got))
		}
		awake(t, c)
	})
}

// The next reading after Sync, too, shows what the source showed, ticking or not, and
// also where the source has gone back.
func TestCoarseClockSyncFollowsItsSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newManual(at(5))
		c := NewCoarseClock(source)
		for range 2 {
			for _, step := range []time.Duration{time.Hour, -2 * time.Hour} {
				source.pass(step)
				if got := c.Sync(); got != source.Load() || c.Now() != got {
					t.Errorf("after a step of %v it shows %d, then %d, want %d", step, got, c.Now(), source.Load())
				}
			}
			awake(t, c)
		}
		source.pass(-time.Hour)
		time.Sleep(coarseTick)
		synctest.Wait()
		if got := c.Now(); c.shown.Load() < 0 || got != source.Load() {
			t.Errorf("a tick after a step back it shows %d, want %d", got, source.Load())
		}
		source.Store(-1)
		if got := c.Sync(); got != 0 || c.shown.Load() < 0 {
			t.Errorf("it shows %d for a time before 1970", got)
		}
	})
}

// However readings, ticks and looks at the source fall: nobody sees it go back.
func TestCoarseClockNeverGoesBack(t *testing.T) {
	start := time.Now()
	c := NewCoarseClock(clockFunc(func() int64 {
		now := int64(time.Since(start))
		if now%7 == 0 { // whoever read it is late
			runtime.Gosched()
		}
		return now
	}))
	var latest atomic.Int64 // that anybody has seen
	var all sync.WaitGroup
	for seed := range uint64(8) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 4))
			for range 20_000 {
				before := latest.Load()
				now := c.Now()
				if r.IntN(50) == 0 {
					now = c.Sync()
				}
				if r.IntN(2000) == 0 {
					time.Sleep(coarseTicks * coarseTick)
				}
				if now < before {
					t.Errorf("it shows %d after %d", now, before)
					return
				}
				for old := latest.Load(); now > old && !latest.CompareAndSwap(old, now); old = latest.Load() {
				}
			}
		})
	}
	all.Wait()
}

type clockFunc func() int64

func (f clockFunc) Now() int64 { return f() }

// A clock that nobody refers to any more is collected, without a call to close it.
func TestCoarseClockIsCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticking := func() weak.Pointer[CoarseClock] {
			c := NewCoarseClock(new(counted))
			awake(t, c)
			return weak.Make(c)
		}()
		time.Sleep(coarseTicks * coarseTick)
		synctest.Wait()
		runtime.GC()
		if ticking.Value() != nil {
			t.Error("the clock is still there")
		}
	})
}

// ticking returns a generator whose clock ticks, and its source.
func ticking(t *testing.T, l Layout, options ...Option) (*Generator, *CoarseClock, *manual) {
	t.Helper()
	source := newManual(at(5))
	c := NewCoarseClock(source)
	awake(t, c)
	return newGenerator(t, l, append(options, WithClock(c))...), c, source
}

// Before a caller waits or fails, the generator looks at the source: a late tick costs no rate.
func TestLateCoarseClockCostsNoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, source := ticking(t, tiny, WithLookAhead(0))
		wants(t, g, 9, ErrNotYet, [2]int64{5, 0}, [2]int64{5, 1}, [2]int64{5, 2}, [2]int64{5, 3})
		source.pass(2 * time.Millisecond)
		if got := c.Now(); got == source.Load() {
			t.Fatal("the clock is not late")
		}
		wants(t, g, 2, nil, [2]int64{7, 0}, [2]int64{7, 1})
		source.pass(5 * time.Millisecond)
		var w Waits
		WithWaits(&w)(g)
		for range 4 {
			if _, err := g.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.Count(); n != 0 {
			t.Errorf("a caller waited %d times for a clock that was there", n)
		}
	})
}

// A new generator begins at the time of the source, so that no time of a clock that was reset since remains.
func TestNewGeneratorLooksAtTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, source := ticking(t, tiny)
		source.pass(-3 * time.Millisecond)
		wants(t, newGenerator(t, tiny, WithClock(c), WithFloor(at(1))), 1, nil, [2]int64{2, 0})
	})
}

// However late the ticks, no more than syncEvery IDs lie behind.
func TestBusyGeneratorLooksAtTheSource(t *testing.T) {
	for _, batch := range []int{1, 7, syncEvery, 3 * syncEvery} {
		synctest.Test(t, func(t *testing.T) {
			g, _, source := ticking(t,
				Layout{Epoch: Default.Epoch, Tick: time.Millisecond, TimeBits: 41, SequenceBits: 20})
			ids := make([]ID, batch)
			take := func() {
				var err error
				if batch == 1 {
					ids[0], err = g.Next(t.Context())
				} else {
					err = g.Fill(t.Context(), ids)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			take()
			source.pass(time.Millisecond)
			for n := 0; ; n += batch {
				take()
				if p, _ := g.Layout().Decompose(ids[0]); p.Tick == 6 {
					break
				}
				if n > syncEvery {
					t.Fatalf("batches of %d: %d IDs lie behind", batch, n)
				}
			}
		})
	}
}

// The short way of Next decides as reserve does: at the ends of ticks, at the bound, after
// Stop, and whatever the clock does.
func TestShortWayFollowsTheRule(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	short := 0
	for seed := range uint64(2000) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			layout := tiny
			layout.SequenceBits = 1 + r.IntN(12)
			g, c, source := ticking(t, layout, WithLookAhead(0), WithFloor(at(r.IntN(7))),
				WithBound(at(4+r.IntN(10))), FailAtBound())
			for range 20 {
				switch r.IntN(8) {
				case 0:
					source.pass(time.Duration(r.IntN(3e6)))
				case 1:
					source.pass(-time.Duration(r.IntN(2e6)))
				case 2:
					c.Sync()
				case 3:
					g.next.Add(uint64(r.IntN(int(g.perTick))))
				}
				if r.IntN(100) == 0 {
					g.Stop()
				}
				next, shown, exact := g.next.Load(), c.Now(), source.Load()
				place, _, allowed := plainly(g, next, shown, 0, 0, 1)
				if exactly, _, may := plainly(g, next, exact, 0, 0, 1); !allowed || next%syncEvery == 0 {
					place, allowed = exactly, may
				}
				if next == stopped {
					allowed = false
				}
				before := c.shown.Load()
				id, err := g.Next(ended)
				if allowed != (err == nil) || allowed && id != g.packing.id(place) {
					t.Fatalf("seed %d: next %d, shown %d, source %d: got %d, %v; want the place %d, %v",
						seed, next, shown-g.epoch, exact-g.epoch, id, err, place, allowed)
				}
				if err == nil && c.shown.Load() == before && shown != exact {
					short++
				}
				if err != nil && errors.Is(err, ErrStopped) {
					return
				}
			}
		})
	}
	if short < 1000 {
		t.Errorf("only %d IDs came by the clock's late time", short)
	}
}
