package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// few is a sequencer of two nodes.
func few(c *setup) { c.definition.Nodes = 2 }

// states collects the changes of a sequencer until the test stops it.
type states struct {
	mu   sync.Mutex
	seen []string
}

func watch(t *testing.T, s *Sequencer) *states {
	w := new(states)
	go func() {
		for state := range s.Changes(t.Context()) {
			if state.Phase == Attaching {
				continue // it may be over before the test looks
			}
			w.mu.Lock()
			w.seen = append(w.seen, state.String())
			w.mu.Unlock()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, "no more")
	}()
	synctest.Wait()
	return w
}

func (w *states) are(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.seen, want) {
		t.Errorf("its states are %q, want %q", w.seen, want)
	}
}

// TestDetachAndAttach goes back and forth, which is one entry in the log each.
func TestDetachAndAttach(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		s := a.settled()
		live := func() []store.KV {
			kv, err := w.service.Client("test").List(t.Context(), s.fences.Prefix+"live/")
			if err != nil {
				t.Error(err)
			}
			return kv
		}
		a.client.Inject(func(c memstore.Call) memstore.Fault {
			if isOf(c, "detach") && len(live()) != 0 {
				t.Error("the log says that the node ID is free, but it is not")
			}
			if c.Op == memstore.Commit {
				return memstore.Fault{Delay: 50 * time.Millisecond}
			}
			return memstore.Fault{}
		})
		seen := watch(t, s)
		want := []string{s.State().String()}
		for range 5 {
			before := a.mem.Load().Value().Entries()
			if err := s.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Next(t.Context()); !errors.Is(err, ErrNotReady) || !errors.Is(err, ErrDetached) {
				t.Errorf("Next: %v, want ErrDetached", err)
			}
			if err := s.Fill(t.Context(), make([]firn.ID, 3)); !errors.Is(err, ErrDetached) {
				t.Errorf("Fill: %v, want ErrDetached", err)
			}
			if err := s.Detach(t.Context()); err != nil {
				t.Errorf("a second Detach: %v", err)
			}
			if q, _ := w.value().Sequencer(DefaultSequencer); q.Attached(a.mem.Load().ID()) {
				t.Error("the cluster still has it attached")
			}
			if kv := live(); len(kv) != 0 {
				t.Errorf("it holds %v", kv)
			}
			want = append(want, "detached")
			synctest.Wait() // so that the observer misses nothing
			if err := s.Attach(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Attach(t.Context()); err != nil {
				t.Errorf("a second Attach: %v", err)
			}
			node := s.State().Node
			want = append(want, fmt.Sprintf("attached, node ID %d", node))
			a.ready(time.Second)
			if entries := a.mem.Load().Value().Entries() - before; entries != 2 {
				t.Errorf("that took %d entries of the log, want 2", entries)
			}
			synctest.Wait()
		}
		seen.are(t, want...)
		a.leave()
		seen.are(t, append(want, "ended", "no more")...)
		if err := s.Attach(t.Context()); !errors.Is(err, errLeft) {
			t.Errorf("Attach after leaving: %v", err)
		}
	})
}

// TestAStandbyTakesOver is about a sequencer of two node IDs and three members.
func TestAStandbyTakesOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a", few), w.start("b", few)
		a.ready(time.Second)
		b.ready(time.Second)
		c := w.start("c", few)
		seen := watch(t, c.settled())
		d := w.start("d", few)
		seenByD := watch(t, d.settled())
		if err := c.settled().Attach(t.Context()); !errors.Is(err, ErrWaiting) ||
			!strings.Contains(err.Error(), "place 1 in line") {
			t.Errorf("Attach: %v, want ErrWaiting with the place", err)
		}
		node, _ := a.NodeID()
		if err := a.seq.Load().Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.ready(100 * time.Millisecond)
		seen.are(t, "waiting, place 1 in line", fmt.Sprintf("attached, node ID %d", node))
		seenByD.are(t, "waiting, place 2 in line", "waiting, place 1 in line")
		b.crash()
		d.ready(ttl + window + 2*time.Second)
		if err := a.seq.Load().Attach(t.Context()); !errors.Is(err, ErrWaiting) {
			t.Errorf("Attach while others have the node IDs: %v, want ErrWaiting", err)
		}
		if state := a.seq.Load().State(); state != (State{Phase: Waiting, Place: 1}) {
			t.Errorf("it is %v", state)
		}
		if err := a.seq.Load().Detach(t.Context()); err != nil { // from the line
			t.Error(err)
		}
		c.serves(time.Second)
		d.serves(time.Second)
	})
}

