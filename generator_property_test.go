package firn

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Under a clock that does anything, with many goroutines and a bound that its owner moves:
// no ID repeats, none comes before one that its goroutine already had, none lies ahead of
// the clock plus the look-ahead and how far somebody may advance it, and none lies at or
// beyond the bound. Who has advanced it gets a greater ID. Half of the goroutines have a Local,
// whose IDs may be ahead of a clock that stepped back.
//
// The clock and the bound stand still within a round, so that what is allowed is exact.
func TestGeneratorUnderAnyClock(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		layout := randomLayout(r)
		layout.TimeBits = max(layout.TimeBits, 20)
		layout.SequenceBits = min(layout.SequenceBits, 6)
		if layout.Validate() != nil {
			layout.NodeBits, layout.DatacenterBits = 0, 0
			layout.TimeBits = min(layout.TimeBits, 56)
		}
		ticks := func(n int64) time.Duration { return time.Duration(n) * layout.Tick }

		lookAhead := ticks(r.Int64N(4)) + time.Duration(r.Int64N(int64(layout.Tick)))
		most := ticks(r.Int64N(2) * r.Int64N(9)) // 0: nobody advances it
		clock := newManual(layout.TickStart(1000))
		floor := clock.time().Add(ticks(r.Int64N(6) - 3))
		bound := clock.time().Add(ticks(r.Int64N(10)))
		options := []Option{WithClock(clock), WithLookAhead(lookAhead), WithFloor(floor), WithBound(bound)}
		if r.IntN(2) == 0 {
			options = append(options, WithRandomStart())
		}
		g, err := NewGenerator(layout, r.Int64N(layout.NodeIDs()), options...)
		if err != nil {
			t.Fatalf("seed %d: %v: %v", seed, layout, err)
		}

		var taken [8][]ID
		var locals [8]*Local
		for i := range locals {
			locals[i] = g.Local()
		}
		shown := clock.time() // the latest that the clock has shown
		for range 50 {
			switch r.IntN(6) {
			case 0:
				clock.pass(-ticks(r.Int64N(8)))
			case 1: // it stands still
			case 2:
				clock.pass(ticks(r.Int64N(20)))
			default:
				clock.pass(time.Duration(r.Int64N(int64(2 * layout.Tick))))
			}
			if to := clock.time().Add(ticks(r.Int64N(12) - 4)); r.IntN(2) == 0 && to.After(bound) {
				bound = to
				g.SetBound(to)
			}
			if clock.time().After(shown) {
				shown = clock.time()
			}
			var all sync.WaitGroup
			var round [8][]ID
			for i := range round {
				batch, other := 1+r.IntN(5), r.Int64N(layout.NodeIDs())
				moves := rand.New(rand.NewPCG(seed, uint64(i)))
				all.Go(func() {
					for range 20 {
						after := ID(-1)
						if most > 0 && moves.IntN(4) == 0 {
							tick := clock.time().Add(ticks(moves.Int64N(12)))
							after = layout.packing(other).id(g.place(tick) + moves.Uint64N(g.perTick))
							if g.Advance(after, most) != nil {
								after = -1
							}
						}
						var ids []ID
						if i%2 == 0 {
							ids = take(g, batch)
						} else {
							ids = takeLocally(locals[i], batch)
						}
						if len(ids) > 0 && ids[0] <= after {
							t.Errorf("seed %d: %d after %d", seed, ids[0], after)
						}
						round[i] = append(round[i], ids...)
					}
				})
			}
			all.Wait()
			for i, ids := range round {
				taken[i] = append(taken[i], ids...)
				for _, id := range ids {
					p, err := layout.Decompose(id)
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					begins := layout.TickStart(p.Tick)
					if ends := begins.Add(layout.Tick); ends.After(bound) {
						t.Fatalf("seed %d: %+v ends at %s, the bound is %s", seed, p, ends, bound)
					}
					if begins.Before(floor) {
						t.Fatalf("seed %d: %+v begins at %s, the floor is %s", seed, p, begins, floor)
					}
					latest := clock.time().Add(lookAhead + most)
					if i%2 == 1 {
						latest = shown.Add(lookAhead + most)
					}
					if begins.After(latest) {
						t.Fatalf("seed %d: %+v begins at %s, clock and look-ahead are at %s", seed, p, begins, latest)
					}
				}
			}
		}
		checkUniqueAndAscending(t, seed, taken[:])
	}
}

