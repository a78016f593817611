package peer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// startsOver waits until the member has noticed that its store has lost data, and has written the floor.
func (n *node) startsOver() {
	n.world.t.Helper()
	client := n.world.service.Client("test")
	defer client.Close()
	for deadline := time.Now().Add(window); ; time.Sleep(time.Millisecond) {
		told, err := client.Get(n.world.t.Context(), floor.Key)
		if err == nil && told.Version > 0 && n.noticed() {
			return
		}
		if time.Now().After(deadline) {
			n.world.t.Fatalf("%s has not noticed that the store has lost data", n.name)
		}
	}
}

// noticed tells whether the member has noticed a loss.
func (n *node) noticed() bool { return n.mem.Load().losses.Load() > 0 }

// takes takes IDs from all of them that give any, for so long. It returns how many.
func (w *world) takes(d time.Duration, nodes ...*node) (taken int) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(3 * time.Millisecond) {
		for _, n := range nodes {
			if n.take() == nil {
				taken++
			}
		}
	}
	return taken
}

// behind is by how much a clock is behind: a multiple of how often takes takes, so that ticks meet.
const behind = 8001 * time.Millisecond

// losses are ways in which a store loses data.
var losses = map[string]func(w *world) (lose func()){
	"wiped": func(w *world) func() {
		return func() { w.service.RollBack(memstore.Backup{}, 0) }
	},
	"set back": func(w *world) func() {
		backup := w.service.Backup()
		time.Sleep(time.Minute)
		return func() { w.service.RollBack(backup, 0) }
	},
	"set back, with revisions that were never used": func(w *world) func() {
		backup := w.service.Backup()
		time.Sleep(time.Minute)
		return func() { w.service.RollBack(backup, 1_000_000_000) }
	},
}

// The clocks of two members are 8 s apart when the store loses data. Each uses up its reserved time, no ID
// repeats, and all go on once no earlier ID can repeat: the members that were there, with the same handles, and
// newcomers.
func TestNoIDComesAgainFromAStoreThatLostData(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.two()
				b.wall.step(-behind)
				lose := loss(w)
				// b approaches its clock slowly
				w.takes(3*window, a, b)
				// that of a is as far ahead as it can be
				for time.Until(a.seq.Load().status.Load().inUse().fence.Horizon()) < window-time.Second {
					w.takes(100*time.Millisecond, a, b)
				}
				lose()
				at := time.Now()
				for _, n := range []*node{a, b} {
					if taken := w.takes(100*time.Millisecond, n); taken == 0 {
						t.Errorf("%s makes no ID from the time it had reserved", n.name)
					}
				}
				w.takes(window/2, a, b)
				nodes := []*node{a, b, w.start("late")}
				if !a.noticed() && !b.noticed() {
					t.Fatal("no member has noticed that the store has lost data")
				}
				if taken := w.takes(window/3, nodes[2]); taken > 0 {
					t.Errorf("%d IDs were given before those of the former store were out of reach", taken)
				}
				w.takes(window+clocks.Skew, nodes...)
				for _, n := range nodes {
					n.ready(time.Second)
					if losses := n.mem.Load().losses.Load(); losses > 1 {
						t.Errorf("%s has started over %d times", n.name, losses)
					}
					if err := n.mem.Load().Ready(); err != nil {
						t.Errorf("%s: %v", n.name, err)
					}
				}
				if took := time.Since(at); took > 3*window+clocks.Skew {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// waits starts a member that claims the node ID of one that has crashed, whose floor then lies almost a window ahead,
// and another that waits in line.
func (w *world) waits() (owner, other *node) {
	w.t.Helper()
	first := w.start("first", onOneNode)
	first.ready(time.Second)
	owner = w.start("owner", onOneNode) // first in line
	owner.settled()
	other = w.start("other", onOneNode)
	other.settled()
	for time.Until(first.claimed().Horizon()) < window-10*time.Millisecond { // it has just renewed
		time.Sleep(time.Millisecond)
	}
	session := first.session()
	first.crash()
	w.service.Expire(session)
	for deadline := time.Now().Add(window / 2); owner.claimed() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("the owner has not claimed: %v", owner.Ready())
		}
	}
	if ahead := time.Until(owner.claimed().Floor()); ahead < window/2 {
		w.t.Fatalf("the floor is only %v ahead", ahead)
	}
	return owner, other
}

