package peer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/attachment"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// id is its present member ID.
func (n *node) id() string { return n.mem.Load().ID() }

// ended waits until the member has ended, and returns why.
func (n *node) ended(within time.Duration) error {
	n.world.t.Helper()
	select {
	case <-n.mem.Load().Done():
	case <-time.After(within):
		n.world.t.Fatalf("%s has not ended after %v", n.name, within)
	}
	return n.mem.Load().Err()
}

// live returns the live keys of a sequencer.
func (w *world) live(sequencer string) []store.KV {
	w.t.Helper()
	kv, err := w.service.Client("test").List(w.t.Context(), fencePrefix(sequencer)+"live/")
	if err != nil {
		w.t.Error(err)
	}
	return kv
}

// An entry of the log says who asked for it, where somebody did: once, and not of what a member does by itself later.
func TestTheLogSaysWhoAsked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		ops, m := AskedBy(t.Context(), "ops"), a.mem.Load()
		does := func(what string, err error) {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		d := cluster.Define(layout)
		_, err := m.Create(ops, "orders", d)
		does("create", err)
		s, err := m.Attach(ops, "orders")
		does("attach", err)
		_, err = m.Attach(ops, "orders")
		does("attach again", err)
		_, err = b.mem.Load().Attach(t.Context(), "orders")
		does("attach b", err)
		does("detach", s.Detach(ops))
		_, err = m.Attach(t.Context(), "orders")
		does("attach when nobody asks", err)
		does("drain", m.Drain(ops, "orders", b.id()))
		does("move", m.Move(ops, "orders", 7, a.id()))
		does("allocate", m.Allocate(ops, "orders", cluster.Allocation{Kind: cluster.AllocateCount, Count: 2}))
		does("policy", m.SetPolicy(ops, nil))
		does("expel", m.Expel(ops, b.id()))
		does("destroy", m.Destroy(ops, "orders"))

		batch, err := w.service.Client("test").Read(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, e := range batch.Entries {
			entry, err := cluster.Decode(int64(e.Position), e.Data)
			if err != nil {
				t.Fatal(err)
			}
			switch entry.Command.(type) {
			case cluster.PrepareJoin, cluster.NotifyWatchers, cluster.AcceptJoin, cluster.Leave, cluster.AskClocks,
				cluster.PeerGC:
				if entry.Who != "" {
					t.Errorf("%s is of %s", entry.Command.Name(), entry.Who)
				}
			default:
				have = append(have, strings.TrimSpace(entry.Command.Name()+" "+entry.Who))
			}
		}
		want := "create-sequencer ops, attach ops, attach, detach ops, attach, drain ops, move ops, allocate ops, " +
			"set-policy ops, expel ops, destroy-sequencer ops"
		got := strings.Join(have, ", ")
		if i := strings.Index(got, "create-sequencer ops"); i > 0 { // what was before is of the members themselves
			got = got[i:]
		}
		if got != want {
			t.Errorf("the log has %s\nwant %s", got, want)
		}
	})
}

// leaves returns the commands by which members left, as the log has them.
func (w *world) leaves() (all []cluster.Leave) {
	w.t.Helper()
	batch, err := w.service.Client("test").Read(w.t.Context(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range batch.Entries {
		entry, err := cluster.Decode(int64(e.Position), e.Data)
		if err != nil {
			w.t.Fatal(err)
		}
		// A second one changes nothing: a watcher may see the end of a session before it reads that its member has
		// left.
		leave, ok := entry.Command.(cluster.Leave)
		if again := slices.ContainsFunc(all, func(l cluster.Leave) bool {
			return l.Member == leave.Member
		}); ok && !again {
			all = append(all, leave)
		}
		if time.Until(entry.At).Abs() > time.Hour {
			w.t.Errorf("the entry at %d is from %v", e.Position, entry.At)
		}
	}
	return all
}

// TestTheLogTellsWhyAMemberLeft: and who said so.
func TestTheLogTellsWhyAMemberLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		c := w.start("c")
		c.ready(time.Second)
		left, died := a.id(), b.id()
		a.leave()
		b.crash()
		w.becomeOneRing(ttl+2*time.Second, []*node{c}, c)
		was := c.id()
		w.service.Expire(c.session())
		// it joins again under another
		for end := time.Now().Add(5 * time.Second); c.id() == was && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		w.becomeOneRing(5*time.Second, []*node{c}, c)
		want := []cluster.Leave{
			{Member: left, Why: cluster.CauseLeft, By: left},
			{Member: died, Why: cluster.CauseSessionEnded, By: was},
			{Member: was, Why: cluster.CauseSessionEnded, By: c.id()},
		}
		if have := w.leaves(); !slices.Equal(have, want) {
			t.Errorf("the log has\n%+v, want\n%+v", have, want)
		}
	})
	inBubble(t, func(t *testing.T, w *world) { // all die while a join is pending at each
		a := w.start("a")
		a.ready(time.Second)
		died := a.id()
		firstDies([]*node{a}, "accept-join-cluster")
		b := w.start("b", diesBefore("accept-join-cluster"))
		time.Sleep(time.Second)
		b.crash()
		a.crash()
		c := w.start("c")
		c.ready(ttl + 10*time.Second)
		want := cluster.Leave{Member: died, Why: cluster.CauseFoundDead, By: c.id()}
		if have := w.leaves(); !slices.Contains(have, want) {
			t.Errorf("the log has\n%+v, want among them\n%+v", have, want)
		}
	})
}

