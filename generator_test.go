package firn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// manual is a clock that shows what it was last set to.
type manual struct{ atomic.Int64 }

func (m *manual) Now() int64                { return m.Load() }
func (m *manual) set(t time.Time)           { m.Store(t.UnixNano()) }
func (m *manual) pass(d time.Duration)      { m.Add(int64(d)) }
func (m *manual) time() time.Time           { return time.Unix(0, m.Load()) }
func at(ms int) time.Time                   { return Default.Epoch.Add(time.Duration(ms) * time.Millisecond) }
func newManual(t time.Time) (clock *manual) { clock = new(manual); clock.set(t); return clock }

// tiny has four IDs per tick.
var tiny = Layout{Epoch: Default.Epoch, Tick: time.Millisecond, TimeBits: 41, NodeBits: 10, SequenceBits: 2}

func newGenerator(t *testing.T, l Layout, options ...Option) *Generator {
	t.Helper()
	g, err := NewGenerator(l, 1&(l.NodeIDs()-1), options...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// places takes IDs until there is an error, as tick and sequence.
func places(t *testing.T, g *Generator, most int) (got [][2]int64, err error) {
	t.Helper()
	for range most {
		id, err := g.TryNext()
		if err != nil {
			return got, err
		}
		p, err := g.Layout().Decompose(id)
		if err != nil {
			t.Fatal(err)
		}
		if id := p.Datacenter<<g.Layout().NodeBits | p.Node; id != g.NodeID() {
			t.Fatalf("node ID %d in an ID of %d", id, g.NodeID())
		}
		got = append(got, [2]int64{p.Tick, p.Sequence})
	}
	return got, nil
}

// wants is places that must come out so.
func wants(t *testing.T, g *Generator, most int, wantErr error, want ...[2]int64) {
	t.Helper()
	got, err := places(t, g, most)
	if !slices.Equal(got, want) || !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
		t.Errorf("got %v, %v\nwant %v, %v", got, err, want, wantErr)
	}
}

func TestNextTick(t *testing.T) {
	clock := newManual(at(5))
	g := newGenerator(t, tiny, WithClock(clock), WithLookAhead(0))
	wants(t, g, 2, nil, [2]int64{5, 0}, [2]int64{5, 1})
	clock.pass(2*time.Millisecond - 1)
	wants(t, g, 1, nil, [2]int64{6, 0})
}

func TestExhaustedSequenceCarriesIntoTheNextTick(t *testing.T) {
	clock := newManual(at(5))
	g := newGenerator(t, tiny, WithClock(clock), WithLookAhead(0))
	wants(t, g, 9, ErrNotYet, [2]int64{5, 0}, [2]int64{5, 1}, [2]int64{5, 2}, [2]int64{5, 3})
	clock.pass(time.Millisecond)
	wants(t, g, 2, nil, [2]int64{6, 0}, [2]int64{6, 1})
}

func TestClockThatStepsBackIsWaitedFor(t *testing.T) {
	clock := newManual(at(5))
	g := newGenerator(t, tiny, WithClock(clock), WithLookAhead(0))
	wants(t, g, 1, nil, [2]int64{5, 0})
	clock.set(at(4))
	wants(t, g, 1, ErrNotYet)
	clock.set(at(-4000))
	wants(t, g, 1, ErrNotYet)
	clock.set(at(5))
	wants(t, g, 1, nil, [2]int64{5, 1})
}

func TestLookAheadIsUsedUnderSaturationOnly(t *testing.T) {
	clock := newManual(at(5))
	g := newGenerator(t, tiny, WithClock(clock), WithLookAhead(2*time.Millisecond))
	got, err := places(t, g, 99)
	if last := got[len(got)-1]; len(got) != 12 || last != [2]int64{7, 3} || !errors.Is(err, ErrNotYet) {
		t.Errorf("%d IDs, the last at %v, then %v; want 12 of the ticks 5 to 7", len(got), last, err)
	}
	clock.set(at(20))
	wants(t, g, 1, nil, [2]int64{20, 0})
}

func TestFloorIsRoundedUpToATick(t *testing.T) {
	clock := newManual(at(5))
	g := newGenerator(t, tiny, WithClock(clock), WithLookAhead(0), WithFloor(at(6).Add(1)))
	wants(t, g, 1, ErrNotYet)
	clock.set(at(6))
	wants(t, g, 1, ErrNotYet)
	clock.set(at(7))
	wants(t, g, 1, nil, [2]int64{7, 0})
}

func TestBoundIsRoundedDownToATick(t *testing.T) {
	clock := newManual(at(5))
	g := newGenerator(t, tiny, WithClock(clock), WithBound(at(6).Add(-1)))
	wants(t, g, 1, ErrBound)
	g.SetBound(at(6).Add(999_999))
	wants(t, g, 9, ErrBound, [2]int64{5, 0}, [2]int64{5, 1}, [2]int64{5, 2}, [2]int64{5, 3})
	g.SetBound(at(3))
	g.SetBound(at(7))
	clock.set(at(90))
	wants(t, g, 9, ErrBound)
}

func TestEndOfTheTimeBits(t *testing.T) {
	l := Layout{Epoch: Default.Epoch, Tick: time.Millisecond, TimeBits: 3, SequenceBits: 1}
	clock := newManual(at(7))
	g := newGenerator(t, l, WithClock(clock), WithLookAhead(time.Second))
	wants(t, g, 9, ErrLifetime, [2]int64{7, 0}, [2]int64{7, 1})
	clock.set(at(8))
	wants(t, g, 9, ErrLifetime)
	for _, now := range []time.Time{at(8), at(-1), time.Unix(0, 0)} {
		if _, err := NewGenerator(l, 0, WithClock(newManual(now))); !errors.Is(err, ErrLifetime) {
			t.Errorf("a generator at %s: %v", now, err)
		}
	}
}

func TestNewGeneratorRejects(t *testing.T) {
	if _, err := NewGenerator(Layout{}, 0); err == nil {
		t.Error("the zero layout: no error")
	}
	for _, node := range []int64{-1, 1024} {
		if _, err := NewGenerator(Default, node); err == nil {
			t.Errorf("node ID %d: no error", node)
		}
	}
}

func TestStopReturnsTheEndOfTheLastTickUsed(t *testing.T) {
	clock := newManual(at(5))
	g := newGenerator(t, tiny, WithClock(clock), WithFloor(at(4)))
	if used := g.Stop(); !used.IsZero() {
		t.Errorf("an unused generator was used until %s", used)
	}
	g = newGenerator(t, tiny, WithClock(clock))
	wants(t, g, 4, nil, [2]int64{5, 0}, [2]int64{5, 1}, [2]int64{5, 2}, [2]int64{5, 3})
	for range 2 {
		if used := g.Stop(); !used.Equal(at(6)) {
			t.Errorf("used until %s, want the end of tick 5", used)
		}
	}
	clock.set(at(90))
	g.SetBound(at(100))
	wants(t, g, 1, ErrStopped)
	if _, err := g.Next(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("Next after Stop: %v", err)
	}
	if err := g.Fill(t.Context(), make([]ID, 3)); !errors.Is(err, ErrStopped) {
		t.Errorf("Fill after Stop: %v", err)
	}
}

func TestRandomStartLeavesHalfOfATick(t *testing.T) {
	clock := newManual(at(0))
	g := newGenerator(t, Default, WithClock(clock), WithRandomStart())
	starts := map[int64]bool{}
	for tick := range int64(100) {
		clock.set(at(int(tick)))
		got, err := places(t, g, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got[0][0] != tick || got[0][1] >= 2048 || got[1] != [2]int64{tick, got[0][1] + 1} {
			t.Fatalf("tick %d begins with %v", tick, got)
		}
		starts[got[0][1]] = true
	}
	if len(starts) < 50 {
		t.Errorf("100 ticks began at only %d places", len(starts))
	}
}

// TestWhatRandomStartHides: at which rate IDs are made is not seen in one of them, and is in two of one tick.
func TestWhatRandomStartHides(t *testing.T) {
	const ticks = 2000
	mean := map[int]float64{}
	for _, before := range []int{1, 80} { // how many were made in the tick before the one that somebody sees
		clock := newManual(at(0))
		g := newGenerator(t, Default, WithClock(clock), WithRandomStart())
		for tick := range ticks {
			clock.set(at(tick))
			got, err := places(t, g, before+1)
			if err != nil {
				t.Fatal(err)
			}
			seen := got[before]
			mean[before] += float64(seen[1]) / ticks
			if between := seen[1] - got[0][1]; between != int64(before) {
				t.Fatalf("the difference of two IDs of tick %d is %d, want %d, as many as were made", tick,
					between, before)
			}
		}
	}
	// The place of a single ID is any of 2048 with equal chance, and then as many further as came before it. The mean
	// of as many ticks is off by 13 (one standard deviation): that of one ID, by 591.
	if least, most := 1023.0, 1105.0; min(mean[1], mean[80]) < least-80 || max(mean[1], mean[80]) > most+80 {
		t.Errorf("a single ID lies at %v on average; want it near %v, however many came before", mean, least)
	}
}

func TestFillTakesConsecutiveIDs(t *testing.T) {
	for _, p := range Presets() {
		clock := newManual(p.Epoch.Add(time.Hour))
		g := newGenerator(t, p.Layout, WithClock(clock), WithLookAhead(time.Hour))
		ids := make([]ID, 3*int(1<<p.SequenceBits)+5)
		if err := g.Fill(t.Context(), ids[:5]); err != nil {
			t.Fatal(err)
		}
		if err := g.Fill(t.Context(), ids[5:]); err != nil {
			t.Fatal(err)
		}
		first, _ := p.TickAt(clock.time())
		for i, id := range ids {
			want := Parts{Tick: first + int64(i>>p.SequenceBits), Node: 1, Sequence: int64(i & (1<<p.SequenceBits - 1))}
			if got, err := p.Decompose(id); got != want || err != nil {
				t.Fatalf("%s: ID %d is %+v, %v, want %+v", p.Name, i, got, err, want)
			}
		}
	}
}

func TestFillGivesNothingAfterAnError(t *testing.T) {
	g := newGenerator(t, tiny, WithClock(newManual(at(5))), WithBound(at(6)), FailAtBound())
	ids := make([]ID, 5)
	if err := g.Fill(t.Context(), ids); !errors.Is(err, ErrBound) {
		t.Errorf("5 IDs where there are 4: %v", err)
	}
	if slices.Max(ids) != 0 {
		t.Errorf("after the error there is %v", ids)
	}
	if err := g.Fill(t.Context(), nil); err != nil {
		t.Errorf("no IDs: %v", err)
	}
}

// What waits, ends: with the clock, with the bound, with Stop, with the context.
func TestNextWaits(t *testing.T) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when every bubble begins
	layout := tiny
	layout.Epoch = begin
	clockAhead, boundHere := WithFloor(begin.Add(time.Minute)), WithBound(begin)
	moveBound := func(g *Generator, _ func()) { g.SetBound(begin.Add(time.Hour)) }
	stop := func(g *Generator, _ func()) { g.Stop() }
	cancel := func(_ *Generator, cancel func()) { cancel() }
	nothing := func(*Generator, func()) {}

	for _, c := range []struct {
		name    string
		option  Option
		happens func(g *Generator, cancel func())
		want    []error
	}{
		{"until the clock gets there", clockAhead, nothing, []error{nil}},
		{"until the bound moves", boundHere, moveBound, []error{nil}},
		{"for the bound until stopped", boundHere, stop, []error{ErrStopped}},
		{"for the clock until stopped", clockAhead, stop, []error{ErrStopped}},
		{"for the clock until cancelled", clockAhead, cancel, []error{ErrNotYet, context.Canceled}},
		{"for the bound until cancelled", boundHere, cancel, []error{ErrBound, context.Canceled}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGenerator(t, layout, c.option)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				results := make(chan error, 8)
				for range cap(results) {
					go func() {
						_, err := g.Next(ctx)
						results <- err
					}()
				}
				synctest.Wait()
				if len(results) > 0 {
					t.Fatalf("it did not wait: %v", <-results)
				}
				c.happens(g, cancel)
				for range cap(results) {
					err := <-results
					for _, want := range c.want {
						if !errors.Is(err, want) {
							t.Errorf("error %v, want %v", err, want)
						}
					}
				}
			})
		})
	}
}

