package firn

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// The next ID after Advance is the least that exceeds the other one and those before, for every two nodes and places of
// small layouts.
func TestAdvanceExceedsEveryID(t *testing.T) {
	for _, lowest := range []bool{false, true} {
		l := Layout{
			Epoch: Default.Epoch, Tick: time.Millisecond, TimeBits: 3, DatacenterBits: 1, NodeBits: 1, SequenceBits: 2,
			NodeLowest: lowest,
		}
		for after := range ID(1 << l.Bits()) {
			for node := range l.NodeIDs() {
				for begin := range uint64(32) {
					g, err := NewGenerator(l, node, WithClock(newManual(at(0))), WithLookAhead(time.Second))
					if err != nil {
						t.Fatal(err)
					}
					g.next.Store(begin)
					want := begin
					for want < 32 && g.packing.id(want) <= after {
						want++
					}
					err = g.Advance(after, time.Hour)
					id, _ := g.TryNext()
					if refused, ok := errors.AsType[*AheadError](err); want == 32 {
						if !ok && begin < 32 || ok && refused.ID != after {
							t.Fatalf("%v, node %d, after %d: got %d, %v; want an AheadError", l, node, after, id, err)
						}
					} else if err != nil || id != g.packing.id(want) {
						t.Fatalf("%v, node %d, after %d: got %d, %v; want %d", l, node, after, id, err,
							g.packing.id(want))
					}
				}
			}
		}
	}
}

// An ID that is too far ahead changes nothing, and the error has both numbers.
func TestAdvanceHasALimit(t *testing.T) {
	clock := newManual(at(1000))
	g := newGenerator(t, tiny, WithClock(clock), WithLookAhead(0), WithBound(at(4000)))
	id := func(ms int) ID {
		id, err := tiny.Last(at(ms))
		if err != nil {
			t.Fatal(err)
		}
		return id // of the greatest node, so that the next is in the tick after it
	}
	for _, tt := range []struct{ at, most, ahead, mayBe int }{
		{3000, 2000, 2001, 2000},
		{3999, 5000, 3000, 2999},
		{9000, 5000, 8001, 2999},
		{9000, 100, 8001, 100},
	} {
		err := g.Advance(id(tt.at), time.Duration(tt.most)*time.Millisecond)
		e, ok := errors.AsType[*AheadError](err)
		if !ok || *e != (AheadError{
			id(tt.at), time.Duration(tt.ahead) * time.Millisecond,
			time.Duration(tt.mayBe) * time.Millisecond,
		}) {
			t.Errorf("to %d ms, at most %d: %v", tt.at, tt.most, err)
		}
	}
	if err := g.Advance(-1, time.Hour); err == nil {
		t.Error("a negative ID is accepted")
	}
	wants(t, g, 1, nil, [2]int64{1000, 0})
	if ahead := g.Ahead(); ahead != 0 {
		t.Errorf("%v ahead", ahead)
	}

	if err := g.Advance(id(3998), 2999*time.Millisecond); err != nil {
		t.Error(err)
	}
	wants(t, g, 10, ErrBound, [2]int64{3999, 0}, [2]int64{3999, 1}, [2]int64{3999, 2}, [2]int64{3999, 3})
	if ahead := g.Ahead(); ahead != 2999*time.Millisecond {
		t.Errorf("%v ahead", ahead)
	}
	if err := g.Advance(id(3998), 0); err != nil {
		t.Errorf("an ID that is exceeded already: %v", err)
	}
	if used := g.Stop(); !used.Equal(at(4000)) || g.Ahead() != 0 {
		t.Errorf("used up to %v", used)
	}
	if err := g.Advance(id(9000), time.Hour); err != nil {
		t.Errorf("once stopped: %v", err)
	}
}