// TestANodeIDIsClaimedOnceItIsFree: not when the next attempt is due.
func TestANodeIDIsClaimedOnceItIsFree(t *testing.T) {
	for _, late := range []time.Duration{50 * time.Millisecond, 700 * time.Millisecond, 2900 * time.Millisecond} {
		inBubble(t, func(t *testing.T, w *world) {
			a := w.start("a", onOneNode)
			a.ready(time.Second)
			b := w.start("b", onOneNode)
			b.settled()
			a.client.Lag(late)
			w.append(cluster.Detach{Sequencer: DefaultSequencer, Member: a.id()})
			held := w.live(DefaultSequencer)
			for now := held; len(now) > 0 && now[0].Version == held[0].Version; now = w.live(DefaultSequencer) {
				time.Sleep(time.Millisecond)
			}
			b.ready(20 * time.Millisecond)
		})
	}
}

// TestExpelEndsAProcess: it stops making IDs, gives back its node ID and ends; others get the node ID at once.
func TestExpelEndsAProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a", few), w.start("b", few)
		a.ready(time.Second)
		b.ready(time.Second)
		c := w.start("c", few)
		c.settled()
		c.refuses(time.Second)
		node, _ := b.NodeID()
		was := b.id()
		if err := a.mem.Load().Expel(t.Context(), was); err != nil {
			t.Fatal(err)
		}
		c.ready(100 * time.Millisecond)
		if has, _ := c.NodeID(); has != node {
			t.Errorf("c has the node ID %d, want that of b, %d", has, node)
		}
		if err := b.ended(100 * time.Millisecond); !errors.Is(err, ErrExpelled) ||
			!strings.Contains(err.Error(), was) || !strings.Contains(err.Error(), a.id()) {
			t.Errorf("b ended with %v, want ErrExpelled with both members", err)
		}
		b.refuses(window)
		for _, err := range []error{
			b.Ready(), b.seq.Load().Attach(t.Context()), b.mem.Load().Ready(),
			b.mem.Load().Wait(t.Context()),
		} {
			if !errors.Is(err, ErrExpelled) {
				t.Errorf("%v, want ErrExpelled", err)
			}
		}
		if _, err := b.mem.Load().EnsureSequencer(t.Context(), "other", cluster.Define(layout)); err == nil {
			t.Error("it makes another sequencer")
		}
		time.Sleep(2 * ttl)
		if v := w.value(); v.Size() != 2 || v.IsMember(was) || !v.Expelled(was) {
			t.Errorf("the value is %v", v)
		}
		if found, err := a.mem.Load().Pulses(t.Context()); err != nil || len(found) != 2 {
			t.Errorf("the pulses are %v %v", found, err)
		}
		var refused *RefusedError
		if err := a.mem.Load().Expel(t.Context(), "nobody"); !errors.As(err, &refused) || refused.Why == "" {
			t.Errorf("expelling nobody: %v, want a RefusedError", err)
		}
		w.start("b", few).settled() // started again, it may come back
	})
}