// TestDestroyEndsEveryHandle checks that none makes an ID once Destroy has returned, and that the name is free for
// another sequencer, which the old handles have no part in.
func TestDestroyEndsEveryHandle(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var nodes []*node
		var looks []*states
		for i := range 5 {
			nodes = append(nodes, w.start(fmt.Sprint("n", i), few))
			looks = append(looks, watch(t, nodes[i].settled()))
		}
		began := time.Now()
		if err := nodes[3].mem.Load().Destroy(t.Context(), DefaultSequencer); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		again := cluster.Define(layout)
		again.Nodes = 2 // the same definition
		var old []*Sequencer
		for i, n := range nodes {
			old = append(old, n.seq.Load())
			if _, err := n.Next(t.Context()); !errors.Is(err, ErrNotReady) || !errors.Is(err, ErrDestroyed) {
				t.Errorf("%s: %v, want ErrDestroyed", n.name, err)
			}
			synctest.Wait()
			if seen := looks[i].seen; len(seen) < 2 || seen[len(seen)-2] != "destroyed" {
				t.Errorf("%s: %q", n.name, seen)
			}
			if err := errors.Join(n.seq.Load().Attach(t.Context())); !errors.Is(err, ErrDestroyed) {
				t.Errorf("Attach: %v, want ErrDestroyed", err)
			}
			if err := n.seq.Load().Detach(t.Context()); !errors.Is(err, ErrDestroyed) {
				t.Errorf("Detach: %v, want ErrDestroyed", err)
			}
			if s, ok := n.mem.Load().Sequencer(DefaultSequencer); ok {
				t.Errorf("%s has %v still", n.name, s.State())
			}
			if _, err := n.mem.Load().Attach(t.Context(), DefaultSequencer); !errors.Is(err, ErrNoSequencer) {
				t.Errorf("Member.Attach: %v, want ErrNoSequencer", err)
			}
		}
		for _, n := range nodes {
			s, err := n.mem.Load().EnsureSequencer(t.Context(), DefaultSequencer, again)
			if err != nil {
				t.Fatal(err)
			}
			n.seq.Store(s)
		}
		serving := 0
		time.Sleep(10 * time.Millisecond)
		for i, n := range nodes {
			if n.take() == nil {
				serving++
			}
			if err := old[i].Ready(); !errors.Is(err, ErrDestroyed) {
				t.Errorf("the old handle of %s: %v", n.name, err)
			}
		}
		if serving != 2 {
			t.Errorf("%d make IDs of the new one, want 2", serving)
		}
	})
}

// An owner whose clock is behind may make IDs though its horizon has passed by the clock of the one that destroys.
func TestDestroyWaitsForAClockThatIsBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		b.wall.step(-9 * time.Second)
		brief := cluster.Define(layout)
		brief.Window = 3 * time.Second
		time.Sleep(5 * window) // b approaches its clock slowly
		if _, err := a.mem.Load().EnsureSequencer(t.Context(), "brief", brief); err != nil {
			t.Fatal(err)
		}
		late, err := b.mem.Load().EnsureSequencer(t.Context(), "brief", brief)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		b.client.CutOff(true)
		if err := a.mem.Load().Destroy(t.Context(), "brief"); err != nil {
			t.Fatal(err)
		}
		if id, err := late.Next(t.Context()); err == nil {
			t.Errorf("b, out of reach and late, makes IDs of it still: %v", id)
		}
	})
}

// TestDestroyWaitsForThoseOutOfReach: they may use up their reserved time, and Destroy returns after that.
func TestDestroyWaitsForThoseOutOfReach(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		b.client.CutOff(true)
		within, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := a.mem.Load().Destroy(within, DefaultSequencer)
		var used *UsedUntilError
		if !errors.As(err, &used) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, want a UsedUntilError", err)
		}
		b.serves(time.Second)
		if err := a.mem.Load().Destroy(t.Context(), DefaultSequencer); !errors.Is(err, ErrNoSequencer) {
			t.Errorf("a second time: %v, want ErrNoSequencer", err)
		}
		if s, err := a.mem.Load().EnsureSequencer(t.Context(), "other", cluster.Define(layout)); err != nil ||
			s.Ready() != nil {
			t.Errorf("another one: %v", err)
		}
	})
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		b.client.CutOff(true)
		if err := a.mem.Load().Destroy(t.Context(), DefaultSequencer); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Next(t.Context()); !errors.Is(err, ErrNotReady) {
			t.Errorf("b, out of reach, makes IDs of it still: %v", err)
		}
		b.client.CutOff(false)
		b.refuses(time.Minute)
		if _, err := b.Next(t.Context()); !errors.Is(err, ErrDestroyed) {
			t.Errorf("%v, want ErrDestroyed", err)
		}
	})
}

