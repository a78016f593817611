package member

import (
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/store"
)

// id is its present member ID.
func (n *node) id() string { return n.mem.Load().ID() }

// live returns the live keys of a sequencer.
func (w *world) live(sequencer string) []store.KV {
	w.t.Helper()
	kv, err := w.service.Client("test").List(w.t.Context(), fencePrefix(sequencer)+"live/")
	if err != nil {
		w.t.Error(err)
	}
	return kv
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
		if leave, ok := entry.Command.(cluster.Leave); ok {
			all = append(all, leave)
		}
		if entry.At.Sub(time.Now()).Abs() > time.Hour {
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
		time.Sleep(time.Millisecond)
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
			held := w.live(DefaultSequencer)[0].Version
			for w.live(DefaultSequencer) != nil && w.live(DefaultSequencer)[0].Version == held {
				time.Sleep(time.Millisecond)
			}
			b.ready(20 * time.Millisecond)
		})
	}
}