// The generator decides as its one rule says, written down plainly and in numbers that can't
// overflow: the next ID is at the greater of next and the beginning of the clock's tick; it must lie
// below the bound, and its tick must begin no later than clock, look-ahead and lead.
func TestGeneratorFollowsTheRule(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		layout := randomLayout(r)
		first, last := layout.Epoch.UnixNano(), int64(math.MaxInt64)
		if end := layout.Lifetime(); end.Before(time.Unix(0, last)) {
			last = end.UnixNano() - 1
		}
		// around is an instant near the beginning, the end or the middle of what the layout can express.
		around := func() int64 {
			span := min(last-first, 8*int64(layout.Tick))
			switch r.IntN(3) {
			case 0:
				return first + r.Int64N(span+1)
			case 1:
				return last - r.Int64N(span+1)
			default:
				return first + (last-first)/2 + r.Int64N(span/2+1)
			}
		}
		clock := new(manual)
		clock.Store(around())
		lookAhead := []int64{0, r.Int64N(4 * int64(layout.Tick)), math.MaxInt64}[r.IntN(3)]
		options := []Option{WithClock(clock), WithLookAhead(time.Duration(lookAhead))}
		if r.IntN(2) == 0 {
			options = append(options, WithFloor(time.Unix(0, around())))
		}
		if r.IntN(2) == 0 {
			options = append(options, WithBound(time.Unix(0, around())))
		}
		g, err := NewGenerator(layout, 0, options...)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for range 20 {
			clock.Store(max(around()-r.Int64N(2)*int64(layout.Tick), 0))
			next := g.next.Load()
			if edge := layout.TickStart(int64(next/g.perTick) + r.Int64N(2)).UnixNano(); r.IntN(2) == 0 &&
				edge > first && edge < last {
				// next to where its tick begins or ends, or where the look-ahead lets it begin
				clock.Store(max(edge-lookAhead*r.Int64N(2)+r.Int64N(3)-1, 0))
			}
			now, n := clock.Now(), 1+r.Uint64N(2*g.perTick)
			lead := r.Int64N(2) * r.Int64N(4*int64(layout.Tick))
			g.lead.Store(uint64(lead))
			if next%g.perTick == 0 {
				lead = max(lead-int64(layout.Tick)/8-1, 0)
			}
			want, wantCount, allowed := plainly(g, next, now, lookAhead, lead, n)
			got, count, err := g.reserve(n)
			if allowed != (err == nil) || allowed && (got != want || count != wantCount) {
				t.Fatalf("seed %d: %v, next %d, clock %d, look-ahead %d, %d wanted: got %d at %d, %v; want %d "+
					"at %d, %v",
					seed, layout, next, now-g.epoch, lookAhead, n, count, got, err, wantCount, want, allowed)
			}
		}
	}
}

// plainly is what reserve is to do.
func plainly(g *Generator, next uint64, now, lookAhead, lead int64, n uint64) (place, count uint64, allowed bool) {
	elapsed := now - g.epoch
	if elapsed < 0 {
		return 0, 0, false
	}
	number := func(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
	times := func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }
	tick := number(g.tick)

	clocks := times(new(big.Int).Div(big.NewInt(elapsed), tick), number(g.perTick))
	at := number(next)
	if clocks.Cmp(at) > 0 {
		at = clocks
	}
	begins := times(new(big.Int).Div(at, number(g.perTick)), tick)
	ahead := new(big.Int).Add(big.NewInt(lookAhead), big.NewInt(lead))
	until := new(big.Int).Add(big.NewInt(elapsed), ahead)
	if at.Cmp(number(g.limit.Load())) >= 0 || begins.Cmp(until) > 0 {
		return 0, 0, false
	}
	place = at.Uint64()
	return place, min(n, g.perTick-place%g.perTick, g.limit.Load()-place), true
}

// take takes IDs without waiting: one at a time, or as a batch that is cut off.
func take(g *Generator, batch int) []ID {
	if batch == 1 {
		if id, err := g.TryNext(); err == nil {
			return []ID{id}
		}
		return nil
	}
	place, n, err := g.reserve(uint64(batch))
	if err != nil {
		return nil
	}
	ids := make([]ID, n)
	for i := range ids {
		ids[i] = g.packing.id(place + uint64(i))
	}
	return ids
}

// takeLocally takes IDs of a Local without waiting, in batches of this many places.
func takeLocally(l *Local, batch int) (ids []ID) {
	for range batch {
		l.recent = uint64(batch-1) * batchShare
		if id, err := l.TryNext(); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func checkUniqueAndAscending(t *testing.T, seed uint64, taken [][]ID) {
	t.Helper()
	for i, ids := range taken {
		if !slices.IsSorted(ids) {
			t.Fatalf("seed %d: goroutine %d saw IDs descend", seed, i)
		}
	}
	all := slices.Concat(taken...)
	slices.Sort(all)
	if n := len(all); len(slices.Compact(all)) != n {
		t.Fatalf("seed %d: %d IDs, and some of them twice", seed, n)
	}
}

// Stop is the last word: no call that begins after it gets an ID, and no ID lies at or
// after the instant that it returns.
func TestStopIsTheLastWord(t *testing.T) {
	for range 200 {
		g, err := NewGenerator(Default, 1, WithLookAhead(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		var stopped atomic.Bool
		var all sync.WaitGroup
		last := make([]ID, 4)
		for i := range last {
			next := g.TryNext
			if i%2 == 1 {
				l := g.Local()
				l.recent = 100 * batchShare
				next = l.TryNext
			}
			all.Go(func() {
				for {
					before := stopped.Load()
					id, err := next()
					if err != nil {
						return
					}
					if before {
						t.Errorf("got %d after Stop", id)
					}
					last[i] = id
				}
			})
		}
		used := g.Stop()
		stopped.Store(true)
		all.Wait()
		for _, id := range last {
			if first, err := Default.First(used); id != 0 && (err != nil || id >= first) {
				t.Fatalf("%d lies at or after %s, which Stop returned (%v)", id, used, err)
			}
		}
	}
}