// TestAMemberExpelsItself: the caller learns that it is done.
func TestAMemberExpelsItself(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		if err := b.mem.Load().Expel(t.Context(), b.id()); err != nil {
			t.Error(err)
		}
		if err := b.ended(100 * time.Millisecond); !errors.Is(err, ErrExpelled) {
			t.Errorf("it ended with %v", err)
		}
		w.becomeOneRing(time.Second, []*node{a}, a)
	})
}

// TestWhoReadsLateThatItWasExpelled: after it was out of reach, after its session has ended, or from a checkpoint.
func TestWhoReadsLateThatItWasExpelled(t *testing.T) {
	for name, c := range map[string]struct {
		away time.Duration
		cut  bool
	}{
		"out of reach":                {ttl / 2, false},
		"its session has ended":       {3 * ttl, false},
		"from a checkpoint":           {ttl / 2, true},
		"from a checkpoint, rejoined": {3 * ttl, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.two()
				b.client.CutOff(true)
				was := b.id()
				if err := a.mem.Load().Expel(t.Context(), was); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.away)
				if c.cut {
					w.cut()
				}
				b.client.CutOff(false)
				if err := b.ended(20 * time.Second); !errors.Is(err, ErrExpelled) ||
					!strings.Contains(err.Error(), was) {
					t.Errorf("it ended with %v", err)
				}
				b.refuses(window)
				w.becomeOneRing(2*ttl, []*node{a}, a)
			})
		})
	}
}

// TestWhatIsDrainedStaysDrained: until an operator undoes it, whoever attaches, and under another member ID too.
func TestWhatIsDrainedStaysDrained(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", few)
		a.ready(time.Second)
		b := w.start("b", few)
		b.ready(time.Second)
		c := w.start("c", few)
		seenByC, seen := watch(t, c.settled()), watch(t, b.settled())
		m := b.mem.Load()
		if err := a.mem.Load().Drain(t.Context(), DefaultSequencer, b.id()); err != nil {
			t.Fatal(err)
		}
		c.ready(100 * time.Millisecond)
		drained := func(when string) {
			t.Helper()
			if _, err := b.Next(t.Context()); !errors.Is(err, ErrNotReady) || !errors.Is(err, ErrDrained) {
				t.Errorf("%s: Next: %v, want ErrDrained", when, err)
			}
			if err := b.seq.Load().Attach(t.Context()); !errors.Is(err, ErrDrained) {
				t.Errorf("%s: Attach: %v, want ErrDrained", when, err)
			}
			s, err := m.AttachOnDemand(t.Context(), DefaultSequencer)
			if err != nil || !errors.Is(s.Ready(), ErrDrained) {
				t.Errorf("%s: AttachOnDemand: %v", when, err)
			}
			q, _ := w.value().Sequencer(DefaultSequencer)
			if q.Attached(b.id()) || !q.Drained(b.id()) {
				t.Errorf("%s: the value is %v", when, w.value())
			}
			if state := s.State(); state != (State{Phase: Drained}) {
				t.Errorf("%s: it is %v", when, state)
			}
		}
		drained("at once")
		seen.are(t, "attached, node ID 1", "drained")
		seenByC.are(t, "waiting, place 1 in line", "attached, node ID 1")

		id := b.id()
		w.service.Expire(b.session())
		time.Sleep(time.Millisecond)
		w.becomeOneRing(5*time.Second, []*node{a, b, c}, a, c)
		time.Sleep(time.Second)
		if b.id() == id {
			t.Fatal("it has the same ID: the test tries nothing")
		}
		drained("under another ID")

		if err := b.seq.Load().Detach(t.Context()); err != nil {
			t.Errorf("Detach: %v", err)
		}
		if _, err := b.Next(t.Context()); !errors.Is(err, ErrDetached) {
			t.Errorf("Next after Detach: %v, want ErrDetached", err)
		}
		_ = b.seq.Load().Attach(t.Context())
		drained("after a detach")

		if err := a.seq.Load().Detach(t.Context()); err != nil {
			t.Error(err)
		}
		b.refuses(window)
		if err := a.mem.Load().Undrain(t.Context(), DefaultSequencer, b.id()); err != nil {
			t.Fatal(err)
		}
		b.ready(100 * time.Millisecond)
		w.service.Expire(b.session())
		time.Sleep(time.Millisecond)
		w.becomeOneRing(5*time.Second, []*node{a, b, c}, b, c)
		b.serves(2 * window) // no other node ID is free: it takes its own again, from its horizon on
	})
}

