package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store/memstore"
)

// past asks for IDs of the default sequencer.
func (n *node) past(t *testing.T, p Past) PastIDs {
	t.Helper()
	given, err := n.mem.Load().GivePast(t.Context(), DefaultSequencer, p)
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	return given
}

// instants returns times from the layout's epoch on.
func instants(ms ...int) (all []time.Time) {
	for _, n := range ms {
		all = append(all, layout.Epoch.Add(time.Duration(n)*time.Millisecond))
	}
	return all
}

// TestPastIDs: each is of its instant, and no two are equal, of whichever jobs and members.
func TestPastIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		a.ready(time.Second)
		b.ready(time.Second)
		seen := map[firn.ID]bool{}
		check := func(given PastIDs, times []time.Time) {
			t.Helper()
			for i, id := range given.IDs {
				p, err := layout.Decompose(id)
				at, _ := layout.Time(id)
				if err != nil || !at.Equal(times[i].Truncate(layout.Tick)) || p.Node != given.Node || seen[id] {
					t.Errorf("%v gets %d, %+v, %v; again: %v", times[i], id, p, err, seen[id])
				}
				seen[id] = true
			}
		}
		first, second := instants(5, 3, 5, 1000), instants(1000, 2000)
		x := a.past(t, Past{Job: "x", Key: "1", Times: first})
		check(x, first)
		if again := b.past(t, Past{Job: "x", Key: "1", Times: first}); !slices.Equal(again.IDs, x.IDs) || again.Began {
			t.Errorf("the same call gets %+v, and got %+v", again, x)
		}
		y := b.past(t, Past{Job: "y", Times: first})
		check(y, first)
		check(b.past(t, Past{Job: "x", Times: second, After: x.IDs[3]}), second)
		if x.Node == y.Node || !x.Began {
			t.Errorf("two jobs are %+v and %+v", x, y)
		}
		for _, wrong := range []Past{
			{Job: "x", Times: instants(1999)},
			{Job: "x", Times: []time.Time{time.Now().Add(time.Second)}},
			{Job: "y", After: x.IDs[0]},
		} {
			if _, err := a.mem.Load().GivePast(t.Context(), DefaultSequencer, wrong); reason.Of(err) != "refused" {
				t.Errorf("%+v: %v", wrong, err)
			}
		}
		var forgotten *ForgottenError
		for _, p := range []Past{{Job: "never", After: 7}, {Job: "y", After: y.IDs[3] + 1}} {
			if _, err := a.mem.Load().GivePast(t.Context(), DefaultSequencer, p); !errors.As(err, &forgotten) {
				t.Errorf("%+v: %v", p, err)
			}
		}

		check(a.past(t, Past{Job: "x", Times: instants(2000, 2500), End: true}), instants(2000, 2500))
		for range 2 { // the second one finds that it is over
			a.past(t, Past{Job: "x", End: true})
		}
		q, err := a.mem.Load().latest(t.Context(), DefaultSequencer)
		if err != nil || q.Reservation("import x") != nil || q.Reservation("import y") == nil {
			t.Errorf("reserved are %v, %v", q.Reserved(), err)
		}
		owners, err := a.mem.Load().Owners(t.Context(), DefaultSequencer)
		i := slices.IndexFunc(owners, func(o Owner) bool { return o.Node == x.Node })
		if want := layout.Epoch.Add(2501 * time.Millisecond); err != nil || owners[i].Reserved ||
			!owners[i].Horizon.Equal(want) {
			t.Errorf("after it is over: %+v, %v; want that the next begins at %v", owners[i], err, want)
		}
		again := a.past(t, Past{Job: "x", Times: first})
		check(again, first)
	})
}

// A job gets a node ID for later where the others were used.
func TestPastTakesWhatIsForLater(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		q, err := a.mem.Load().latest(t.Context(), DefaultSequencer)
		if err != nil {
			t.Fatal(err)
		}
		later := cluster.Reserving{For: cluster.Later, Count: q.Free() - 1}
		if _, _, err := a.mem.Load().Reserve(t.Context(), DefaultSequencer, later); err != nil {
			t.Fatal(err)
		}
		x := a.past(t, Past{Job: "x", Times: instants(1000), End: true})
		if y := a.past(t, Past{Job: "y", Times: instants(5)}); y.Node == x.Node {
			t.Errorf("both jobs have the node ID %d", x.Node)
		}
	})
}

func TestJobsAreFew(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		for i := range MostJobs {
			a.past(t, Past{Job: fmt.Sprint(i)})
		}
		_, err := a.mem.Load().GivePast(t.Context(), DefaultSequencer, Past{Job: "one more"})
		if !errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), "16 jobs have begun") {
			t.Error(err)
		}
		a.past(t, Past{Job: "3", End: true})
		a.past(t, Past{Job: "one more"})
	})
}

