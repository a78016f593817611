package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// reserve reserves the only two node IDs that a sequencer has, one of which a has used and given back.
func reserveBoth(t *testing.T, w *world) (a *node, from time.Time) {
	t.Helper()
	a = w.start("a")
	a.ready(time.Second)
	m := a.mem.Load()
	d := cluster.Define(layout)
	d.Nodes = 2
	s, err := m.EnsureSequencer(t.Context(), "orders", d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	horizon := s.status.Load().inUse().fence.Horizon()
	if err := s.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, first, err := m.Reserve(t.Context(), "orders", cluster.Reserving{For: "warehouse", Count: 2})
		if err != nil || !slices.Equal(r.Nodes, []int64{0, 1}) {
			t.Fatalf("%+v, %v", r, err)
		}
		if !from.IsZero() && !first.Equal(from) {
			t.Errorf("it begins at %v, and before at %v", first, from)
		}
		from = first
	}
	if from.After(horizon) || from.Before(epoch) {
		t.Errorf("it begins at %v; a may have used the time up to %v", from, horizon)
	}
	return a, from
}

func TestNobodyGetsAReservedNodeID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := reserveBoth(t, w)
		m := a.mem.Load()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := m.Attach(ctx, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Ready(); !errors.Is(err, ErrWaiting) ||
			!strings.Contains(err.Error(), "0 to 1, are held or reserved") {
			t.Errorf("with both reserved: %v", err)
		}
		if err := m.Destroy(ctx, "orders"); err == nil {
			t.Error("destroyed, while node IDs are reserved")
		}

		// One that has not read so far finds the fences.
		session := a.session()
		for node := range int64(2) {
			if _, err := fence.Claim(t.Context(), s.fences, session, node); !errors.As(err,
				new(*fence.ClockBehindError)) {
				t.Errorf("a claim of %d: %v", node, err)
			}
		}

		used := time.Now().Add(10 * time.Second)
		if err := m.Release(ctx, "orders", "warehouse", used); err != nil {
			t.Fatal(err)
		}
		for deadline := used.Add(window); s.Ready() != nil && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		id, err := s.Next(ctx)
		if at, atErr := s.layout.Time(id); err != nil || atErr != nil || at.Before(used) {
			t.Errorf("after the release: %v of %v, %v; want %v or later", id, at, err, used)
		}
		if err := m.Release(ctx, "orders", "warehouse", used); !errors.As(err, new(*RefusedError)) {
			t.Errorf("released again: %v", err)
		}
		if err := m.Destroy(ctx, "orders"); err != nil {
			t.Error(err)
		}
	})
}

// The greatest ID says until when the node IDs were used. What can't be it is refused, and changes nothing.
func TestReleaseAfterAnID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := reserveBoth(t, w)
		m := a.mem.Load()
		at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		err := m.Release(t.Context(), "orders", "warehouse", time.Time{})
		if err == nil {
			_, _, err = m.Reserve(t.Context(), "orders", cluster.Reserving{For: "warehouse", Nodes: []int64{1}})
		}
		if err != nil {
			t.Fatal(err)
		}
		q, _ := m.Value().Sequencer("orders")
		layout := q.Definition().IDLayout()
		tick, _ := layout.TickAt(at)
		id := func(node int64) firn.ID {
			id, err := layout.Compose(firn.Parts{Tick: tick, Node: node, Sequence: 7})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		if err := m.ReleaseAfter(t.Context(), "orders", "warehouse", id(0)); err == nil {
			t.Error("released after an ID of another node ID")
		}
		if err := m.ReleaseAfter(t.Context(), "orders", "warehouse", -1); err == nil {
			t.Error("released after what is no ID")
		}
		if err := m.Release(t.Context(), "orders", "warehouse", time.Now().Add(25*time.Hour)); err == nil {
			t.Error("released far ahead of the clock")
		}
		if err := m.ReleaseAfter(t.Context(), "orders", "warehouse", id(1)); err != nil {
			t.Fatal(err)
		}
		owners, err := m.Owners(t.Context(), "orders")
		if want := at.Add(layout.Tick); err != nil || owners[1].Reserved || !owners[1].Horizon.Equal(want) {
			t.Errorf("%+v, %v; want until %v", owners, err, want)
		}
	})
}

