package peer

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// next takes an ID as soon as there is one.
func next(t *testing.T, s *Sequencer, within time.Duration) firn.ID {
	t.Helper()
	id, err := s.Next(t.Context())
	for deadline := time.Now().Add(within); err != nil; id, err = s.Next(t.Context()) {
		if time.Now().After(deadline) {
			t.Fatalf("no ID after %v: %v", within, err)
		}
		time.Sleep(time.Millisecond)
	}
	return id
}

// TestIDsExceedThoseOfFormerGenerations creates a name again with all kinds of definitions. Half of the time some
// member is cut off while its sequencer is destroyed.
func TestIDsExceedThoseOfFormerGenerations(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		ticks := cluster.Define(layout)
		ticks.Layout.Tick, ticks.Layout.TimeBits, ticks.Layout.SequenceBits = 10*time.Millisecond, 37, 16
		early := cluster.Define(layout)
		early.Layout.Epoch = layout.Epoch.Add(-time.Hour)
		same, few := cluster.Define(layout), cluster.Define(layout)
		few.Nodes = 2
		var greatest firn.ID
		refused := 0
		for round, d := range []cluster.Definition{same, few, same, same, early, few, early, early, ticks} {
			if round%2 == 1 {
				b.client.CutOff(true)
			}
			s, err := a.mem.Load().EnsureSequencer(t.Context(), "orders", d)
			var early *EarlyError
			if errors.As(err, &early) {
				t.Logf("round %d: %v", round, err)
				if early.After < greatest || !early.From.After(time.Now()) {
					t.Errorf("round %d: after %d, from %v; %d was given", round, early.After, early.From, greatest)
				}
				refused++
				b.client.CutOff(false)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if id := next(t, s, time.Second); id <= greatest {
				t.Errorf("round %d: %d after %d", round, id, greatest)
			}
			s2 := s
			if round%2 == 0 {
				if s2, err = b.mem.Load().EnsureSequencer(t.Context(), "orders", d); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(20 * time.Millisecond)
			for _, s := range []*Sequencer{s, s2} {
				greatest = max(greatest, next(t, s, time.Minute))
			}
			if err := a.mem.Load().Destroy(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
			b.client.CutOff(false)
			for _, s := range []*Sequencer{s, s2} {
				if id, err := s.Next(t.Context()); err == nil {
					t.Errorf("round %d: %d after it was destroyed", round, id)
				}
			}
		}
		if refused != 1 { // the epoch an hour later
			t.Errorf("%d were refused, want 1", refused)
		}
	})
}

// TestAMemberThatHasNotReadTheLog goes on to make IDs of a sequencer that others have destroyed and created again
// with another layout. Its IDs do not repeat, and it stops.
func TestAMemberThatHasNotReadTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		b.client.CutOff(true) // from the log and everything
		w.append(cluster.DestroySequencer{Sequencer: DefaultSequencer})
		synctest.Wait()
		small := cluster.Define(layout)
		small.Nodes = 2
		s, err := a.mem.Load().EnsureSequencer(t.Context(), DefaultSequencer, small)
		if err != nil {
			t.Fatal(err)
		}
		var last firn.ID
		for end := time.Now().Add(window - time.Second); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
			if id, err := b.Next(t.Context()); err == nil {
				last = id
			}
		}
		if last == 0 {
			t.Fatal("b made no IDs: the test tried nothing")
		}
		if id := next(t, s, 2*time.Second); id <= last {
			t.Errorf("the new sequencer makes %d, the old one made %d", id, last)
		}
		b.client.CutOff(false)
		time.Sleep(10 * time.Millisecond) // past the horizon of b, up to which a waited
		b.refuses(time.Minute)
	})
}

// TestAfter continues an ID space.
func TestAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		d := cluster.Define(layout)
		last, err := d.Layout.Last(time.Now().Add(10 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		d.After = last
		s, err := m.EnsureSequencer(t.Context(), "near", d)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Ready(); !errors.Is(err, ErrNotReady) ||
			!strings.Contains(err.Error(), "2000-01-01T00:00:10") && !strings.Contains(err.Error(), "00:00:10") {
			t.Errorf("%v, want an ErrNotReady with the time", err)
		}
		if id := next(t, s, 11*time.Second); id <= last || id-last > 1<<24 {
			t.Errorf("%d, want one just above %d", id, last)
		}
		if d.After, err = d.Layout.Last(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		_, err = m.EnsureSequencer(t.Context(), "far", d)
		var early *EarlyError
		if !errors.As(err, &early) || early.After != d.After ||
			early.From.Sub(time.Now().Add(time.Hour)).Abs() > time.Second || !strings.Contains(err.Error(), "do from") {
			t.Errorf("%v, want an EarlyError", err)
		}
		if _, ok := m.Value().Sequencer("far"); ok {
			t.Error("it was created all the same")
		}
		d.After = 0
		d.Layout.Epoch = time.Now().Add(time.Hour)
		if _, err := m.EnsureSequencer(t.Context(), "future", d); !errors.Is(err, firn.ErrLifetime) {
			t.Errorf("an epoch in the future: %v, want ErrLifetime", err)
		}
		d.Layout.Epoch, d.Layout.TimeBits = epoch.Add(-48*time.Hour), 20
		if _, err := m.EnsureSequencer(t.Context(), "over", d); !errors.Is(err, firn.ErrLifetime) {
			t.Errorf("a time that is over: %v, want ErrLifetime", err)
		}
	})
}

