package peer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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

func several(n int) func(*setup) { return func(c *setup) { c.NodeIDs = n } }

// holds waits until the member makes IDs under so many node IDs.
func (n *node) holds(nodes int, within time.Duration) []int64 {
	n.world.t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		s := n.seq.Load()
		if s != nil && len(s.NodeIDs()) == nodes {
			return s.NodeIDs()
		}
		if time.Now().After(deadline) {
			n.world.t.Fatalf("%s has not %d node IDs after %v: %v", n.name, nodes, within, s.State())
		}
	}
}

func TestDeal(t *testing.T) {
	lane := func(granted int64, tenures ...int64) (l laneStatus) {
		if granted != noNode {
			l.granted = grant{kind: attachment.Granted, node: granted}
		}
		for i, node := range tenures {
			l.state.Tenures[i] = attachment.Tenure{Phase: attachment.Used, Node: node}
		}
		return l
	}
	none := int64(noNode)
	for _, c := range []struct {
		lanes []laneStatus
		held  []int64
		want  []int64
	}{
		{[]laneStatus{{}, {}}, []int64{4, 7}, []int64{4, 7}},
		{[]laneStatus{{}, {}, {}}, []int64{4}, []int64{4, none, none}},
		{[]laneStatus{lane(none), lane(4)}, []int64{4, 7}, []int64{7, 4}},
		{[]laneStatus{lane(4), lane(7)}, []int64{7, 9}, []int64{9, 7}},
		{[]laneStatus{lane(none, 3), lane(none, 4, 7)}, []int64{7, 9}, []int64{9, 7}},
		{[]laneStatus{lane(4, 7), lane(none, 4)}, []int64{4, 7}, []int64{4, 7}},
		{[]laneStatus{lane(4)}, nil, []int64{none}},
	} {
		if have := deal(c.lanes, c.held); !slices.Equal(have, c.want) {
			t.Errorf("%v among %v: %v, want %v", c.held, c.lanes, have, c.want)
		}
	}
}

// A member that asks for four node IDs makes IDs under all of them, and extends all in one transaction.
func TestSeveralNodeIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", several(4))
		a.ready(time.Second)
		nodes := a.holds(4, time.Second)
		if state := a.seq.Load().State(); state != (State{Phase: Attached, Node: nodes[0], Nodes: 4}) {
			t.Errorf("its state is %v", state)
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		seen, under := map[firn.ID]bool{}, map[int64]int{}
		for range 16 {
			all.Go(func() {
				ids := make([]firn.ID, 20_000)
				if err := a.Fill(t.Context(), ids); err != nil || !slices.IsSorted(ids) {
					t.Errorf("Fill: %v, sorted: %v", err, slices.IsSorted(ids))
				}
				mu.Lock()
				defer mu.Unlock()
				for _, id := range ids {
					if seen[id] {
						t.Fatalf("%d was given twice", id)
					}
					seen[id] = true
					p, _ := layout.Decompose(id)
					under[p.Node]++
				}
			})
		}
		all.Wait()
		for _, node := range nodes {
			if under[node] == 0 {
				t.Errorf("no ID was made under node ID %d: %v", node, under)
			}
		}
		time.Sleep(window + time.Second)
		var commits atomic.Int64
		a.client.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.Commit && !strings.HasPrefix(c.Txn.Then[0].Key, history) {
				commits.Add(1)
			}
			return memstore.Fault{}
		})
		time.Sleep(10 * window)
		if commits.Load() != 30 {
			t.Errorf("%d transactions in 10 windows, want 30", commits.Load())
		}
		for tenure := range a.seq.Load().status.Load().inUse {
			if left := time.Until(tenure.fence.Horizon()); left < 2*window/3-time.Second {
				t.Errorf("node ID %d has %v left", tenure.fence.Node(), left)
			}
		}
	})
}

