package peer

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// poison appends an entry that no program can read, and returns its position.
func (w *world) poison() int64 {
	w.t.Helper()
	at, err := w.service.Client("newer").
		Append(w.t.Context(), newID(), []byte(`{"version":99,"command":"x","args":{}}`))
	if err != nil {
		w.t.Fatal(err)
	}
	return int64(at)
}

// stops waits until a member has stopped at a position.
func (n *node) stops(at int64) {
	n.world.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		m := n.mem.Load()
		var unreadable *cluster.UnreadableError
		if err := m.Ready(); errors.Is(err, ErrNotReady) && errors.As(err, &unreadable) && m.Stats().Stopped == at {
			return
		} else if time.Now().After(end) {
			n.world.t.Fatalf("%s has not stopped at %d: %v", n.name, at, err)
		}
	}
}

// waits checks that a member that was started has not ended after a while, and has no pulse.
func (n *node) waits() {
	n.world.t.Helper()
	time.Sleep(10 * time.Second)
	select {
	case <-n.done:
		n.world.t.Fatalf("%s has joined, or ended: %v", n.name, n.err)
	default:
	}
}

// skips returns what the key holds.
func (w *world) skips() (s skips) {
	w.t.Helper()
	kv, err := w.service.Client("test").Get(w.t.Context(), skipsKey)
	if err == nil && kv.Version > 0 {
		err = json.Unmarshal(kv.Value, &s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// An entry that no member can read ends none. Each gives IDs up to its horizon, extends and claims nothing, says why,
// and goes on once an operator has it passed over; so does one that was started meanwhile.
func TestAnUnreadableEntry(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.startMany("n", 3)
		w.becomeOneRing(time.Second, nodes)
		at := w.poison()
		for _, n := range nodes {
			n.stops(at)
		}
		extended := nodes[0].mem.Load().Stats().Extensions
		for _, n := range nodes {
			n.serves(window/3 - time.Second)
		}
		if now := nodes[0].mem.Load().Stats().Extensions; now != extended {
			t.Errorf("it extends its horizons: %+v, and then %+v", extended, now)
		}
		time.Sleep(window)
		for _, n := range nodes {
			n.refuses(time.Minute)
			if err := n.Ready(); !strings.Contains(err.Error(), "version 99") {
				t.Errorf("%s: %v", n.name, err)
			}
			if n.mem.Load().Err() != nil {
				t.Errorf("%s has ended", n.name)
			}
		}
		late := w.start("late")
		late.waits()
		if kvs, err := w.service.Client("test").List(t.Context(), pulses); err != nil || len(kvs) > 0 {
			t.Errorf("pulses %v, %v; want none", kvs, err)
		}
		m := nodes[1].mem.Load()
		var refused *SkipError
		if err := m.Skip(t.Context(), at-1); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), "has stopped at position") {
			t.Errorf("another position: %v", err)
		}
		if err := m.Skip(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * againEvery)
		w.becomeOneRing(10*time.Second, append(nodes, late))
		for _, n := range append(nodes, late) {
			n.ready(5 * time.Second)
		}
		for range 2 { // it is repeated, too
			if err := m.Skip(t.Context(), at); err != nil {
				t.Errorf("again: %v", err)
			}
		}
		if err := m.Skip(t.Context(), at+1); !errors.As(err, &refused) {
			t.Errorf("one that can be read: %v", err)
		}
		if s := w.skips(); len(s.Settled) != 1 || s.Proposed != nil || !m.Value().Skipped(at, s.Settled[0].Entry) {
			t.Errorf("%+v; the value knows it: %v", s, m.Value())
		}
		for range 300 { // until the log is cut beyond it
			w.append(cluster.AskClocks{By: "nobody"})
		}
	})
}

// One that starts from a checkpoint made after the skip has the same value.
func TestSkippedBeforeACheckpoint(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		few := func(c *setup) { c.CheckpointEvery = 20 }
		a, b := w.start("a", few), w.start("b", few)
		w.becomeOneRing(time.Second, []*node{a, b})
		at := w.poison()
		a.stops(at)
		b.stops(at)
		if err := a.mem.Load().Skip(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * againEvery)
		w.becomeOneRing(10*time.Second, []*node{a, b})
		for range 100 {
			w.append(cluster.AskClocks{By: "nobody"})
			time.Sleep(time.Millisecond)
		}
		log, err := w.service.Client("test").Read(t.Context(), 0)
		if err != nil || log.Checkpoint == nil || int64(log.Checkpoint.Position) <= at {
			t.Fatalf("the log was not cut: %+v, %v", log.Checkpoint, err)
		}
		late := w.start("late", few)
		w.becomeOneRing(10*time.Second, []*node{a, b, late})
	})
}