// TestAKeyThatCantBeRead: no member makes IDs while it can't read which ones exist.
func TestAKeyThatCantBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		_, err := w.service.Client("test").Commit(t.Context(),
			store.Txn{Then: []store.Op{store.Put("sequencers/orders/generation", []byte("something else"))}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.mem.Load().EnsureSequencer(t.Context(), "orders", cluster.Define(layout))
		if err == nil || !strings.Contains(err.Error(), "sequencers/orders/generation") {
			t.Errorf("%v, want an error with the key", err)
		}
	})
}

// TestAClaimThatComesLate: a member's claim for a sequencer is under way while others destroy the sequencer and
// create it again with another layout, which the member does not learn. The claim is refused, and the member does
// not claim for the new one.
func TestAClaimThatComesLate(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b", func(c *setup) { c.Nodes = wish(5, 5) }) // another node ID than that of a
		a.ready(time.Second)
		b.ready(time.Second)
		var claims atomic.Int64
		b.client.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op != memstore.Commit || len(c.Txn.Then) < 2 ||
				!strings.HasPrefix(c.Txn.Then[1].Key, fencePrefix("orders")+"live/") {
				return memstore.Fault{}
			}
			b.client.Lag(time.Hour) // so that it does not read the log
			if claims.Add(1) == 1 {
				return memstore.Fault{Outcome: memstore.ApplyLate, Delay: time.Second}
			}
			return memstore.Fault{}
		})
		large, small := cluster.Define(layout), cluster.Define(layout)
		small.Nodes = 2
		go func() {
			_, _ = b.mem.Load().EnsureSequencer(t.Context(), "orders", large)
		}()
		synctest.Wait()
		w.append(cluster.DestroySequencer{Sequencer: "orders"})
		synctest.Wait()
		s, err := a.mem.Load().EnsureSequencer(t.Context(), "orders", small)
		if err != nil {
			t.Fatal(err)
		}
		next(t, s, time.Second)
		old, ok := b.mem.Load().Sequencer("orders")
		if !ok || claims.Load() == 0 {
			t.Fatal("b is not about to claim: the test tries nothing")
		}
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
			if id, err := old.Next(t.Context()); err == nil {
				t.Fatalf("%d under node ID %v of a sequencer that is gone", id, old.State())
			}
			if i := w.generationOf("orders"); !i.Definition.Equal(small) {
				t.Fatalf("b has replaced the key of the sequencer that follows: %+v", i)
			}
		}
	})
}

