package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// The IDs of several calls ascend where each is to exceed the last of the one before, also when its node ID is lost.
func TestFillAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
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
		if len(under) != 2 {
			t.Errorf("its IDs are of the node IDs %v", under)
		}
	})
}

// An ID of another node ID is exceeded, too.
func TestFillAfterAnotherNodeID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		s, ids := a.seq.Load(), make([]firn.ID, 2)
		tick, err := layout.TickAt(time.Now().Add(3 * time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		after, err := layout.Compose(firn.Parts{Tick: tick, Node: 900})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.FillAfter(t.Context(), after, MaxAhead, ids); err != nil || ids[0] <= after {
			t.Errorf("%v: %d after %d", err, ids[0], after)
		}
	})
}

// An ID that exceeds another comes at once, however far that is ahead of the clock, up to a limit and the horizon. All
// later IDs exceed it, too, also those of the node ID that takes the place of a lost one.
func TestFillAfterMovesIDTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
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
			if err != nil || id <= after {
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
		node := s.State().Node
		_, err := w.service.Client("thief").Commit(t.Context(),
			store.Txn{Then: []store.Op{store.Delete(fmt.Sprintf("%slive/%d", s.fences.Prefix, node))}})
		if err != nil {
			t.Fatal(err)
		}
		for now := s.State(); now.Phase != Attached || now.Node == node; now = s.State() {
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

// A call waits for the clock where the IDs are used up, and ends with its context.
func TestFillEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		ctx, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer end()
		ids := make([]firn.ID, 1_000_000)
		if err := a.Fill(ctx, ids); err == nil || slices.Max(ids) != 0 {
			t.Errorf("%v, and the last is %d", err, slices.Max(ids))
		}
	})
}