// Everybody goes on where ID time is: nobody waits for the clock, and nobody gets further ahead.
func TestAdvanceMovesEverybody(t *testing.T) {
	clock := newManual(at(1000))
	g := newGenerator(t, tiny, WithClock(clock), WithLookAhead(time.Millisecond))
	after, err := tiny.Compose(Parts{Tick: 1100, Node: 1, Sequence: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Advance(after, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	wants(t, g, 10, ErrNotYet, [2]int64{1100, 3})

	// Under saturation, an eighth of each tick brings it nearer to the clock.
	last, ticks := int64(1100), 0
	for ms := range 2000 {
		clock.set(at(1001 + ms))
		got, err := places(t, g, 100)
		if err != ErrNotYet {
			t.Fatal(err)
		}
		for _, p := range got {
			if p[0] > last {
				last, ticks = p[0], ticks+1
			}
		}
		if ahead := last - int64(1001+ms); ahead > 101 || ahead < 0 {
			t.Fatalf("after %d ms, it is %d ms ahead", ms, ahead)
		}
	}
	if lead := g.lead.Load(); lead != 0 || ticks < 1890 || last > 3001 {
		t.Errorf("the lead is still %v after %d ticks, at %d", time.Duration(lead), ticks, last)
	}
}

// Callers that pass IDs on from one saturated generator to another, or to the same, push none of them further ahead.
func TestSaturationPushesNobodyAhead(t *testing.T) {
	clock := newManual(at(1000))
	var both [2]*Generator
	for i := range both {
		g, err := NewGenerator(tiny, int64(i), WithClock(clock), WithLookAhead(5*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		both[i] = g
	}
	last := ID(0)
	for range 2000 {
		for _, g := range both {
			for range 3 {
				if err := g.Advance(last, time.Second); err != nil {
					t.Fatal(err)
				}
				ids := make([]ID, 100)
				if n, err := g.TryFill(ids); err == nil {
					last = ids[n-1]
				}
			}
			if ahead := g.Ahead(); ahead > 6*time.Millisecond {
				t.Fatalf("%v ahead, at %v", ahead, clock.time())
			}
		}
		clock.pass(time.Millisecond / 2)
	}
}

// A lead that the clock has caught up with is gone.
func TestLeadEndsWhereTheClockIsThere(t *testing.T) {
	clock := newManual(at(1000))
	g := newGenerator(t, tiny, WithClock(clock), WithLookAhead(0), WithRandomStart())
	after, err := tiny.Last(at(1500))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Advance(after, time.Second); err != nil {
		t.Fatal(err)
	}
	clock.set(at(1600))
	if _, err := g.TryNext(); err != nil || g.lead.Load() != 0 {
		t.Errorf("the lead is %v (%v)", time.Duration(g.lead.Load()), err)
	}
}

// Who is late to shorten the lead does not take it from those who have advanced the generator meanwhile.
func TestLateShorterLead(t *testing.T) {
	clock := newManual(at(1000))
	g := newGenerator(t, tiny, WithClock(clock), WithLookAhead(0))
	for ms := range 100 {
		after, err := tiny.Last(at(1200 + ms))
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Advance(after, time.Second); err != nil {
			t.Fatal(err)
		}
		g.relax(clock.Now())
		wants(t, g, 1, nil, [2]int64{int64(1201 + ms), 0})
	}
}

// With a random start, an ID that is the first of its tick does not tell how many came before.
func TestAdvanceBeginsByChance(t *testing.T) {
	l := Layout{Epoch: Default.Epoch, Tick: time.Millisecond, TimeBits: 41, NodeBits: 2, SequenceBits: 12}
	g := newGenerator(t, l, WithClock(newManual(at(0))), WithRandomStart())
	seen := map[int64]bool{}
	for tick := range 20 {
		after, err := l.Last(at(tick))
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Advance(after, time.Second); err != nil {
			t.Fatal(err)
		}
		got, err := places(t, g, 1)
		if err != nil || got[0][0] != int64(tick+1) || got[0][1] >= 2048 {
			t.Fatal(got, err)
		}
		seen[got[0][1]] = true
	}
	if len(seen) < 15 {
		t.Errorf("the sequence began at %v", seen)
	}
}

// A generator whose floor is ahead gives IDs at once, if somebody lets it.
func TestAdvanceFromAFloor(t *testing.T) {
	clock := newManual(at(1000))
	g := newGenerator(t, tiny, WithClock(clock), WithLookAhead(0), WithFloor(at(1500)))
	if err := g.Advance(0, 499*time.Millisecond); err != nil {
		t.Error(err)
	}
	if ahead := g.Ahead(); ahead != 0 {
		t.Errorf("no ID was taken, and it is %v ahead", ahead)
	}
	wants(t, g, 1, ErrNotYet)
	if err := g.Advance(0, 500*time.Millisecond); err != nil {
		t.Error(err)
	}
	wants(t, g, 1, nil, [2]int64{1500, 0})
}

// Whatever others do, who has advanced a generator gets a greater ID without waiting.
func TestAdvanceAmongOthers(t *testing.T) {
	for seed := range uint64(100) {
		clock := newManual(at(1000))
		g := newGenerator(t, Default, WithClock(clock), WithLookAhead(0))
		for round := range uint64(6) {
			var all sync.WaitGroup
			for i := range uint64(8) {
				r := rand.New(rand.NewPCG(seed, 8*round+i))
				all.Go(func() {
					for range 10 {
						after, err := Default.First(clock.time().Add(time.Duration(r.Int64N(500)) * time.Millisecond))
						if err != nil {
							t.Error(err)
						}
						after += ID(r.Int64N(1 << (Default.NodeBits + Default.SequenceBits)))
						if err := g.Advance(after, time.Hour); err != nil {
							t.Error(err)
						}
						if id, err := g.TryNext(); err != nil || id <= after {
							t.Errorf("seed %d: after %d: %d, %v", seed, after, id, err)
						}
					}
				})
			}
			all.Wait()
			clock.pass(time.Duration(rand.New(rand.NewPCG(seed, round)).Int64N(500)) * time.Millisecond)
		}
	}
}
