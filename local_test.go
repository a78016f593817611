package firn

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// busy returns a Local that takes batches of n places.
func busy(g *Generator, n uint64) *Local {
	l := g.Local()
	l.recent = (n - 1) * batchShare
	return l
}

// gives fails unless the next ID of the Local is of this tick and sequence.
func gives(t *testing.T, l *Local, tick, sequence int64) {
	t.Helper()
	id, err := l.TryNext()
	p, _ := l.g.Layout().Decompose(id)
	if got := [2]int64{p.Tick, p.Sequence}; err != nil || got != [2]int64{tick, sequence} {
		t.Errorf("got %v, %v; want %v", got, err, [2]int64{tick, sequence})
	}
}

func hasNone(t *testing.T, l *Local, want error) {
	t.Helper()
	if id, err := l.TryNext(); id != 0 || !errors.Is(err, want) {
		t.Errorf("got %d, %v; want %v", id, err, want)
	}
}

// A batch lasts as long as its tick, also while the clock is back, by a clock that ticks and by any other.
func TestLocalGivesFromItsTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newManual(at(5))
		exact := newGenerator(t, Default, WithClock(clock), WithLookAhead(0))
		coarse, ticks, source := ticking(t, Default, WithLookAhead(0))
		for _, g := range []*Generator{exact, coarse} {
			set := func(to time.Time) {
				clock.set(to)
				source.set(to)
				ticks.Sync()
			}
			set(at(5))
			a, b := busy(g, 100), busy(g, 100)
			gives(t, a, 5, 0)
			gives(t, b, 5, 100)
			gives(t, a, 5, 1)
			set(at(2))
			gives(t, a, 5, 2)
			set(at(6).Add(-1))
			gives(t, a, 5, 3)
			set(at(6))
			gives(t, a, 6, 0)
			set(at(5))
			gives(t, b, 5, 101)
			set(at(7))
			gives(t, b, 7, 0)
			set(at(5))
			gives(t, b, 7, 1)
		}
	})
}

// A batch ends with its tick, and at the bound.
func TestLocalTakesNoMoreThanThereIs(t *testing.T) {
	g := newGenerator(t, tiny, WithClock(newManual(at(5))), WithLookAhead(time.Millisecond), WithBound(at(7)))
	l, other := busy(g, 100), busy(g, 100)
	gives(t, l, 5, 0)
	gives(t, other, 6, 0)
	hasNone(t, g.Local(), ErrBound)
	for i := range int64(3) {
		gives(t, l, 5, i+1)
		gives(t, other, 6, i+1)
	}
	hasNone(t, l, ErrBound)
	g.SetBound(at(8))
	hasNone(t, l, ErrNotYet)
}

// Nothing is given of what a Local still has when its generator is stopped, and Stop returns the end of its tick.
func TestStopCoversWhatALocalHas(t *testing.T) {
	g := newGenerator(t, tiny, WithClock(newManual(at(5))), WithLookAhead(time.Second))
	l, other := busy(g, 4), busy(g, 4)
	gives(t, l, 5, 0)
	gives(t, other, 6, 0)
	if used := g.Stop(); !used.Equal(at(7)) {
		t.Errorf("used up to %v; want %v", used, at(7))
	}
	hasNone(t, l, ErrStopped)
	if err := g.Advance(0, time.Hour); err != nil {
		t.Error(err)
	}
	hasNone(t, other, ErrStopped)
}

// After Advance a Local exceeds the other ID, whether or not the generator is there already.
func TestLocalExceedsWhatAdvanceSays(t *testing.T) {
	for _, beyond := range []bool{true, false} {
		g := newGenerator(t, Default, WithClock(newManual(at(5))), WithLookAhead(0))
		l := busy(g, 100)
		gives(t, l, 5, 0)
		after := g.packing.id(g.place(at(5)) + 50) // of the batch
		if !beyond {
			after = g.packing.id(g.place(at(5)) + 300)
		}
		if err := g.Advance(after, time.Second); err != nil {
			t.Fatal(err)
		}
		if id, err := l.TryNext(); err != nil || id <= after {
			t.Errorf("%d, %v after %d", id, err, after)
		}
	}
}

// However unevenly Locals are asked, 99.5 % of all places are given: few are held where a tick is used up.
func TestLocalsReachTheFullRate(t *testing.T) {
	for _, layout := range []Layout{tiny, Default, {
		Epoch: Default.Epoch, Tick: 10 * time.Millisecond, TimeBits: 39, NodeBits: 16, SequenceBits: 8,
	}, {
		Epoch: Default.Epoch, Tick: time.Second, TimeBits: 31, NodeBits: 12, SequenceBits: 14,
	}} {
		for seed := range uint64(3) {
			r := rand.New(rand.NewPCG(seed, 6))
			clock := newManual(at(5000))
			g := newGenerator(t, layout, WithClock(clock), WithLookAhead(0))
			locals := make([]*Local, 1+r.IntN(40))
			for i := range locals {
				locals[i] = g.Local()
			}
			const ticks = 12
			given := 0
			for range ticks {
				for full := false; !full; {
					l := locals[r.IntN(len(locals))]
					for range 1 + r.IntN(int(g.perTick)/2) {
						if _, err := l.TryNext(); err != nil {
							full = true // for this one: the others keep what they hold
							break
						}
						given++
					}
				}
				clock.pass(layout.Tick)
			}
			if all := ticks * int(g.perTick); given*1000 < all*995 {
				t.Errorf("%v, seed %d, %d Locals: %d of %d IDs", layout, seed, len(locals), given, all)
			}
		}
	}
}