// TestAttachFindsWhatOthersHaveJustCreated: through whichever member one asks.
func TestAttachFindsWhatOthersHaveJustCreated(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		for i := range 20 {
			name := fmt.Sprint("orders-", i)
			created, err := a.mem.Load().Create(t.Context(), name, cluster.Define(layout))
			if !created || err != nil {
				t.Fatal(created, err)
			}
			s, err := b.mem.Load().Attach(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if created, err := b.mem.Load().Create(t.Context(), name, cluster.Define(layout)); created || err != nil {
				t.Errorf("the same again: %v %v", created, err)
			}
			id, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if p, err := s.Parts(id); err != nil || time.Until(layout.TickStart(p.Tick)).Abs() > time.Second {
				t.Errorf("%d is %+v %v", id, p, err)
			}
			if _, ok := a.mem.Load().Sequencer(name); ok {
				t.Error("its creator is attached, too")
			}
		}
		if n := len(b.mem.Load().Sequencers()); n != 21 {
			t.Errorf("b has %d sequencers, want 21", n)
		}
		if _, err := a.mem.Load().Attach(t.Context(), "none"); !errors.Is(err, ErrNoSequencer) ||
			!strings.Contains(err.Error(), `"none"`) {
			t.Errorf("%v, want ErrNoSequencer with the name", err)
		}
		if err := a.mem.Load().Destroy(t.Context(), "none"); !errors.Is(err, ErrNoSequencer) {
			t.Errorf("%v, want ErrNoSequencer", err)
		}
		for _, name := range []string{"", "Capital", "a b", "a/b", "é", strings.Repeat("a", 101)} {
			_, err := a.mem.Load().Attach(t.Context(), name)
			var not *cluster.NameError
			if !errors.As(err, &not) || not.Name != name || !strings.Contains(err.Error(), "1 to 100") ||
				!strings.Contains(err.Error(), fmt.Sprintf("%.120q", name)) {
				t.Errorf("%q: %v", name, err)
			}
			if err := a.mem.Load().Destroy(t.Context(), name); err == nil ||
				!strings.Contains(err.Error(), "1 to 100") {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
}

// TestTwoCreateTheSameNameAtOnce: one wins, and the other's error names the definition in force.
func TestTwoCreateTheSameNameAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.startMany("n", 3)
		one, two := cluster.Define(layout), cluster.Define(layout)
		one.Nodes, two.Nodes = 8, 16
		wins := map[int64]int{}
		for i := range 1000 {
			name := fmt.Sprint("orders-", i)
			var errs [2]error
			var both sync.WaitGroup
			both.Go(func() { _, errs[0] = nodes[0].mem.Load().Create(t.Context(), name, one) })
			both.Go(func() { _, errs[1] = nodes[1].mem.Load().Create(t.Context(), name, two) })
			both.Wait()
			q, _ := nodes[0].mem.Load().Value().Sequencer(name)
			winner, loser := errs[0], errs[1]
			if q.Definition().Nodes == 16 {
				winner, loser = loser, winner
			}
			var exists *ExistsError
			if winner != nil || !errors.As(loser, &exists) || !errors.Is(loser, ErrSequencerExists) ||
				!exists.InForce.Equal(q.Definition()) ||
				!strings.Contains(loser.Error(), "nodes: ") {
				t.Fatalf("%s: %v is in force, the errors are %v and %v", name, q.Definition(), errs[0], errs[1])
			}
			wins[q.Definition().Nodes]++
		}
		synctest.Wait()
		all := w.value()
		for _, n := range nodes {
			for name, q := range all.Sequencers() {
				if have, _ := n.mem.Load().Value().Sequencer(name); !have.Definition().Equal(q.Definition()) ||
					have.Created() != q.Created() {
					t.Errorf("%s has another %s", n.name, name)
				}
			}
		}
		if wins[8] == 0 || wins[16] == 0 {
			t.Errorf("the wins are %v: it was no race", wins)
		}
	})
}

// TestWhatWasDoneIsInTheValue: once a call returns, the member's value shows its effect.
func TestWhatWasDoneIsInTheValue(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.start("n")
		n.ready(time.Second)
		m := n.mem.Load()
		for i := range 3000 {
			name := fmt.Sprint("orders-", i)
			if created, err := m.Create(t.Context(), name, cluster.Define(layout)); !created || err != nil {
				t.Fatal(created, err)
			}
			if _, ok := m.Value().Sequencer(name); !ok {
				t.Fatalf("%s was created, but is not in the value", name)
			}
		}
	})
}