// claimed is the latest fence of a node with one node ID, or nil.
func (n *node) claimed() *fence.Fence { return n.seq.Load().status.Load().latest().fence }

// A node ID is claimed whose floor lies almost a window ahead. Its owner is cut off, and the store loses data: what the
// owner may use lies below the floor that another member writes by its clock.
func TestAClaimThatWaitsGoesNoFurtherThanOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		owner, other := w.waits()
		owner.client.CutOff(true)
		w.service.RollBack(memstore.Backup{}, 0)
		other.startsOver()
		late := w.start("late", onOneNode)
		w.takes(3*window, owner, other, late)
		if w.takes(time.Second, other, late) == 0 {
			t.Errorf("nobody makes IDs: %v, %v", other.Ready(), late.Ready())
		}
	})
}

// While an owner waits for its floor, it extends its horizon, so that it has a stretch of time from the floor on.
func TestAClaimThatWaitsIsExtended(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		owner, _ := w.waits()
		time.Sleep(time.Until(owner.claimed().Floor()))
		if left := time.Until(owner.claimed().Horizon()); left < window/2 {
			t.Errorf("at its floor the owner has %v", left)
		}
		owner.serves(window)
	})
}

// A member that leaves gives up creating a sequencer again that the store has lost.
func TestLeaveEndsTheCreationAfterALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		q, ok := m.Value().Sequencer(m.Sequencers()[0].Name())
		if !ok {
			t.Fatal("there is no sequencer")
		}
		s := m.newSequencer("lost", q)
		s.update(func(st *status) { st.created = 0 })
		left, leave := context.WithCancel(t.Context())
		leave()
		s.createAgain(left)
	})
}

// A member whose session ends when the store is wiped, or which is asked for a sequencer or told to do something then,
// writes the floor before anything to the log: a newcomer would take its entries for a cluster.
func TestAMemberTellsTheStoreFirst(t *testing.T) {
	for _, ahead := range []store.Version{0, 1_000_000_000} {
		tellsFirst(t, ahead, func(w *world, a *node, session *memstore.Session) {
			rolledBack := make(chan struct{})
			a.client.Inject(func(memstore.Call) memstore.Fault { // it joins again after the rollback, not around it
				<-rolledBack
				return memstore.Fault{}
			})
			w.service.Expire(session)
			a.client.Lag(time.Hour) // it learns that its session has ended, and nothing else
			w.service.RollBack(memstore.Backup{}, ahead)
			close(rolledBack)
		})
		tellsFirst(t, ahead, func(w *world, a *node, _ *memstore.Session) {
			a.client.Lag(time.Hour)
			w.service.RollBack(memstore.Backup{}, ahead)
			go insist(w.t.Context(), func() error {
				_, err := a.mem.Load().EnsureSequencer(w.t.Context(), "another", cluster.Define(layout))
				return err
			})
		})
		tellsFirst(t, ahead, func(w *world, a *node, _ *memstore.Session) {
			a.client.Lag(time.Hour)
			w.service.RollBack(memstore.Backup{}, ahead)
			go insist(w.t.Context(), func() error { return a.mem.Load().SetPolicy(w.t.Context(), nil) })
		})
	}
}

// insist does something once a second until it is done or the test ends.
func insist(ctx context.Context, do func() error) {
	for do() != nil && retry.Sleep(ctx, time.Second) == nil {
	}
}

