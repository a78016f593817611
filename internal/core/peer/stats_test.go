package peer

import (
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// The counters show what happened: extensions that succeed or fail, a lost session, steps that are believed.
func TestStats(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		time.Sleep(window)
		s := m.Stats()
		if !s.Session || !s.Joined || s.Rejoins != 0 || s.Position == 0 || s.Entries == 0 {
			t.Errorf("a member has %+v", s)
		}
		if done := s.Extensions; done.Done < 2 || done != (Extensions{Done: done.Done}) {
			t.Errorf("after a window there were %+v", done)
		}
		if s.Offset != 0 || s.StepsAhead+s.StepsBack != 0 || s.StepsBelieved != 0 {
			t.Errorf("the clock has %v, %+v", s.Offset, s)
		}

		before := s.Extensions
		a.client.CutOff(true)
		time.Sleep(2 * ttl)
		s = m.Stats()
		if s.Session || !s.Joined || s.Extensions.Doubt+s.Extensions.Failed < 3 || s.Extensions.Done > before.Done+1 {
			t.Errorf("without the store it has %+v", s)
		}
		a.client.CutOff(false)
		a.ready(ttl)
		if s = m.Stats(); !s.Session || !s.Joined || s.Rejoins != 1 {
			t.Errorf("with the store again it has %+v", s)
		}

		w.service.Expire(a.session())
		a.serves(window)
		if s = m.Stats(); s.Rejoins != 2 {
			t.Errorf("after the session's end it has %+v", s)
		}

		a.wall.step(time.Hour)
		a.serves(window)
		if s = m.Stats(); s.StepsBelieved != 1 || s.StepsAhead != 1 || s.StepsBack != 0 || s.Offset != 0 {
			t.Errorf("after a step that was believed it has %+v", s)
		}
		a.wall.step(-time.Minute)
		a.serves(time.Second)
		if s = m.Stats(); s.StepsAhead != 1 || s.StepsBack != 1 || s.Offset > -50*time.Second {
			t.Errorf("after a step back it has %+v", s)
		}
		a.leave()
		if s = m.Stats(); s.Session {
			t.Errorf("after it left it has %+v", s)
		}
	})
}

// A node ID that others took away counts as lost.
func TestLostExtensionsAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		q := a.seq.Load()
		live := fmt.Sprintf("%slive/%d", q.fences.Prefix, q.State().Node)
		thief := w.service.Client("thief")
		if _, err := thief.Commit(t.Context(), store.Txn{Then: []store.Op{store.Delete(live)}}); err != nil {
			t.Fatal(err)
		}
		a.serves(window)
		if e := a.mem.Load().Stats().Extensions; e.Lost != 1 || e.Done == 0 || e.Doubt+e.Failed != 0 {
			t.Errorf("it has %+v", e)
		}
	})
}

// The horizon is ahead of the clock while there is a node ID, what was waited for is kept when another takes its place,
// and nothing is left after the end.
func TestSequencerStats(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		q := a.seq.Load()
		s := q.Stats()
		node, _ := a.NodeID()
		if s.State != (State{Phase: Attached, Node: node}) || s.Left <= window/2 ||
			s.Left > window+time.Second || !s.Floor.Before(s.Horizon) {
			t.Errorf("attached it has %+v", s)
		}
		if err := q.Fill(t.Context(), make([]firn.ID, 100_000)); err != nil {
			t.Fatal(err)
		}
		waited := q.Stats()
		if waited.Waits == 0 || waited.WaitedTime < 10*time.Millisecond {
			t.Errorf("after 25 ticks at once it has %+v", waited)
		}
		w.service.Expire(a.session())
		a.serves(window)
		if now, _ := a.NodeID(); now == node {
			t.Fatalf("it still has the node ID %d", now)
		}
		if s = q.Stats(); s.Waits < waited.Waits || s.WaitedTime < waited.WaitedTime {
			t.Errorf("under another node ID it has %+v, and had %+v", s, waited)
		}
		a.client.CutOff(true)
		time.Sleep(2 * window)
		if s = q.Stats(); s.Left >= 0 {
			t.Errorf("past the horizon it has %+v", s)
		}
		a.client.CutOff(false)
		a.ready(ttl)
		if err := q.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s = q.Stats(); s.State.Phase != Detached || !s.Horizon.IsZero() || s.Left != 0 {
			t.Errorf("detached it has %+v", s)
		}
	})
}
