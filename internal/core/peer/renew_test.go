package peer

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/attachment"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// many attaches a member to so many sequencers beside the default one.
func (n *node) many(count int) []*Sequencer {
	n.world.t.Helper()
	var all []*Sequencer
	for i := range count {
		s, err := n.mem.Load().
			EnsureSequencer(n.world.t.Context(), fmt.Sprintf("orders-%03d", i), cluster.Define(layout))
		if err != nil {
			n.world.t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// TestAllFencesInOneTransaction counts what extending costs the store: a round every third of a window, and in it
// one transaction for each 64 sequencers, where the pulse finds room in the last one, or needs its own.
func TestAllFencesInOneTransaction(t *testing.T) {
	for _, c := range []struct{ sequencers, perRound int }{{1, 1}, {10, 1}, {63, 1}, {64, 2}, {65, 2}, {200, 4}} {
		inBubble(t, func(t *testing.T, w *world) {
			a := w.start("a")
			a.ready(time.Second)
			all := append(a.many(c.sequencers-1), a.seq.Load())
			// all are in step, and no round begins at the instant at which counting does or ends
			time.Sleep(window + time.Second)
			var commits atomic.Int64
			a.client.Inject(func(c memstore.Call) memstore.Fault {
				if c.Op == memstore.Commit && !strings.HasPrefix(c.Txn.Then[0].Key, history) {
					commits.Add(1)
				}
				return memstore.Fault{}
			})
			const windows = 10
			time.Sleep(windows * window)
			if have, want := commits.Load(), int64(windows*3*c.perRound); have != want {
				t.Errorf("%d sequencers: %d transactions in %d windows, want %d", c.sequencers, have, windows, want)
			}
			for _, s := range all {
				if _, err := s.Next(t.Context()); err != nil {
					t.Errorf("%s: %v", s.Name(), err)
				}
				if left := time.Until(s.status.Load().inUse().fence.Horizon()); left < 2*window/3-time.Second {
					t.Errorf("%s has %v left", s.Name(), left)
				}
			}
		})
	}
}

// TestOneOfManyIsLost: it gets another node ID, and the others do not notice.
func TestOneOfManyIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		all := a.many(100)
		lost := all[37]
		node := lost.State().Node
		thief := w.service.Client("thief")
		_, err := thief.Commit(t.Context(),
			store.Txn{Then: []store.Op{store.Delete(fmt.Sprintf("%slive/%d", lost.fences.Prefix, node))}})
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(2 * window); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			for _, s := range all {
				if _, err := s.Next(t.Context()); err != nil {
					t.Fatalf("%s after %v: %v", s.Name(), time.Since(epoch), err)
				}
			}
		}
		if kv, err := thief.List(t.Context(), lost.fences.Prefix+"live/"); err != nil || len(kv) != 1 {
			t.Errorf("it holds %v %v", kv, err)
		}
	})
}

// TestAStepIsBelievedForAllSequencersOrNone: a member has one clock.
func TestAStepIsBelievedForAllSequencersOrNone(t *testing.T) {
	t.Run("contradicted", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			a, b := w.two()
			w.start("c").ready(time.Second)
			all := a.many(3) // in which it is alone
			a.wall.step(time.Hour)
			time.Sleep(window + time.Second)
			for range 600 {
				for _, s := range all {
					if id, err := s.Next(t.Context()); err == nil {
						t.Fatalf("%s gives %d", s.Name(), id)
					}
					if h := s.status.Load().inUse(); h.fence != nil &&
						h.fence.Horizon().After(time.Now().Add(window)) {
						t.Fatalf("%s has the horizon %v", s.Name(), h.fence.Horizon())
					}
				}
				time.Sleep(time.Second)
			}
			a.wall.step(-time.Hour)
			for _, s := range all {
				next(t, s, 5*time.Second)
			}
			b.serves(time.Second)
		})
	})
	t.Run("alone", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			a := w.start("a")
			a.ready(time.Second)
			all := append(a.many(3), a.seq.Load())
			last := make([]firn.ID, len(all))
			for i, s := range all {
				last[i] = next(t, s, time.Second)
			}
			a.wall.step(time.Hour)
			for end := time.Now().Add(3 * window); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				for i, s := range all {
					if id, err := s.Next(t.Context()); err == nil && id <= last[i] {
						t.Fatalf("%s gives %d after %d", s.Name(), id, last[i])
					} else if err == nil {
						last[i] = id
					}
				}
			}
			for i, s := range all {
				p, _ := s.Parts(last[i])
				if off := layout.TickStart(p.Tick).Sub(time.Now().Add(time.Hour)).Abs(); off > time.Second {
					t.Errorf("IDs of %s are %v away from the wall", s.Name(), off)
				}
			}
		})
	})
}