// TestOneThatWasNeverAttachedIsDrained: a call for an ID does not attach it; once that is undone, the call's wish
// counts.
func TestOneThatWasNeverAttachedIsDrained(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		if _, err := a.mem.Load().Create(t.Context(), "orders", cluster.Define(layout)); err != nil {
			t.Fatal(err)
		}
		if err := a.mem.Load().Drain(t.Context(), "orders", b.id()); err != nil {
			t.Fatal(err)
		}
		w.service.Expire(b.session())
		time.Sleep(time.Millisecond)
		w.becomeOneRing(5*time.Second, []*node{a, b}, a, b)
		s, err := b.mem.Load().AttachOnDemand(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(t.Context()); !errors.Is(err, ErrDrained) {
			t.Errorf("%v, want ErrDrained", err)
		}
		if err := a.mem.Load().Undrain(t.Context(), "orders", b.id()); err != nil {
			t.Fatal(err)
		}
		next(t, s, time.Second)
		if err := a.mem.Load().Drain(t.Context(), "orders", b.id()); err != nil {
			t.Fatal(err)
		}
		if err := a.mem.Load().Destroy(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		if s, err = b.mem.Load().EnsureSequencer(t.Context(), "orders", cluster.Define(layout)); err != nil {
			t.Fatal(err)
		}
		next(t, s, time.Second) // another one of its name is not drained
		if err := a.mem.Load().Drain(t.Context(), "none", b.id()); !errors.Is(err, ErrNoSequencer) {
			t.Errorf("%v, want ErrNoSequencer", err)
		}
		var refused *RefusedError
		if err := a.mem.Load().Drain(t.Context(), "orders", "nobody"); !errors.As(err, &refused) || refused.Why == "" {
			t.Errorf("%v, want a RefusedError", err)
		}
	})
}

// TestAStoreThatLosesDataUndoesNoDrain.
func TestAStoreThatLosesDataUndoesNoDrain(t *testing.T) {
	for name, prepare := range losses {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.two()
				lose := prepare(w)
				if err := a.mem.Load().Drain(t.Context(), DefaultSequencer, b.id()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
				b.refuses(time.Second)
				lose()
				a.startsOver()
				time.Sleep(2 * window)
				w.becomeOneRing(2*ttl, []*node{a, b})
				a.ready(window)
				b.refuses(2 * window)
				if _, err := b.Next(t.Context()); !errors.Is(err, ErrDrained) {
					t.Errorf("%v, want ErrDrained", err)
				}
				if err := a.mem.Load().Undrain(t.Context(), DefaultSequencer, b.id()); err != nil {
					t.Fatal(err)
				}
				b.ready(time.Second)
			})
		})
	}
}

// TestAMovedNodeIDIsNotClaimedAgain: its use ends before the member is told what it has instead. By the grant that it
// knows it would claim the node ID again, and wait for one that waits for it.
func TestAMovedNodeIDIsNotClaimedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		used := a.seq.Load()
		s := &Sequencer{m: used.m, name: used.name, layout: used.layout, fences: used.fences}
		st := *used.status.Load()
		st.changed = make(chan struct{})
		s.status.Store(&st)
		s.withdraw(st.inUse(), errMoved)
		for _, want := range []attachment.ActionKind{attachment.Return, attachment.Wait} {
			action, err := s.look(t.Context())
			if err == nil {
				err = s.do(t.Context(), action)
			}
			if err != nil || action.Kind != want {
				t.Errorf("%v, %v; want to %v", action.Kind, err, want)
			}
		}
	})
}