// One caller that takes more than a node ID has in a tick takes from the next, and waits only when all are used up.
func TestOneCallerTakesFromAllNodeIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", several(4))
		a.ready(time.Second)
		a.holds(4, time.Second)
		s, before := a.seq.Load(), a.seq.Load().Stats().Waits
		perTick := 1 << layout.SequenceBits
		ticks := int(firn.DefaultLookAhead/layout.Tick) + 1
		for i := range 4 * ticks * (perTick - 1) {
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			if waits := s.Stats().Waits; waits != before {
				t.Fatalf("it waited for the ID %d of a tick", i)
			}
		}
		for range 4 * ticks * 2 {
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if s.Stats().Waits == before {
			t.Error("it never waited")
		}
	})
}

// One of four node IDs is lost: the other three serve on, and another one takes its place.
func TestOneNodeIDOfSeveralIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", several(4))
		a.ready(time.Second)
		nodes := a.holds(4, time.Second)
		s := a.seq.Load()
		_, err := w.service.Client("thief").Commit(t.Context(),
			store.Txn{Then: []store.Op{store.Delete(fmt.Sprintf("%slive/%d", s.fences.Prefix, nodes[1]))}})
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(2 * window); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
			if now := s.NodeIDs(); len(now) != 4 {
				t.Fatalf("it has %v, and had %v", now, nodes)
			}
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		now := s.NodeIDs()
		if slices.Contains(now, nodes[1]) {
			t.Errorf("it still has %d: %v", nodes[1], now)
		}
		for _, i := range []int{0, 2, 3} {
			if !slices.Contains(now, nodes[i]) {
				t.Errorf("it no longer has %d: %v", nodes[i], now)
			}
		}
	})
}

// Node IDs are shared out fairly: nobody has a second one while somebody has none, and those that others leave are
// taken.
func TestSeveralNodeIDsAreShared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		four := func(c *setup) { c.definition.Nodes, c.NodeIDs = 4, 4 }
		a := w.start("a", four)
		a.ready(time.Second)
		a.holds(4, time.Second)
		b := w.start("b", four)
		b.settled()
		a.holds(2, time.Second)
		b.holds(2, time.Second)
		nodes := []*node{a, b, w.start("c", four), w.start("d", four)}
		for _, n := range nodes {
			n.settled()
			n.holds(1, time.Second)
		}
		for end := time.Now().Add(window); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
			for _, n := range nodes {
				if _, err := n.Next(t.Context()); err != nil {
					t.Fatalf("%s: %v", n.name, err)
				}
			}
		}
		e := w.start("e", four)
		if s := e.settled(); s.State().Phase != Waiting {
			t.Errorf("a fifth is %v", s.State())
		}
		e.leave()
		nodes[2].leave()
		nodes[3].leave()
		a.holds(2, time.Second)
		b.holds(2, time.Second)
		b.leave()
		a.holds(4, time.Second)
	})
}

// A member with several node IDs is detached, attached, drained and undrained with all of them, and crashes with all.
func TestSeveralNodeIDsComeAndGo(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a", several(4)), w.start("b")
		a.ready(time.Second)
		b.ready(time.Second)
		a.holds(4, time.Second)
		q := func() cluster.Sequencer {
			v, _ := a.mem.Load().Value().Sequencer(DefaultSequencer)
			return v
		}
		free := q().Free()
		if err := a.seq.Load().Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := q().Free(); now != free+4 {
			t.Errorf("%d node IDs are free, and %d were", now, free)
		}
		if err := a.seq.Load().Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.holds(4, time.Second)
		if err := b.mem.Load().Drain(t.Context(), DefaultSequencer, a.mem.Load().ID()); err != nil {
			t.Fatal(err)
		}
		a.holds(0, time.Second)
		if err := b.mem.Load().Undrain(t.Context(), DefaultSequencer, a.mem.Load().ID()); err != nil {
			t.Fatal(err)
		}
		a.holds(4, time.Second)
		had := a.mem.Load().ID()
		w.service.Expire(a.session())
		for end := time.Now().Add(2 * window); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
			if _, err := a.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		a.holds(4, time.Second)
		if now := a.mem.Load().ID(); now == had {
			t.Error("it has not joined again")
		}
	})
}

