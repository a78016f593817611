package member

import (
	"context"
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
	"github.com/firn-id/firn/cluster"
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

// TestIDsExceedThoseOfFormerIncarnations creates a name anew with all kinds of definitions. Half of the time some member is cut
// off while its sequencer is destroyed.
func TestIDsExceedThoseOfFormerIncarnations(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		a.ready(time.Second)
		b.ready(time.Second)
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
			s, err := a.mem.Load().Sequencer(t.Context(), "orders", d)
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
				if s2, err = b.mem.Load().Sequencer(t.Context(), "orders", d); err != nil {
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

// TestAMemberThatHasNotReadTheLog goes on to make IDs of a sequencer that others have destroyed and created anew with
// another layout. What it makes is not made again, and it comes to an end.
func TestAMemberThatHasNotReadTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		a.ready(time.Second)
		b.ready(time.Second)
		b.client.CutOff(true) // from the log and everything
		w.append(cluster.DestroySequencer{Sequencer: DefaultSequencer})
		synctest.Wait()
		small := cluster.Define(layout)
		small.Nodes = 2
		s, err := a.mem.Load().Sequencer(t.Context(), DefaultSequencer, small)
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
			t.Fatal("it stopped at once: nothing was tried")
		}
		if id := next(t, s, 2*time.Second); id <= last {
			t.Errorf("the new one gives %d, the old one gave %d", id, last)
		}
		b.client.CutOff(false)
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
		s, err := m.Sequencer(t.Context(), "near", d)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Ready(); !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "2000-01-01T00:00:10") && !strings.Contains(err.Error(), "00:00:10") {
			t.Errorf("%v, want an ErrNotReady with the time", err)
		}
		if id := next(t, s, 11*time.Second); id <= last || id-last > 1<<24 {
			t.Errorf("%d, want one just above %d", id, last)
		}
		if d.After, err = d.Layout.Last(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		_, err = m.Sequencer(t.Context(), "far", d)
		var early *EarlyError
		if !errors.As(err, &early) || early.After != d.After || early.From.Sub(time.Now().Add(time.Hour)).Abs() > time.Second || !strings.Contains(err.Error(), "do from") {
			t.Errorf("%v, want an EarlyError", err)
		}
		if _, ok := m.Value().Sequencer("far"); ok {
			t.Error("it was created all the same")
		}
		d.After = 0
		d.Layout.Epoch = time.Now().Add(time.Hour)
		if _, err := m.Sequencer(t.Context(), "future", d); !errors.Is(err, firn.ErrLifetime) {
			t.Errorf("an epoch in the future: %v, want ErrLifetime", err)
		}
		d.Layout.Epoch, d.Layout.TimeBits = epoch.Add(-48*time.Hour), 20
		if _, err := m.Sequencer(t.Context(), "over", d); !errors.Is(err, firn.ErrLifetime) {
			t.Errorf("a time that is over: %v, want ErrLifetime", err)
		}
	})
}

// TestAKeyThatCantBeRead: nobody makes IDs when it is not known what they must not repeat.
func TestAKeyThatCantBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		_, err := w.service.Client("test").Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("sequencers/orders/incarnation", []byte("something else"))}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.mem.Load().Sequencer(t.Context(), "orders", cluster.Define(layout))
		if err == nil || !strings.Contains(err.Error(), "sequencers/orders/incarnation") {
			t.Errorf("%v, want an error with the key", err)
		}
	})
}