// A member that knows of a reservation makes it again on a store that has lost it, before anybody gets the node ID.
func TestReservationsOutliveALoss(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				lose := loss(w)
				a := w.start("a")
				a.ready(time.Second)
				made, _, err := a.mem.Load().Reserve(t.Context(), DefaultSequencer,
					cluster.Reserving{For: "warehouse", Count: 2})
				if err != nil {
					t.Fatal(err)
				}
				w.takes(window, a)
				lose()
				w.takes(window/2, a) // it notices before others write
				if !a.noticed() {
					t.Fatal("the member has not noticed that the store has lost data")
				}
				late := w.start("late")
				for deadline := time.Now().Add(10 * window); ; w.takes(100*time.Millisecond, a, late) {
					owners, err := a.mem.Load().Owners(t.Context(), DefaultSequencer)
					reserved := slices.DeleteFunc(owners, func(o Owner) bool { return !o.Reserved })
					if err == nil && len(reserved) == 2 {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("%+v, %v", owners, err)
					}
				}
				late.ready(10 * window)
				q, _ := late.mem.Load().Value().Sequencer(DefaultSequencer)
				if r := q.Reservation("warehouse"); r == nil || !slices.Equal(r.Nodes, made.Nodes) {
					t.Errorf("reserved is %+v", r)
				}
				w.takes(2*time.Second, a, late)
				_, from, err := a.mem.Load().
					Reserve(t.Context(), DefaultSequencer, cluster.Reserving{For: "more", Count: 1})
				f, _, floorErr := a.mem.Load().readFloor(t.Context())
				if err != nil || floorErr != nil || from.Before(f.From) || f.From.Before(epoch) {
					t.Errorf("what is reserved then begins at %v, %v; members at %v, %v", from, err, f.From, floorErr)
				}
				if _, still := a.mem.Load().unkept.Load(DefaultSequencer); still {
					t.Error("it would be reserved again for ever")
				}
			})
		})
	}
}

// What is kept for later from the beginning has fences once it is created, and what takes from it gets what it would
// have had of the free ones: a node ID that was never used begins where the sequencer does.
func TestNodeIDsForLater(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m, d := a.mem.Load(), cluster.Define(layout)
		d.Nodes = 8
		create := func(count int64) (bool, error) { return m.CreateReserving(t.Context(), "orders", d, count) }
		fails := func(count int64, want string) {
			t.Helper()
			_, err := create(count)
			if err == nil || !strings.Contains(err.Error(), want) || reason.Of(err) != "refused" {
				t.Errorf("create with %d for later: %v, want a refusal with %q", count, err, want)
			}
		}
		fails(9, "only 8 node IDs are free")
		for i := range 2 {
			if created, err := create(3); err != nil || created != (i == 0) {
				t.Fatalf("create %d: %v, %v", i, created, err)
			}
		}
		fails(4, `"orders" exists, and 3 of its node IDs are reserved for "later", not 4`)
		if created, err := m.Create(t.Context(), "orders", d); err != nil || created {
			t.Errorf("create without: %v, %v", created, err)
		}
		reserve := func(sequencer string, c cluster.Reserving) (*cluster.Reservation, time.Time) {
			t.Helper()
			r, from, err := m.Reserve(t.Context(), sequencer, c)
			if err != nil {
				t.Fatal(err)
			}
			return r, from
		}
		owned := func(reserved ...int64) {
			t.Helper()
			owners, err := m.Owners(t.Context(), "orders")
			var have []int64
			for _, o := range owners {
				if o.Reserved {
					have = append(have, o.Node)
				}
			}
			if err != nil || !slices.Equal(have, reserved) {
				t.Errorf("fences of %v, %v; want %v", have, err, reserved)
			}
		}
		q, _ := m.Value().Sequencer("orders")
		kept := q.Reservation(cluster.Later).Nodes
		owned(kept...)
		time.Sleep(time.Hour)
		var begins time.Time
		for i, c := range []cluster.Reserving{{For: "x", Count: 1}, {For: "x", Count: 1}, {For: "y", Nodes: kept[:1]}} {
			r, from := reserve("orders", c)
			if want := kept[max(0, 2-2*(i/2))]; !slices.Equal(r.Nodes, []int64{want}) {
				t.Errorf("%+v got %v, want %d", c, r.Nodes, want)
			}
			if i > 0 && !from.Equal(begins) {
				t.Errorf("it begins at %v, and the other at %v", from, begins)
			}
			begins = from
		}
		if _, from := reserve("orders", cluster.Reserving{For: "z", Nodes: []int64{0}}); !from.Equal(begins) {
			t.Errorf("one that was never used begins at %v, and one for later at %v", from, begins)
		}
		fails(3, "1 of its node IDs")
		owned(append([]int64{0}, kept...)...)
		if err := m.Release(t.Context(), "orders", cluster.Later, time.Now()); err != nil {
			t.Fatal(err)
		}
		owned(0, kept[0], kept[2])
		fails(3, `0 of its node IDs are reserved for "later"`)
	})
}