// What a Local drops is at most one place for 256 that it gave, whenever the clock goes on.
func TestLocalDropsLittle(t *testing.T) {
	for seed, bits := range []int{3, 8, 9, 10, 11, 12, 13, 18} {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		clock := newManual(at(5))
		layout := Layout{Epoch: Default.Epoch, Tick: time.Millisecond, TimeBits: 41, SequenceBits: bits}
		g := newGenerator(t, layout, WithClock(clock), WithLookAhead(0))
		l, given, dropped := g.Local(), uint64(0), uint64(0)
		for given < 300_000 {
			most := g.perTick
			if r.IntN(4) > 0 {
				most = 4 // after more: it still has batches of many
			}
			for range 1 + r.Uint64N(most-1) {
				if _, err := l.TryNext(); err != nil {
					t.Fatal(err)
				}
				given++
				if held := l.end - l.next; held > min(255, g.perTick/batchShare) {
					t.Fatalf("it holds %d of %d places", held, g.perTick)
				}
			}
			dropped += l.end - l.next
			clock.pass(layout.Tick)
		}
		if dropped*256 > given {
			t.Errorf("%d places in a tick: %d given, %d dropped", g.perTick, given, dropped)
		}
	}
}

// Next waits for the clock and for the bound, and fails as that of the generator.
func TestLocalWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, current(tiny), WithLookAhead(0), WithBound(time.Now().Add(2*time.Millisecond)))
		l, begin := g.Local(), time.Now()
		for range 8 {
			if _, err := l.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(begin); waited != time.Millisecond {
			t.Errorf("8 IDs took %v", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Next(ctx); !errors.Is(err, ErrBound) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the bound: %v", err)
		}
		time.AfterFunc(time.Second, func() { g.SetBound(time.Now().Add(time.Second)) })
		if _, err := l.Next(t.Context()); err != nil {
			t.Error(err)
		}
		time.AfterFunc(time.Second, func() { g.Stop() })
		var err error
		for err == nil {
			_, err = l.Next(t.Context())
		}
		if !errors.Is(err, ErrStopped) && !errors.Is(err, ErrBound) {
			t.Error(err)
		}
	})
	g := newGenerator(t, tiny, WithClock(newManual(at(5))), WithBound(at(5)), FailAtBound())
	if _, err := g.Local().Next(t.Context()); err != ErrBound {
		t.Errorf("at a bound for which nobody waits: %v", err)
	}
}

// Locals of several goroutines, Next, Fill and Stop beside each other, by a clock that ticks: no ID comes twice, and
// none lies at or after what Stop returns.
func TestLocalsBesideOthers(t *testing.T) {
	for range 10 {
		g, err := NewGenerator(Layout{
			Epoch: Default.Epoch, Tick: time.Millisecond, TimeBits: 41, NodeBits: 1, SequenceBits: 21,
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		taken := make([][]ID, 6)
		for i := range taken {
			all.Go(func() {
				l, ids := g.Local(), make([]ID, 3)
				for len(taken[i]) < 10_000 {
					var err error
					switch i {
					case 0:
						ids[0], err = g.Next(t.Context())
						taken[i] = append(taken[i], ids[0])
					case 1:
						err = g.Fill(t.Context(), ids)
						taken[i] = append(taken[i], ids...)
					default:
						ids[0], err = l.Next(t.Context())
						taken[i] = append(taken[i], ids[0])
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		checkUniqueAndAscending(t, 0, taken)
		first, err := g.Layout().First(g.Stop())
		if err != nil {
			t.Fatal(err)
		}
		for _, ids := range taken {
			if last := slices.Max(ids); last >= first {
				t.Errorf("%d lies at or after %d, which Stop returned", last, first)
			}
		}
	}
}

func TestLocalAllocatesNothing(t *testing.T) {
	l := newGenerator(t, Layout{Epoch: Default.Epoch, Tick: time.Second, TimeBits: 31, SequenceBits: 30}).Local()
	if n := testing.AllocsPerRun(1000, func() { _, _ = l.Next(t.Context()) }); n != 0 {
		t.Errorf("Next allocates %v times", n)
	}
}

// Two Locals never share a cache line, which would have their goroutines wait for each other.
func TestLocalsShareNoCacheLine(t *testing.T) {
	if size := (unsafe.Sizeof(Local{}) + 7) / 8 * 8; size != cacheLine {
		t.Errorf("a Local has %d bytes; want %d", size, cacheLine)
	}
}