func tellsFirst(t *testing.T, ahead store.Version, lose func(w *world, a *node, session *memstore.Session)) {
	t.Helper()
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		synctest.Wait() // until nothing is under way to the store
		lose(w, a, a.session())
		client := w.service.Client("test")
		defer client.Close()
		// of the floor; it is written again if the store tells of the loss after a read has shown it
		var first store.Version
		for {
			b, err := client.Read(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			f, err := client.Get(t.Context(), floor.Key)
			if err != nil {
				t.Fatal(err)
			}
			if first == 0 {
				first = f.Version
			}
			switch {
			case len(b.Entries) > 0:
				if at := store.Version(b.Entries[0].Position); first == 0 || first > at {
					t.Fatalf("%d versions later, its first entry is at %d, its floor at %d", ahead, at, first)
				}
				return
			case time.Since(epoch) > window/3-time.Second: // then an extension would tell
				t.Fatalf("it has not joined again after %d versions", ahead)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// sharing is a store that others use, too.
type sharing struct{ *memstore.Client }

func (sharing) Traits() store.Traits { return store.Traits{Shared: true} }

// On a store that has lost everything, a newcomer waits for members of the former cluster, even if it comes
// first.
func TestNobodyFoundsAClusterTooEarly(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		client := w.service.Client("late")
		defer client.Close()
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		a.client.CutOff(true)
		w.service.RollBack(memstore.Backup{}, 0)
		joined := make(chan *Member)
		go func() {
			m, err := Join(t.Context(), sharing{client}, Options{TTL: ttl, Window: window})
			if err != nil {
				t.Error(err)
			}
			joined <- m
		}()
		time.Sleep(foundAfter - time.Millisecond)
		if n := w.value().Entries(); n > 0 {
			t.Errorf("a cluster was founded, with %d entries", n)
		}
		a.client.CutOff(false)
		a.startsOver()
		m := <-joined
		defer m.Leave()
		s, err := m.EnsureSequencer(t.Context(), DefaultSequencer, a.seq.Load().Definition())
		var wait *FloorError
		if err == nil {
			err = s.Ready()
		}
		if !errors.As(err, &wait) {
			t.Errorf("Ready: %v; want a FloorError", err)
		}
	})
}

// The first member on an empty store can't be held back. But a member that finds its own node ID taken there
// makes no more IDs, even with reserved time.
func TestANodeIDThatWasTakenOverOnAnEmptyStoreIsNotUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		a.client.CutOff(true)
		w.service.RollBack(memstore.Backup{}, 0)
		late := w.start("late", onOneNode)
		late.wall.step(-behind)
		late.settled()
		a.client.CutOff(false)
		a.startsOver()
		a.refuses(window)
	})
}

// A claim that is under way when a member writes the floor fails.
func TestAClaimThatDoesNotKnowTheFloor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		a.client.CutOff(true)
		w.service.RollBack(memstore.Backup{}, 0)
		late := w.start("late", onOneNode, func(c *setup) {
			var once sync.Once
			c.store.Inject(func(call memstore.Call) memstore.Fault {
				if call.Op == memstore.Commit && slices.ContainsFunc(call.Txn.Then, isClaim) {
					once.Do(func() {
						a.client.CutOff(false)
						a.startsOver()
					})
				}
				return memstore.Fault{}
			})
		})
		late.wall.step(-behind)
		a.startsOver()
		late.refuses(window)
		late.ready(window)
	})
}

func isClaim(op store.Op) bool { return op.Session != nil && strings.Contains(op.Key, "/live/") }