// TestNoIDComesAgain has members create, attach to, detach from and destroy sequencers of two names with all
// kinds of definitions, over a store that delays, loses and reorders, crash and come back. No ID of a name is given
// twice, whatever the incarnations.
func TestNoIDComesAgain(t *testing.T) {
	total, destroyed := 0, 0
	for seed := range uint64(25) {
		inBubble(t, func(t *testing.T, w *world) {
			r := rand.New(rand.NewPCG(seed, 4))
			var mu sync.Mutex
			chance := func(n int) bool {
				mu.Lock()
				defer mu.Unlock()
				return r.IntN(n) == 0
			}
			pick := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return r.IntN(n)
			}
			upTo := func(d time.Duration) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(r.Int64N(int64(d)))
			}
			hostile := func(memstore.Call) memstore.Fault {
				if !chance(8) {
					return memstore.Fault{}
				}
				outcomes := []memstore.Outcome{memstore.Answered, memstore.FailBefore, memstore.FailAfter, memstore.ApplyLate}
				return memstore.Fault{Outcome: outcomes[pick(4)], Delay: upTo(8 * time.Second)}
			}
			given := map[string]map[firn.ID]string{"one": {}, "two": {}}
			var nodes []*node
			ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
			defer stop()
			var all sync.WaitGroup
			for i := range 4 {
				n := w.start(fmt.Sprint("n", i), func(c *setup) { c.Window = 6 * time.Second })
				nodes = append(nodes, n)
				n.settled()
				n.client.Inject(hostile)
				all.Go(func() {
					for ctx.Err() == nil {
						name := []string{"one", "two"}[pick(2)]
						d := cluster.Define(layout)
						d.Nodes = []int64{1, 2, 3, 64, 1024}[pick(5)]
						within, cancel := context.WithTimeout(ctx, time.Duration(pick(20))*time.Second)
						m := n.mem.Load()
						s, err := m.Sequencer(within, name, d)
						if err != nil {
							s, err = m.Attach(within, name)
						}
						if err == nil {
							for range pick(400) {
								id, err := s.Next(within)
								if err != nil {
									break
								}
								mu.Lock()
								if by := given[name][id]; by != "" {
									t.Errorf("seed %d: %s gives %d of %s, which %s gave", seed, n.name, id, name, by)
								}
								given[name][id] = n.name
								mu.Unlock()
								time.Sleep(time.Duration(pick(5)) * time.Millisecond)
							}
							if chance(3) {
								_ = s.Detach(within)
							}
						}
						if chance(4) && m.Destroy(within, name) == nil {
							mu.Lock()
							destroyed++
							mu.Unlock()
						}
						cancel()
						time.Sleep(time.Duration(pick(300)) * time.Millisecond)
					}
				})
			}
			for ctx.Err() == nil {
				n := nodes[pick(len(nodes))]
				switch pick(4) {
				case 0:
					n.client.CutOff(true)
					time.Sleep(upTo(12 * time.Second))
					n.client.CutOff(false)
				case 1:
					w.service.Expire(n.session())
				case 2:
					n.wall.step(upTo(4*time.Second) - 2*time.Second)
				}
				time.Sleep(upTo(10 * time.Second))
			}
			all.Wait()
			for _, n := range nodes {
				n.client.Inject(nil)
			}
			total += len(given["one"]) + len(given["two"])
		})
	}
	t.Logf("%d IDs, %d times destroyed", total, destroyed)
	if total < 100_000 || destroyed < 50 {
		t.Errorf("%d IDs, %d times destroyed: that is not enough to show anything", total, destroyed)
	}
}

// TestAClaimThatComesLate: a member's claim for a sequencer is under way while that is destroyed and created anew with
// another layout, of which the member does not hear. The claim is refused, and the member does not claim for the new
// one, whose layout it does not know.
func TestAClaimThatComesLate(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b", func(c *setup) { c.Nodes = wish(5, 5) }) // another node ID than that of a
		a.ready(time.Second)
		b.ready(time.Second)
		var claims atomic.Int64
		b.client.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op != memstore.Commit || len(c.Txn.Then) < 2 || !strings.HasPrefix(c.Txn.Then[1].Key, fencePrefix("orders")+"live/") {
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
			_, _ = b.mem.Load().Sequencer(t.Context(), "orders", large)
		}()
		synctest.Wait()
		w.append(cluster.DestroySequencer{Sequencer: "orders"})
		synctest.Wait()
		s, err := a.mem.Load().Sequencer(t.Context(), "orders", small)
		if err != nil {
			t.Fatal(err)
		}
		next(t, s, time.Second)
		old, ok := b.mem.Load().Find("orders")
		if !ok || claims.Load() == 0 {
			t.Fatal("b is not about to claim: nothing is tried")
		}
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
			if id, err := old.Next(t.Context()); err == nil {
				t.Fatalf("%d under node ID %v of a sequencer that is gone", id, old.State())
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