func TestNextFailsAtTheBoundIfToldTo(t *testing.T) {
	g := newGenerator(t, tiny, WithClock(newManual(at(5))), WithBound(at(5)), FailAtBound())
	if _, err := g.Next(t.Context()); !errors.Is(err, ErrBound) {
		t.Errorf("got %v", err)
	}
}

// A saturated generator sleeps, and still gives every ID that its layout has.
func TestSaturatedGeneratorReachesTheFullRate(t *testing.T) {
	for _, callers := range []int{1, 2, 64} {
		synctest.Test(t, func(t *testing.T) {
			layout := Default
			layout.Epoch = time.Now()
			g := newGenerator(t, layout)
			var left atomic.Int64
			left.Store(4096 * 1000)
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					ids := make([]ID, 100)
					for left.Add(-int64(len(ids))) >= 0 {
						if err := g.Fill(t.Context(), ids); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if took := time.Since(layout.Epoch); took > time.Second {
				t.Errorf("%d callers: 4 096 000 IDs took %v", callers, took)
			}
		})
	}
}

// The hot path allocates nothing.
func TestNextAllocatesNothing(t *testing.T) {
	g := newGenerator(t, Layout{Epoch: Default.Epoch, Tick: time.Millisecond, TimeBits: 41, SequenceBits: 22})
	ctx, ids := t.Context(), make([]ID, 1024)
	for name, f := range map[string]func(){
		"Next":    func() { _, _ = g.Next(ctx) },
		"TryNext": func() { _, _ = g.TryNext() },
		"Fill":    func() { _ = g.Fill(ctx, ids) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// Stops at one time return the same: who finds a generator stopped, under its lock, finds the end of its use, too.
func TestConcurrentStopsReturnTheSame(t *testing.T) {
	clock := newManual(at(5))
	for range 1000 {
		g := newGenerator(t, tiny, WithClock(clock))
		wants(t, g, 1, nil, [2]int64{5, 0})
		var first, second time.Time
		var all sync.WaitGroup
		all.Go(func() { first = g.Stop() })
		all.Go(func() { second = g.Stop() })
		for found := false; !found; {
			g.mu.Lock()
			if found = g.next.Load() == stopped; found && !g.used.Equal(at(6)) {
				t.Errorf("it is stopped, and was used until %v; want %v", g.used, at(6))
			}
			g.mu.Unlock()
		}
		all.Wait()
		if t.Failed() || !first.Equal(at(6)) || !second.Equal(at(6)) {
			t.Fatalf("stops at one time returned %v and %v; want %v twice", first, second, at(6))
		}
	}
}