// Another reservation may take node IDs before those for later have fences, and may be over by then.
func TestNodeIDsForLaterAreTakenMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		purposes []string
		released bool
	}{
		"one":             {purposes: []string{"x"}},
		"all":             {purposes: []string{"x", "y"}},
		"one, given back": {purposes: []string{"x"}, released: true},
		"all, given back": {purposes: []string{"x", "y"}, released: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.start("a"), w.start("b")
				a.ready(time.Second)
				b.ready(time.Second)
				m, other, d, taken := a.mem.Load(), b.mem.Load(), cluster.Define(layout), false
				a.client.Inject(func(c memstore.Call) memstore.Fault {
					if taken || !slices.ContainsFunc(c.Txn.Then, func(o store.Op) bool {
						return bytes.Contains(o.Value, []byte("reserved-"))
					}) {
						return memstore.Fault{}
					}
					taken = true
					for _, purpose := range test.purposes {
						_, _, err := other.Reserve(t.Context(), "orders", cluster.Reserving{For: purpose, Count: 1})
						if err == nil && test.released {
							err = other.Release(t.Context(), "orders", purpose, time.Now())
						}
						if err != nil {
							t.Error(err)
						}
					}
					return memstore.Fault{}
				})
				_, err := m.CreateReserving(t.Context(), "orders", d, 2)
				if all := len(test.purposes) == 2; (err != nil) != all || !taken {
					t.Errorf("created with %d taken: %v", len(test.purposes), err)
				}
				q, _ := m.Value().Sequencer("orders")
				owners, err := m.Owners(t.Context(), "orders")
				if err != nil || len(owners) != 2 {
					t.Fatalf("%+v, %v", owners, err)
				}
				for _, o := range owners {
					if r := q.ReservedFor(o.Node); o.Reserved != (r != nil) {
						t.Errorf("the fence is %+v, and the log has %+v", o, r)
					}
				}
				for r := range q.Reservations() {
					if err := m.Release(t.Context(), "orders", r.For, time.Now()); err != nil {
						t.Error(err)
					}
				}
				if err := m.Destroy(t.Context(), "orders"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A store that is set back to when all node IDs were still for later has forgotten which of them were taken, how far
// they were used, and perhaps the fences of the others. Members make up for that.
func TestNodeIDsForLaterOutliveALoss(t *testing.T) {
	for name, loss := range losses {
		for _, fenced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with fences: %v", name, fenced), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) { forgetsWhatIsForLater(t, w, loss, fenced) })
			})
		}
	}
}