// TestAMemberThatIsBehind is asked for what others have just changed: it reads the log before it answers.
func TestAMemberThatIsBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		one, two := a.mem.Load(), b.mem.Load()
		large, small := cluster.Define(layout), cluster.Define(layout)
		small.Nodes = 2
		create := func(m *Member, d cluster.Definition, want bool) {
			t.Helper()
			if created, err := m.Create(t.Context(), "orders", d); created != want || err != nil {
				t.Fatalf("created: %v %v, want %v", created, err, want)
			}
		}
		recreate := func() { // behind the back of b
			if err := one.Destroy(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
			create(one, small, true)
			large, small = small, large
		}
		create(one, large, true)
		synctest.Wait()
		b.client.Lag(time.Second)

		recreate()
		create(two, large, false)

		recreate()
		if s, err := two.Attach(t.Context(), "orders"); err != nil || !s.Definition().Equal(large) ||
			s.State().Phase == Destroyed {
			t.Fatalf("it attached to %v %v", s, err)
		}

		recreate()
		if err := two.Destroy(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		if q, ok := w.value().Sequencer("orders"); ok {
			t.Errorf("%v still exists", q.Definition())
		}
		create(two, small, true)
	})
}

// TestWhoHasNotReadOfTheDestroy does not hear that a sequencer is destroyed. Once Destroy has returned, it makes no ID
// all the same.
func TestWhoHasNotReadOfTheDestroy(t *testing.T) {
	live := fencePrefix("orders") + "live/"
	claims := func(c memstore.Call) bool {
		return c.Op == memstore.Commit && len(c.Txn.Then) == 2 && strings.HasPrefix(c.Txn.Then[1].Key, live)
	}
	extends := func(c memstore.Call) bool {
		return c.Op == memstore.Commit && strings.Contains(c.Txn.Then[0].Key, "last_reported_time")
	}
	for name, c := range map[string]struct {
		befalls func(memstore.Call) bool
		fault   memstore.Fault
		after   time.Duration
	}{
		"its claim is under way":     {claims, memstore.Fault{Outcome: memstore.ApplyLate, Delay: time.Second}, 0},
		"it holds a node ID":         {func(memstore.Call) bool { return false }, memstore.Fault{}, 0},
		"its horizon is not written": {extends, memstore.Fault{Outcome: memstore.FailBefore}, 2 * window},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.two()
				if _, err := a.mem.Load().Create(t.Context(), "orders", cluster.Define(layout)); err != nil {
					t.Fatal(err)
				}
				befall := func() {
					b.client.Inject(func(call memstore.Call) memstore.Fault {
						if c.befalls(call) {
							return c.fault
						}
						return memstore.Fault{}
					})
				}
				if c.after == 0 {
					befall()
				}
				go func() { _, _ = b.mem.Load().Attach(t.Context(), "orders") }()
				synctest.Wait()
				b.client.Lag(time.Hour)
				befall()
				time.Sleep(c.after)
				if err := a.mem.Load().Destroy(t.Context(), "orders"); err != nil {
					t.Fatal(err)
				}
				b.client.Inject(nil)
				s, ok := b.mem.Load().Sequencer("orders")
				if !ok {
					t.Fatal("b has heard of it: the test tries nothing")
				}
				for end := time.Now().Add(2 * window); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
					if id, err := s.Next(t.Context()); err == nil {
						t.Fatalf("it gives %d, %v", id, s.State())
					}
				}
			})
		})
	}
}

// TestDestroyWhileTheNextOneBegins: another member out of reach goes on with the former sequencer, while the next
// one has an earlier epoch, so that its IDs exceed the former's at once; or is destroyed before any member has
// claimed a node ID for it.
func TestDestroyWhileTheNextOneBegins(t *testing.T) {
	for _, begins := range []bool{true, false} {
		t.Run(fmt.Sprintf("and begins: %v", begins), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b, c := w.start("a"), w.start("b"), w.start("c")
				for _, n := range []*node{a, b, c} {
					n.ready(time.Second)
				}
				old, err := b.mem.Load().EnsureSequencer(t.Context(), "orders", cluster.Define(layout))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				b.client.CutOff(true)
				destroyed := make(chan error, 1)
				go func() { destroyed <- a.mem.Load().Destroy(t.Context(), "orders") }()
				time.Sleep(100 * time.Millisecond) // it waits for b
				next := cluster.Define(layout)
				next.Layout.Epoch = layout.Epoch.Add(-time.Hour)
				if _, err := c.mem.Load().Create(t.Context(), "orders", next); err != nil {
					t.Fatal(err)
				}
				if begins {
					_, err = c.mem.Load().Attach(t.Context(), "orders")
				} else {
					err = c.mem.Load().Destroy(t.Context(), "orders")
				}
				if err != nil {
					t.Fatal(err)
				}
				select {
				case err = <-destroyed:
				case <-time.After(time.Hour):
					t.Fatal("Destroy does not return")
				}
				if err != nil {
					t.Fatal(err)
				}
				if id, err := old.Next(t.Context()); err == nil {
					t.Errorf("b gives %d after Destroy has returned", id)
				}
			})
		})
	}
}