// Where every node ID was used, a job begins where the one ended that ended first, and says so.
func TestAJobOnAUsedNodeID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, from := reserveBoth(t, w)
		m := a.mem.Load()
		if err := m.Release(t.Context(), "orders", "warehouse", from.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		ask := func(p Past) (PastIDs, error) { return m.GivePast(t.Context(), "orders", p) }
		q, _ := m.Value().Sequencer("orders")
		early := []time.Time{q.Definition().Layout.Epoch}
		if given, err := ask(Past{Job: "x", Times: early}); reason.Of(err) != "refused" ||
			!strings.Contains(err.Error(), "the job gives IDs from ") {
			t.Errorf("%+v, %v", given, err)
		}
		time.Sleep(window)
		if given, err := ask(Past{Job: "x", Times: []time.Time{from.Add(2 * time.Second)}}); err != nil ||
			len(given.IDs) != 1 {
			t.Errorf("%+v, %v", given, err)
		}
		if _, err := ask(Past{Job: "y", Times: early}); err != nil && reason.Of(err) != "refused" {
			t.Error(err)
		}
		if _, err := ask(Past{Job: "z"}); !errors.As(err, new(*RefusedError)) {
			t.Errorf("without a free node ID: %v", err)
		}
	})
}

func TestCountersHaveNoPast(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		d := cluster.Definition{Kind: cluster.Counter}
		if _, err := m.Create(t.Context(), "invoices", d); err != nil {
			t.Fatal(err)
		}
		if _, err := m.GivePast(t.Context(), "invoices", Past{Job: "x", Times: instants(1)}); !errors.As(err,
			new(*RefusedError)) {
			t.Error(err)
		}
	})
}

// Scattered IDs have a past, too, and strangers to it are told apart.
func TestScatteredPast(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		d := cluster.Define(layout)
		d.Scattered = true
		if _, err := m.Create(t.Context(), "keys", d); err != nil {
			t.Fatal(err)
		}
		given, err := m.GivePast(t.Context(), "keys", Past{Job: "x", Times: instants(7)})
		if err != nil {
			t.Fatal(err)
		}
		at, err := layout.Time(firn.Gather(given.IDs[0]))
		if err != nil || !at.Equal(instants(7)[0]) {
			t.Errorf("%v, %v", at, err)
		}
		if _, err := m.GivePast(t.Context(), "keys", Past{Job: "x", After: given.IDs[0]}); err != nil {
			t.Error(err)
		}
	})
}

// A store that has forgotten what a job has given gives nothing of that time again, to whomever.
func TestThePastIsNotRepeatedAfterALoss(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a := w.start("a")
				a.ready(time.Second)
				a.past(t, Past{Job: "x", Times: instants(0)}) // a backup may have that
				a.past(t, Past{Job: "z"})
				lose := loss(w)
				a.past(t, Past{Job: "z", Times: instants(0)})
				x := a.past(t, Past{Job: "x", Times: instants(1, 2, 3)})
				w.takes(window, a)
				lose()
				w.takes(window/2, a) // it notices before others write
				if !a.noticed() {
					t.Fatal("the member has not noticed that the store has lost data")
				}
				late := w.start("late")
				late.ready(10 * window)
				w.takes(2*time.Second, a, late)
				for _, n := range []*node{a, late} {
					for _, p := range []Past{
						{Job: "x", Times: instants(1, 2, 3)},
						{Job: "y", Times: instants(1)},
						{Job: "x", Times: instants(4), After: x.IDs[2]},
					} {
						given, err := n.mem.Load().GivePast(t.Context(), DefaultSequencer, p)
						if code := reason.Of(err); code != "refused" && code != "lost" {
							t.Errorf("%+v: %+v, %v", p, given, err)
						}
					}
				}
			})
		})
	}
}

// Several callers of one job, by several members, over a store that fails: no ID is given twice, and none is of an
// instant that nobody has asked for.
func TestOneJobAtSeveralMembers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := []*node{w.start("a"), w.start("b"), w.start("c")}
		for _, n := range nodes {
			n.ready(time.Second)
		}
		nodes[0].past(t, Past{Job: "x"})
		for i, n := range nodes {
			var calls atomic.Int64
			n.client.Inject(func(memstore.Call) memstore.Fault {
				calls := int(calls.Add(1))
				switch (calls + i) % 7 {
				case 0:
					return memstore.Fault{Outcome: memstore.FailAfter, Delay: time.Millisecond}
				case 3:
					return memstore.Fault{Outcome: memstore.FailBefore}
				}
				return memstore.Fault{Delay: time.Duration(calls%3) * time.Millisecond}
			})
		}
		var mu sync.Mutex
		seen := map[firn.ID]bool{}
		var all sync.WaitGroup
		for i, n := range nodes {
			all.Go(func() {
				for k := 0; k < 40; {
					times := instants(k*20, k*20+i, k*20)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					given, err := n.mem.Load().GivePast(ctx, DefaultSequencer, Past{Job: "x", Times: times})
					cancel()
					if err == nil || reason.Of(err) == "refused" { // others are further
						k++
					}
					if err != nil {
						continue
					}
					mu.Lock()
					for i, id := range given.IDs {
						if at, _ := layout.Time(id); seen[id] || !at.Equal(times[i]) {
							t.Errorf("%v gets %d of %v, again: %v", times[i], id, at, seen[id])
						}
						seen[id] = true
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(seen) < 30 {
			t.Errorf("only %d IDs", len(seen))
		}
	})
}