// TestANodeIDIsMoved: the former holder stops before the new one begins; where they exchange node IDs, too. Those that
// the move does not touch notice nothing.
func TestANodeIDIsMoved(t *testing.T) {
	for name, c := range map[string]struct {
		nodes int64
		to    string // c waits in line for a node ID, b has one
		lag   time.Duration
	}{
		"to one that waits":        {2, "c", 0},
		"in exchange":              {2, "b", 0},
		"to one that has another":  {8, "b", 0},
		"from one that reads late": {2, "c", 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				all := map[string]*node{}
				for _, name := range []string{"a", "b", "c"} {
					all[name] = w.start(name, func(s *setup) { s.definition.Nodes = c.nodes })
					all[name].settled()
				}
				a, to := all["a"], all[c.to]
				a.ready(time.Second)
				all["b"].ready(time.Second)
				moved, _ := a.NodeID()
				had, hadOne := to.NodeID()
				a.client.Lag(c.lag)
				if err := all["b"].mem.Load().Move(t.Context(), DefaultSequencer, moved, to.id()); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				for has, ok := to.NodeID(); !ok || has != moved; has, ok = to.NodeID() {
					if has, ok := a.NodeID(); c.lag == 0 && ok && has == moved && time.Since(began) > 0 {
						t.Error("the former holder goes on with it")
					}
					if time.Since(began) > c.lag+100*time.Millisecond {
						t.Fatalf("it has %d %v after %v, want %d", has, ok, time.Since(began), moved)
					}
					time.Sleep(time.Millisecond)
				}
				to.serves(time.Second)
				if name == "to one that waits" || c.lag > 0 {
					a.refuses(time.Second)
					if _, err := a.Next(t.Context()); !errors.Is(err, ErrWaiting) {
						t.Errorf("%v, want ErrWaiting", err)
					}
				} else {
					a.ready(100 * time.Millisecond)
					if has, _ := a.NodeID(); !hadOne || name == "in exchange" && has != had {
						t.Errorf("the former holder has %d; want %d, which the other had", has, had)
					}
					a.serves(2 * window)
				}
				to.serves(2 * window)
			})
		})
	}
}

// TestANodeIDIsMovedFromADeadMember: once its session has ended; the new holder uses its former node ID meanwhile.
func TestANodeIDIsMovedFromADeadMember(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a", few), w.start("b", few)
		a.ready(time.Second)
		b.ready(time.Second)
		moved, _ := a.NodeID()
		a.client.CutOff(true)
		if err := b.mem.Load().Move(t.Context(), DefaultSequencer, moved, b.id()); err != nil {
			t.Fatal(err)
		}
		b.serves(ttl + time.Second)
		if has, _ := b.NodeID(); has != moved {
			time.Sleep(window) // its floor is the horizon of a
			b.ready(time.Second)
			if has, _ := b.NodeID(); has != moved {
				t.Errorf("it has %d, want %d", has, moved)
			}
		}
		b.serves(window)
	})
}

// TestAMoveThatIsRefused: nothing changes, and the error says why.
func TestAMoveThatIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a", few), w.start("b", few)
		a.ready(time.Second)
		b.ready(time.Second)
		before := w.value().String()
		for _, c := range []struct {
			node int64
			to   string
		}{{0, "nobody"}, {2, b.id()}} {
			var refused *RefusedError
			err := a.mem.Load().Move(t.Context(), DefaultSequencer, c.node, c.to)
			if !errors.As(err, &refused) || refused.Why == "" || refused.Command.Name() != "move" {
				t.Errorf("%v: %v, want a RefusedError", c, err)
			}
		}
		if err := a.mem.Load().Move(t.Context(), "none", 0, b.id()); !errors.Is(err, ErrNoSequencer) {
			t.Errorf("%v, want ErrNoSequencer", err)
		}
		var name *cluster.NameError
		if err := a.mem.Load().Move(t.Context(), "No name", 0, b.id()); !errors.As(err, &name) {
			t.Errorf("%v, want a NameError", err)
		}
		if after := w.value().String(); after != before {
			t.Errorf("the value was %s and is %s", before, after)
		}
		a.serves(time.Second)
		b.serves(time.Second)
	})
}

// holders returns how many of the nodes give IDs.
func holders(nodes []*node) (many int) {
	for _, n := range nodes {
		if n.take() == nil {
			many++
		}
	}
	return many
}