// Where a node ID has no IDs left for now, callers go on with the next one, rather than ask the first again for each
// ID.
func TestCallersMoveOnWithTheIDs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the caller stays on its processor
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", several(3))
		a.ready(time.Second)
		a.holds(3, time.Second)
		s := a.seq.Load()
		take := func() int64 {
			t.Helper()
			id, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			node, err := layout.NodeID(id)
			if err != nil {
				t.Fatal(err)
			}
			return node
		}
		for range 5 {
			first, taken := take(), 1
			next := first
			for ; next == first; taken++ {
				next = take()
			}
			time.Sleep(time.Second) // the first one has IDs again
			if node := take(); node != next {
				t.Errorf("after %d of node ID %d and one of %d there is one of %d; want one of %d", taken-1, first,
					next, node, next)
			}
		}
	})
}

// The IDs of several calls ascend where each is to exceed the last of the one before, also when its node ID is lost.
func TestFillAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", several(3))
		a.ready(time.Second)
		a.holds(3, time.Second)
		s := a.seq.Load()
		var others sync.WaitGroup
		for range 5 {
			others.Go(func() {
				for range 100 {
					if err := s.Fill(t.Context(), make([]firn.ID, 5000)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		var last firn.ID
		ids, under := make([]firn.ID, 3000), map[int64]bool{}
		for i := range 100 {
			err := s.FillAfter(t.Context(), last, MaxAhead, ids)
			if err != nil || ids[0] <= last || !slices.IsSorted(ids) {
				t.Fatalf("%v: %d after %d", err, ids[0], last)
			}
			last = ids[len(ids)-1]
			node, _ := layout.NodeID(last)
			under[node] = true
			switch {
			case i == 50 && len(under) != 1:
				t.Errorf("its IDs are of the node IDs %v", under)
			case i == 50:
				_, err := w.service.Client("thief").Commit(t.Context(),
					store.Txn{Then: []store.Op{store.Delete(fmt.Sprintf("%slive/%d", s.fences.Prefix, node))}})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * window / 3) // it is noticed, and another one takes its place
			}
		}
		others.Wait()
		if len(under) < 2 {
			t.Errorf("its IDs are of the node IDs %v", under)
		}
	})
}

// A caller goes on with the node ID of its last ID, and where that is gone, with IDs above it all the same.
func TestFillAfterKeepsTheNodeID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", several(3))
		a.ready(time.Second)
		a.holds(3, time.Second)
		s, ids := a.seq.Load(), make([]firn.ID, 2)
		for _, g := range s.status.Load().generators {
			after, err := g.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.FillAfter(t.Context(), after, MaxAhead, ids); err != nil || ids[0] <= after {
				t.Errorf("%v: %d after %d", err, ids[0], after)
			}
			if node, _ := layout.NodeID(ids[1]); node != g.NodeID() {
				t.Errorf("after an ID of node ID %d comes one of %d", g.NodeID(), node)
			}
		}
		tick, err := layout.TickAt(time.Now().Add(3 * time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		after, err := layout.Compose(firn.Parts{Tick: tick, Node: 900})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.FillAfter(t.Context(), after, MaxAhead, ids); err != nil || ids[0] <= after {
			t.Errorf("%v: %d after %d, whose node ID is not in use", err, ids[0], after)
		}
	})
}