func forgetsWhatIsForLater(t *testing.T, w *world, loss func(w *world) func(), fenced bool) {
	a := w.start("a")
	a.ready(time.Second)
	m, d := a.mem.Load(), cluster.Define(layout)
	d.Nodes = 8
	does := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	reserve := func(c cluster.Reserving) (int64, time.Time) {
		t.Helper()
		r, from, err := m.Reserve(t.Context(), "orders", c)
		does("reserve for "+c.For, err)
		return r.Nodes[0], from
	}
	create := func() {
		t.Helper()
		_, err := m.CreateReserving(t.Context(), "orders", d, 3)
		does("create", err)
	}
	if fenced {
		create()
	} else {
		_, _, err := m.create(t.Context(), "orders", d, true, 3)
		does("create half way", err)
	}
	lose := loss(w)
	create()
	_, err := m.EnsureSequencer(t.Context(), "orders", d) // it is created again
	does("attach", err)
	x, _ := reserve(cluster.Reserving{For: "x", Count: 1})
	reserve(cluster.Reserving{For: "y", Count: 1})
	w.takes(window, a)
	used := time.Now()
	does("release y", m.Release(t.Context(), "orders", "y", used))
	lose()
	w.takes(window/2, a) // it notices before others write
	if !a.noticed() {
		t.Fatal("the member has not noticed that the store has lost data")
	}
	for deadline := time.Now().Add(10 * window); ; w.takes(100*time.Millisecond, a) {
		if _, lost := m.unkept.Load("orders"); !lost {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the member does not get to reserve what was reserved")
		}
	}
	z, from := reserve(cluster.Reserving{For: "z", Count: 1})
	f, _, err := m.readFloor(t.Context())
	does("read the floor", err)
	if from.Before(f.From) || f.From.Before(used) {
		t.Errorf("what was for later begins at %v, and members at %v; it was used until %v", from, f.From, used)
	}
	q, _ := m.Value().Sequencer("orders")
	if r := q.ReservedFor(x); z == x || r == nil || r.For != "x" {
		t.Errorf("node ID %d is of %+v; it was for x", x, r)
	}
	owners, err := m.Owners(t.Context(), "orders")
	does("read the fences", err)
	for r := range q.Reservations() {
		for _, node := range r.Nodes {
			if !slices.ContainsFunc(owners, func(o Owner) bool { return o.Node == node && o.Reserved }) {
				t.Errorf("node ID %d for %s has no fence: %+v", node, r.For, owners)
			}
		}
	}
}

// Whatever two operators do about one purpose at once, no fence outlives its entry in the log: the name can be used on.
func TestReservationsThatOverlap(t *testing.T) {
	for name, overlap := range map[string]func(t *testing.T, w *world, m *Member, r *cluster.Reservation,
		first cluster.Release){
		"the entry of a release comes again after the next reservation": func(t *testing.T, w *world, _ *Member,
			_ *cluster.Reservation, first cluster.Release,
		) {
			w.append(first)
		},
		"the fences of the first reservation come after the next one": func(t *testing.T, _ *world, m *Member,
			r *cluster.Reservation, _ cluster.Release,
		) {
			q, _ := m.Value().Sequencer("orders")
			if _, err := m.fenceOff(t.Context(), "orders", q, r); !errors.Is(err, fence.ErrSuperseded) {
				t.Errorf("late fences: %v", err)
			}
			if err := m.free(t.Context(), "orders", r, time.Now()); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, _ := reserveBoth(t, w)
				m := a.mem.Load()
				q, _ := m.Value().Sequencer("orders")
				r, warehouse := q.Reservation("warehouse"), cluster.Reserving{For: "warehouse", Count: 2}
				first := cluster.Release{Sequencer: "orders", Created: q.Created(), For: "warehouse", Since: r.Since}
				used := time.Now().Add(time.Second)
				does := func(what string, err error) {
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
				}
				does("release", m.Release(t.Context(), "orders", "warehouse", used))
				_, from, err := m.Reserve(t.Context(), "orders", warehouse)
				does("reserve again", err)
				if from.Before(used) {
					t.Errorf("the next begins at %v; the first was used until %v", from, used)
				}
				overlap(t, w, m, r, first)
				now, err := m.latest(t.Context(), "orders")
				does("read", err)
				if still := now.Reservation("warehouse"); still == nil || still.Since == r.Since {
					t.Fatalf("reserved is %+v", still)
				}
				owners, err := m.Owners(t.Context(), "orders")
				does("read the fences", err)
				for _, o := range owners {
					if !o.Reserved {
						t.Errorf("%+v is not kept", o)
					}
				}
				does("release", m.Release(t.Context(), "orders", "warehouse", time.Now()))
				does("destroy", m.Destroy(t.Context(), "orders"))
				_, err = m.EnsureSequencer(t.Context(), "orders", q.Definition())
				does("create again", err)
			})
		})
	}
}