// A floor or a horizon that the clock reaches right after a look is not slept through.
func TestAFloorThatIsReachedRightAfterTheLook(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		used := a.mem.Load().Sequencers()[0]
		for _, phase := range []attachment.Phase{attachment.Claimed, attachment.Expiring} {
			s := &Sequencer{m: used.m, name: used.name, layout: used.layout, fences: used.fences}
			st := *used.status.Load()
			st.state.Tenures[0].Phase = phase
			s.status.Store(&st)
			time.Sleep(2 * window) // past the horizon that the copy knows
			if wait := s.untilNext(nil); wait > window/3 {
				t.Errorf("a sequencer whose tenure is %v looks again in %v", phase, wait)
			}
		}
	})
}

// TestAWindowOfItsOwn counts what a sequencer with a short window costs: a round every third of that, while the others
// are renewed as before. Its IDs go up to its own horizon, and its node ID is free soon after a crash.
func TestAWindowOfItsOwn(t *testing.T) {
	const brief = 3 * time.Second
	scarce := cluster.Define(layout)
	scarce.Nodes, scarce.Window = 1, brief
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		all := a.many(10)
		s, err := a.mem.Load().EnsureSequencer(t.Context(), "scarce", scarce)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(window + 500*time.Millisecond)
		var mu sync.Mutex // guards rounds
		rounds := map[bool]int{}
		a.client.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.Commit && !strings.HasPrefix(c.Txn.Then[0].Key, "history/") {
				ofScarce := strings.HasPrefix(c.Txn.Then[len(c.Txn.Then)-1].Key, s.fences.Prefix)
				if want := 11; !ofScarce && len(c.Txn.Then) < want {
					t.Errorf("a round of %d operations, want %d horizons at least", len(c.Txn.Then), want)
				}
				mu.Lock()
				defer mu.Unlock()
				rounds[ofScarce]++
			}
			return memstore.Fault{}
		})
		time.Sleep(10 * window)
		mu.Lock()
		if rounds[true] != 300 || rounds[false] != 30 {
			t.Errorf("%d rounds for the short window and %d for the others, want 300 and 30",
				rounds[true], rounds[false])
		}
		mu.Unlock()
		a.client.Inject(nil)
		if left := time.Until(s.status.Load().inUse().fence.Horizon()); left > brief || left < brief/2 {
			t.Errorf("it has %v left", left)
		}
		if left := time.Until(all[0].status.Load().inUse().fence.Horizon()); left < window/2 {
			t.Errorf("another has %v left", left)
		}

		b := w.start("b")
		b.ready(time.Second)
		other, err := b.mem.Load().EnsureSequencer(t.Context(), "scarce", scarce)
		if err != nil || !errors.Is(other.Ready(), ErrWaiting) {
			t.Fatal(other, err)
		}
		a.client.CutOff(true)
		began := time.Now()
		time.Sleep(brief / 2)
		next(t, s, 0)
		time.Sleep(brief/2 + time.Millisecond)
		if id, err := s.Next(t.Context()); err == nil {
			t.Errorf("it gives %d beyond its horizon", id)
		}
		a.serves(window / 2) // of another
		next(t, other, ttl)
		if took := time.Since(began); took > ttl+10*time.Millisecond {
			t.Errorf("another took over after %v, want that once the session has ended", took)
		}
		a.client.CutOff(false)
		if err := b.mem.Load().Destroy(t.Context(), "scarce"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(brief)
		m := b.mem.Load()
		m.keeper.mu.Lock()
		defer m.keeper.mu.Unlock()
		if len(m.keeper.windows) != 1 {
			t.Errorf("it renews the windows %v, want one", m.keeper.windows)
		}
	})
	inBubble(t, func(t *testing.T, w *world) { // a member's own window may be shorter
		a := w.start("a", func(c *setup) { c.Window, c.definition.Window = 5*time.Second, time.Minute })
		a.ready(time.Second)
		a.client.CutOff(true)
		time.Sleep(5*time.Second + time.Millisecond)
		a.refuses(time.Second)
	})
}