// An ID that exceeds another comes at once, however far that is ahead of the clock, up to a limit and the horizon. All
// later IDs exceed it, too, also those of the node ID that takes the place of a lost one.
func TestFillAfterMovesIDTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", several(2))
		a.ready(time.Second)
		a.holds(2, time.Second)
		s, ids := a.seq.Load(), make([]firn.ID, 2)
		ahead := func(d time.Duration) firn.ID {
			t.Helper()
			tick, err := layout.TickAt(time.Now().Add(d))
			if err != nil {
				t.Fatal(err)
			}
			after, err := layout.Compose(firn.Parts{Tick: tick, Node: 900})
			if err != nil {
				t.Fatal(err)
			}
			return after
		}
		at := time.Now()
		for _, d := range []time.Duration{time.Second, 9 * time.Second, 5 * time.Second} {
			after := ahead(d)
			if err := s.FillAfter(t.Context(), after, MaxAhead, ids); err != nil || ids[0] <= after {
				t.Errorf("%v: %d after %d", err, ids[0], after)
			}
			id, err := s.Next(t.Context())
			if nodes := len(s.NodeIDs()); err != nil || nodes == 1 && id <= after {
				t.Errorf("%v: %d after %d", err, id, after)
			}
		}
		if took := time.Since(at); took > 0 {
			t.Errorf("it took %v", took)
		}
		if got := s.Stats().Ahead; got < 9*time.Second || got > 9*time.Second+2*layout.Tick {
			t.Errorf("it is %v ahead", got)
		}
		for _, c := range []struct{ ahead, most, may time.Duration }{
			{MaxAhead + time.Second, MaxAhead, MaxAhead},
			{9*time.Second + 100*time.Millisecond, time.Second, time.Second},
			{2 * window, 3 * window, window / 3}, // the horizon is extended that often
		} {
			var e *firn.AheadError
			err := s.FillAfter(t.Context(), ahead(c.ahead), c.most, ids)
			if !errors.As(err, &e) || (e.Most-c.may).Abs() > 2*layout.Tick || ids[0] != 0 {
				t.Errorf("%v ahead: %v; want at most %v", c.ahead, err, c.may)
			}
		}
	})
}

// Nobody waits for the clock, either, when another node ID takes the place of one whose IDs are ahead.
func TestIDTimeStaysWithTheNextNodeID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		s, ids := a.seq.Load(), make([]firn.ID, 1)
		node := s.NodeIDs()[0]
		_, err := w.service.Client("thief").Commit(t.Context(),
			store.Txn{Then: []store.Op{store.Delete(fmt.Sprintf("%slive/%d", s.fences.Prefix, node))}})
		if err != nil {
			t.Fatal(err)
		}
		for slices.Equal(s.NodeIDs(), []int64{node}) || len(s.NodeIDs()) == 0 {
			after, err := layout.Last(time.Now().Add(9 * time.Second))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.FillAfter(t.Context(), after, MaxAhead, ids); err != nil {
				t.Fatal(err)
			}
			time.Sleep(window / 20)
		}
		if !time.Now().Before(layout.TickStart(tickOf(t, ids[0]))) {
			t.Fatal("the clock is there already")
		}
		at := time.Now()
		if id, err := s.Next(t.Context()); err != nil || id <= ids[0] || time.Since(at) > 0 {
			t.Errorf("%v: %d after %d, in %v", err, id, ids[0], time.Since(at))
		}
	})
}

func tickOf(t *testing.T, id firn.ID) int64 {
	t.Helper()
	p, err := layout.Decompose(id)
	if err != nil {
		t.Fatal(err)
	}
	return p.Tick
}

// Where there are no IDs, a lane with a node ID says why, if there is one.
func TestALaneSpeaksForAll(t *testing.T) {
	inLine := laneStatus{granted: grant{kind: attachment.InLine}, settled: true}
	granted := laneStatus{granted: grant{kind: attachment.Granted}}
	settled := laneStatus{granted: grant{kind: attachment.Granted}, settled: true}
	for _, c := range []struct {
		lanes []laneStatus
		want  int
	}{
		{[]laneStatus{inLine, inLine}, 0},
		{[]laneStatus{inLine, granted}, 1},
		{[]laneStatus{inLine, granted, settled}, 2},
		{[]laneStatus{settled, granted}, 0},
	} {
		st := status{lanes: c.lanes}
		if st.lane() != &st.lanes[c.want] {
			t.Errorf("of %v it is not number %d", c.lanes, c.want)
		}
	}
}

// A call waits for the clock where all node IDs are used up, and ends with its context.
func TestFillOfSeveralEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", several(2))
		a.ready(time.Second)
		a.holds(2, time.Second)
		ctx, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer end()
		ids := make([]firn.ID, 1_000_000)
		if err := a.Fill(ctx, ids); err == nil || slices.Max(ids) != 0 {
			t.Errorf("%v, and the last is %d", err, slices.Max(ids))
		}
	})
}