// An operator can end the wait.
func TestResume(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		w.service.RollBack(memstore.Backup{}, 0)
		a.startsOver()
		w.takes(window, a)
		var wait *FloorError
		if err := a.Ready(); !errors.As(err, &wait) || !errors.Is(err, ErrNotReady) || wait.By != "a" ||
			!strings.Contains(err.Error(), "the store has lost committed data") {
			t.Fatalf("Ready: %v; want a FloorError of a", err)
		}
		if want := time.Now().Add(clocks.Skew); wait.From.After(want.Add(time.Second)) ||
			wait.From.Before(want.Add(-window)) {
			t.Errorf("IDs begin at %v, want about %v", wait.From, want)
		}
		for _, want := range []time.Time{wait.From, {}} { // a second time there is nothing to do
			if until, err := a.mem.Load().Resume(t.Context()); err != nil || !until.Equal(want) {
				t.Fatalf("Resume: %v, %v; want %v", until, err, want)
			}
		}
		a.ready(5 * time.Second)
	})
}

// What the store says of the time from which on IDs may be given is believed only if it can be read.
func TestAFloorThatCantBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		put(t, w, store.Put(floor.Key, []byte("soon")))
		a := w.start("a")
		a.refuses(window)
		s, _ := a.mem.Load().Sequencer(DefaultSequencer)
		if err := s.Ready(); err == nil || !strings.Contains(err.Error(), floor.Key) {
			t.Errorf("Ready: %v", err)
		}
	})
}

func put(t *testing.T, w *world, op store.Op) {
	t.Helper()
	if _, err := w.service.Client("test").Commit(t.Context(), store.Txn{Then: []store.Op{op}}); err != nil {
		t.Fatal(err)
	}
}

// A member that is cut off uses up its time while the store loses its data. Its clock is ahead of that of the
// member that writes the floor, which has to allow for that.
func TestTheFloorReckonsWithClocksThatDiffer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", few)
		a.ready(time.Second)
		b := w.start("b", few)
		b.ready(time.Second)
		b.wall.step(-behind)
		w.takes(3*window, a, b) // b approaches its clock slowly
		a.client.CutOff(true)
		w.service.RollBack(memstore.Backup{}, 0)
		b.startsOver()
		nodes := []*node{a, w.start("late", few), w.start("later", few)}
		for _, n := range nodes[1:] {
			n.wall.step(-behind)
		}
		w.takes(window+2*clocks.Skew, nodes...)
		for _, n := range nodes[1:] {
			n.ready(clocks.Skew)
		}
	})
}

// After a loss a handle stands for the sequencer that the log has then, if that has the same definition. One that
// EnsureSequencer asked for is created again; any other that the log does not have is destroyed.
func TestHandlesAfterALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		backup := w.service.Backup()
		ensured, err := m.EnsureSequencer(t.Context(), "ensured", cluster.Define(layout))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"attached", "another"} {
			if _, err := m.Create(t.Context(), name, cluster.Define(layout)); err != nil {
				t.Fatal(err)
			}
		}
		attached, err := m.Attach(t.Context(), "attached")
		if err != nil {
			t.Fatal(err)
		}
		another, err := m.EnsureSequencer(t.Context(), "another", cluster.Define(layout))
		if err != nil {
			t.Fatal(err)
		}
		a.client.CutOff(true)
		w.service.RollBack(backup, 0)
		b := w.start("b")
		b.settled()
		if _, err := b.mem.Load().Create(t.Context(), "another", cluster.Define(oneNode)); err != nil {
			t.Fatal(err)
		}
		a.client.CutOff(false)
		a.startsOver()
		before, err := ensured.Next(t.Context())
		if err != nil {
			t.Errorf("the reserved time is not used up: %v", err)
		}
		w.takes(window+2*clocks.Skew, a, b)
		a.ready(time.Second)
		if id, err := ensured.Next(t.Context()); err != nil || id <= before {
			t.Errorf("ensured: %d after %d, %v", id, before, err)
		}
		for _, s := range []*Sequencer{attached, another} {
			if err := s.Ready(); !errors.Is(err, ErrDestroyed) || s.State().Phase != Destroyed {
				t.Errorf("%s is %v: %v", s.Name(), s.State(), err)
			}
			if _, ok := m.Sequencer(s.Name()); ok {
				t.Errorf("%s is still there", s.Name())
			}
		}
	})
}