// While a member lives that may have applied the entry, it is not passed over, and no proposal is left behind.
func TestSkipWhileOneLives(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		at := w.poison()
		a.stops(at)
		newer := w.service.Client("newer")
		session, err := newer.OpenSession(t.Context(), ttl)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newer.Commit(t.Context(), store.Txn{Then: []store.Op{store.PutEphemeral(pulseKey("newer"),
			[]byte(`{"owner":"n9"}`), session)}}); err != nil {
			t.Fatal(err)
		}
		var refused *SkipError
		if err := a.mem.Load().Skip(t.Context(), at); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), `"n9"`) {
			t.Errorf("%v; want it refused", err)
		}
		if s := w.skips(); s.Proposed != nil || len(s.Settled) > 0 {
			t.Errorf("%+v is left", s)
		}
		// A proposal that nobody withdrew, since its process ended, does no harm: whoever begins to live withdraws it.
		if err := session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := a.mem.Load()
		stop := m.stopped.Load()
		s, where, err := m.getSkips(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Proposed = &skip{stop.at, stop.entry, "who died"}
		if err := m.putSkips(t.Context(), s, where); err != nil {
			t.Fatal(err)
		}
		b := w.start("b")
		b.waits()
		if s := w.skips(); s.Proposed != nil || len(s.Settled) > 0 {
			t.Errorf("%+v is left", s)
		}
		if err := m.Skip(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		w.becomeOneRing(10*time.Second, []*node{a, b})
	})
}

// A member that has applied an entry, and was away while it was passed over, replays the log without it.
func TestSkippedAfterItWasApplied(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		if _, err := a.mem.Load().Create(t.Context(), "spare", cluster.Define(layout)); err != nil {
			t.Fatal(err)
		}
		m := a.mem.Load()
		q, _ := m.Value().Sequencer("spare")
		log, err := w.service.Client("test").Read(t.Context(), store.Position(q.Created()-1))
		if err != nil {
			t.Fatal(err)
		}
		id := ""
		for _, e := range log.Entries {
			if int64(e.Position) == q.Created() {
				id = e.ID
			}
		}
		if err := m.putSkips(t.Context(), skips{Settled: []skip{{q.Created(), id, "x"}}},
			store.Condition{Key: skipsKey}); err != nil {
			t.Fatal(err)
		}
		if err := a.session().Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		w.becomeOneRing(10*time.Second, []*node{a})
		if v := m.Value(); !v.Skipped(q.Created(), id) {
			t.Errorf("it has not replayed the log again: %v", v)
		}
		if _, there := m.Value().Sequencer("spare"); there {
			t.Error("it has what the entry made")
		}
		b := w.start("b")
		w.becomeOneRing(10*time.Second, []*node{a, b})
	})
}

// What comes to a member between the session in which it learns that an entry is passed over and its second replay is
// not applied to the value that has the entry, of which it would make a checkpoint.
func TestNothingIsAppliedBeforeTheReplay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		session, err := w.service.Client("a").OpenSession(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close(t.Context())
		p := newPlayer(&Member{broken: make(chan error, 1), incarnation: &incarnation{session: session}})
		for range 100 { // a select has no order
			p.broken <- errSkips
			deliveries := make(chan delivery, 1)
			deliveries <- delivery{err: store.ErrUnavailable}
			if err := p.play(t.Context(), deliveries); !errors.Is(err, errSkips) {
				t.Fatalf("%v; want %v", err, errSkips)
			}
		}
	})
}

// A member does not go on from a checkpoint that has applied an entry that is passed over.
func TestACheckpointWithASkippedEntry(t *testing.T) {
	v, _ := cluster.Apply(cluster.Value{}, cluster.Entry{Position: 7, Command: cluster.PrepareJoin{Joiner: "a"}})
	var unreadable *cluster.UnreadableError
	s := skips{Settled: []skip{{7, "e", "x"}}}
	if err := s.fits(v); !errors.As(err, &unreadable) {
		t.Errorf("%v; want it unreadable", err)
	}
	v, _ = cluster.Apply(cluster.Value{}, cluster.Entry{Position: 7, Command: cluster.Skipped{Entry: "e"}})
	if err := s.fits(v); err != nil {
		t.Error(err)
	}
	if err := (skips{Settled: []skip{{8, "e", "x"}}}).fits(v); err != nil {
		t.Errorf("one that comes later: %v", err)
	}
}