// If a release overtakes the fences of its reservation, Reserve refuses, and no fence stays.
func TestAReservationThatIsReleasedMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m, released := a.mem.Load(), false
		a.client.Inject(func(c memstore.Call) memstore.Fault {
			if len(c.Txn.Then) == 1 && bytes.Contains(c.Txn.Then[0].Value, []byte("reserved-")) && !released {
				released = true
				q, _ := m.Value().Sequencer(DefaultSequencer)
				w.append(cluster.Release{
					Sequencer: DefaultSequencer, For: "x", Since: q.Reservation("x").Since,
				})
			}
			return memstore.Fault{}
		})
		_, _, err := m.Reserve(t.Context(), DefaultSequencer, cluster.Reserving{For: "x", Count: 1})
		if !errors.As(err, new(*RefusedError)) || !released {
			t.Errorf("it was released: %v; %v", released, err)
		}
		owners, err := m.Owners(t.Context(), DefaultSequencer)
		if err != nil || slices.ContainsFunc(owners, func(o Owner) bool { return o.Reserved }) {
			t.Errorf("%+v, %v", owners, err)
		}
	})
}

// A fence that was written after its reservation was released, by a member that then ended, keeps nobody from using the
// node ID, or the name again once the sequencer is destroyed.
func TestAnAbandonedFenceIsEnded(t *testing.T) {
	for _, destroyed := range []bool{false, true} {
		inBubble(t, func(t *testing.T, w *world) {
			a, b := w.start("a"), w.start("b")
			a.ready(time.Second)
			b.ready(time.Second)
			d := cluster.Define(layout)
			d.Nodes = 1
			if _, err := a.mem.Load().Create(t.Context(), "orders", d); err != nil {
				t.Fatal(err)
			}
			ctx, ends := context.WithCancel(t.Context())
			defer ends()
			released := false
			b.client.Inject(func(c memstore.Call) memstore.Fault {
				switch {
				case c.Op == memstore.List && c.Key == fencePrefix("orders") && !released:
					released = true // before it looks at the fence
					if err := a.mem.Load().Release(t.Context(), "orders", "x", time.Time{}); err != nil {
						t.Error(err)
					}
				case len(c.Txn.Then) == 1 && bytes.Contains(c.Txn.Then[0].Value, []byte("reserved-")):
					ends() // it does not read the log again
					return memstore.Fault{Outcome: memstore.FailAfter}
				}
				return memstore.Fault{}
			})
			if _, _, err := b.mem.Load().Reserve(ctx, "orders", cluster.Reserving{For: "x", Count: 1}); err == nil {
				t.Fatal("reserved, though it was released")
			}
			m := a.mem.Load()
			owners, err := m.Owners(t.Context(), "orders")
			if err != nil || !slices.ContainsFunc(owners, func(o Owner) bool { return o.Reserved }) {
				t.Fatalf("no fence was abandoned: %+v, %v", owners, err)
			}
			if destroyed {
				if err := m.Destroy(t.Context(), "orders"); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := m.EnsureSequencer(ctx, "orders", d)
			if err == nil {
				_, err = s.Next(ctx)
			}
			if err != nil {
				t.Errorf("destroyed: %v; the node ID is not used again: %v", destroyed, err)
			}
		})
	}
}

// Of scattered IDs the greatest says nothing about when it was made.
func TestScatteredIDsAreReleasedByTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		d := cluster.Define(layout)
		d.Scattered = true
		_, err := m.Create(t.Context(), "keys", d)
		if err == nil {
			_, _, err = m.Reserve(t.Context(), "keys", cluster.Reserving{For: "x", Count: 1})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := m.ReleaseAfter(t.Context(), "keys", "x", 1); err == nil ||
			!strings.Contains(err.Error(), "scattered") {
			t.Errorf("released after a scattered ID: %v", err)
		}
		if err := m.Release(t.Context(), "keys", "x", time.Now()); err != nil {
			t.Error(err)
		}
	})
}