// TestTheNextOneIsNotTakenAway: all begin the next sequencer of a name at once, and none of them loses the node ID that
// it got, because another is late to take away those of the one before.
func TestTheNextOneIsNotTakenAway(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var log logbook
		nodes := w.startMany("n", 8, func(c *setup) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		w.service.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.List { // so that it finds what others have claimed meanwhile
				return memstore.Fault{Delay: rand.N(100 * time.Millisecond)}
			}
			return memstore.Fault{Delay: rand.N(10 * time.Millisecond)}
		})
		for range 30 {
			if _, err := nodes[0].mem.Load().Create(t.Context(), "orders", cluster.Define(layout)); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for _, n := range nodes {
				all.Go(func() {
					if _, err := n.mem.Load().Attach(t.Context(), "orders"); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			time.Sleep(window)
			if err := nodes[0].mem.Load().Destroy(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
		}
		if lost := strings.Count(log.String(), "lost the node ID"); lost > 0 {
			t.Errorf("%d node IDs were lost", lost)
		}
	})
}

// TestScatteredAndPlainGenerationsDoNotMix: an ID of one could be equal to one of the other. A generation that made no
// ID does not count.
func TestScatteredAndPlainGenerationsDoNotMix(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		plain, scattered := cluster.Define(layout), cluster.Define(layout)
		scattered.Scattered = true
		seen := map[firn.ID]bool{}
		for round, tt := range []struct {
			d       cluster.Definition
			take    bool
			refused bool
		}{
			{d: plain},                 // nobody attaches
			{d: scattered, take: true}, // so the other kind is as good
			{d: plain, refused: true},
			{d: scattered},
			{d: plain, refused: true}, // the one before made no ID, but that before it
			{d: scattered, take: true},
		} {
			if _, err := m.Create(t.Context(), "orders", tt.d); (err != nil) != tt.refused {
				t.Fatalf("round %d: %v", round, err)
			} else if tt.refused {
				var early *EarlyError
				if !errors.As(err, &early) || !early.Mixed || !strings.Contains(err.Error(), "an ID could come again") {
					t.Errorf("round %d: %v, want an EarlyError", round, err)
				}
				// Another member that does not look first creates it all the same. Nobody makes IDs of it.
				w.append(cluster.CreateSequencer{Sequencer: "orders", Definition: tt.d})
				synctest.Wait()
				s, err := m.EnsureSequencer(t.Context(), "orders", tt.d)
				if err != nil {
					t.Fatal(err)
				}
				if id, err := s.Next(t.Context()); !errors.As(err, &early) {
					t.Errorf("round %d: %d, %v, want an EarlyError", round, id, err)
				}
			}
			if tt.take {
				s, err := m.EnsureSequencer(t.Context(), "orders", tt.d)
				if err != nil {
					t.Fatal(err)
				}
				for range 100 {
					id := next(t, s, time.Second)
					if seen[id] {
						t.Errorf("round %d: %d comes again", round, id)
					}
					seen[id] = true
				}
			}
			if err := m.Destroy(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestScatteredIDs: whatever a sequencer gives is scattered, comes in the order in which it was made once it is
// gathered, and is decoded as it was made.
func TestScatteredIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		layout := layout
		layout.SequenceBits = 2 // so that callers wait for the clock
		d := cluster.Define(layout)
		d.Scattered = true
		s, err := a.mem.Load().EnsureSequencer(t.Context(), "orders", d)
		if err != nil {
			t.Fatal(err)
		}
		from, err := layout.First(time.Now().Add(-time.Second))
		if err != nil {
			t.Fatal(err)
		}
		ids := []firn.ID{next(t, s, time.Second)}
		for range 20 {
			some := make([]firn.ID, 50)
			if err := s.Fill(t.Context(), some); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, some...)
			if err := s.FillAfter(t.Context(), ids[len(ids)-1], MaxAhead, some); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, some...)
			for range 50 {
				ids = append(ids, next(t, s, time.Second))
			}
		}
		ascending := 0
		for i, id := range ids {
			made := firn.Gather(id)
			p, err := s.Parts(id)
			want, err2 := layout.Decompose(made)
			if made < from || err != nil || err2 != nil || p != want {
				t.Fatalf("%d was made as %d, and has the parts %+v, %v; want %+v", id, made, p, err, want)
			}
			if i > 0 && made <= firn.Gather(ids[i-1]) {
				t.Errorf("%d was made after %d", firn.Gather(ids[i-1]), made)
			}
			if i > 0 && id > ids[i-1] {
				ascending++
			}
		}
		if ascending > len(ids)*2/3 {
			t.Errorf("%d of %d IDs exceed the one before: they are not scattered", ascending, len(ids))
		}
	})
}

// The sequence of a tick begins at a random number where the definition says so, and else at 0.
func TestRandomStartIsOfTheDefinition(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		for _, random := range []bool{false, true} {
			d := cluster.Define(layout)
			d.RandomStart = random
			s, err := a.mem.Load().EnsureSequencer(t.Context(), fmt.Sprint("random-", random), d)
			if err != nil {
				t.Fatal(err)
			}
			begun := 0
			for range 20 {
				p, err := s.Parts(next(t, s, time.Second))
				if err != nil {
					t.Fatal(err)
				}
				if p.Sequence != 0 {
					begun++
				}
				time.Sleep(10 * time.Millisecond)
			}
			if (begun > 0) != random {
				t.Errorf("a random start: %t; %d of 20 ticks begin above 0", random, begun)
			}
		}
	})
}

// Another member creates the sequencer while this one looks what was there before, and has a longer window: its horizon
// is not that of a former generation.
func TestOneThatIsCreatedMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b", func(c *setup) { c.Window = window / 3 })
		a.ready(time.Second)
		b.ready(time.Second)
		var once sync.Once
		b.client.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.Get && strings.Contains(c.Key, "orders") {
				once.Do(func() {
					if _, err := a.mem.Load().
						EnsureSequencer(t.Context(), "orders", cluster.Define(layout)); err != nil {
						t.Error(err)
					}
				})
			}
			return memstore.Fault{}
		})
		s, err := b.mem.Load().EnsureSequencer(t.Context(), "orders", cluster.Define(layout))
		if err != nil {
			t.Fatal(err)
		}
		next(t, s, time.Second)
	})
}