// TestTheAllocationChanges: members that lose their node ID stop before others get it, those that keep theirs notice
// nothing, and a definition is compared with the one that the sequencer was created with.
func TestTheAllocationChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var nodes []*node
		for i := range 5 {
			nodes = append(nodes, w.start(fmt.Sprint("n", i)))
			nodes[i].ready(time.Second)
		}
		m := nodes[2].mem.Load()
		for _, c := range []struct {
			a    cluster.Allocation
			want int
		}{
			{cluster.Allocation{Kind: cluster.AllocateCount, Count: 2}, 2},
			{cluster.Allocation{Kind: cluster.AllocatePercent, Percent: 80}, 4},
			{cluster.Allocation{Kind: cluster.AllocateCount, Count: 1}, 1},
			{cluster.Allocation{}, 5},
		} {
			if err := m.Allocate(t.Context(), DefaultSequencer, c.a); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			if have := holders(nodes); have != c.want {
				t.Errorf("%v: %d members give IDs, want %d", c.a, have, c.want)
			}
			if live := w.live(DefaultSequencer); len(live) != c.want {
				t.Errorf("%v: %d members hold a node ID, want %d", c.a, len(live), c.want)
			}
			nodes[0].serves(time.Second)
			s, err := m.EnsureSequencer(t.Context(), DefaultSequencer, cluster.Define(layout))
			if err != nil || s.Definition().Allocation != (cluster.Allocation{}) {
				t.Errorf("%v: the definition as created: %v", c.a, err)
			}
		}
		if err := m.Allocate(t.Context(), "none", cluster.Allocation{}); !errors.Is(err, ErrNoSequencer) {
			t.Errorf("%v, want ErrNoSequencer", err)
		}
		if err := m.Allocate(t.Context(), DefaultSequencer,
			cluster.Allocation{Kind: cluster.AllocateCount}); err == nil {
			t.Error("an allocation to nobody: no error")
		}
	})
}

// TestThePolicyIsFollowed: members attach by themselves, each serves the sequencer that it is assigned to, and says so
// for the other.
func TestThePolicyIsFollowed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.startMany("n", 4)
		m := nodes[0].mem.Load()
		names := []string{"left", "right"}
		for _, name := range names {
			if _, err := m.Create(t.Context(), name, cluster.Define(layout)); err != nil {
				t.Fatal(err)
			}
		}
		policy := []cluster.Share{{Sequencer: "left", Percent: 75}, {Sequencer: "right"}}
		if err := m.SetPolicy(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		shares := func(want map[string]int) {
			t.Helper()
			time.Sleep(200 * time.Millisecond)
			have := map[string]int{}
			for _, n := range nodes {
				serves, ok := n.mem.Load().Value().Assigned(n.id())
				if !ok {
					t.Errorf("%s serves nothing", n.name)
				}
				for _, name := range names {
					s, ok := n.mem.Load().Sequencer(name)
					if !ok {
						t.Fatalf("%s is not attached to %s", n.name, name)
					}
					_, err := s.Next(t.Context())
					switch {
					case err == nil && serves == name:
						have[name]++
					case serves == name, !errors.Is(err, ErrWaiting):
						t.Errorf("%s serves %s; Next of %s: %v", n.name, serves, name, err)
					case !strings.Contains(err.Error(), fmt.Sprintf("%q", serves)) ||
						!strings.Contains(err.Error(), "75% for left, the rest for right"):
						t.Errorf("the error is %v; want the policy, and what the member serves", err)
					}
				}
			}
			if have["left"] != want["left"] || have["right"] != want["right"] {
				t.Errorf("%v members serve, want %v", have, want)
			}
		}
		shares(map[string]int{"left": 3, "right": 1})
		for i := range 4 {
			nodes = append(nodes, w.start(fmt.Sprint("m", i)))
			nodes[4+i].ready(time.Second)
		}
		shares(map[string]int{"left": 6, "right": 2})
		for _, n := range nodes {
			n.serves(time.Millisecond) // of a sequencer that is not in the policy
		}

		s, _ := nodes[0].mem.Load().Sequencer("left")
		if err := s.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if state := s.State(); state.Phase != Detached {
			t.Errorf("after Detach it is %v", state)
		}

		if err := m.Destroy(t.Context(), "right"); err != nil {
			t.Fatal(err)
		}
		if err := m.SetPolicy(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes[1:] {
			s, _ := n.mem.Load().Sequencer("left")
			next(t, s, time.Second)
		}
		var refused *RefusedError
		if err := m.SetPolicy(t.Context(), []cluster.Share{{Sequencer: "right"}}); err == nil ||
			errors.As(err, &refused) && refused.Why == "" {
			t.Errorf("a policy with a sequencer that does not exist: %v", err)
		}
	})
}
