package peer

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// named returns the cluster ID of these nodes, which are members, and of their store. They have the same.
func (w *world) named(nodes ...*node) string {
	w.t.Helper()
	client := w.service.Client("test")
	defer client.Close()
	kv, err := client.Get(w.t.Context(), clusterid.Key)
	if err != nil || clusterid.Validate(string(kv.Value)) != nil {
		w.t.Fatalf("the store has the cluster ID %q, %v", kv.Value, err)
	}
	for _, n := range nodes {
		if id := n.mem.Load().Cluster(); id != string(kv.Value) {
			w.t.Errorf("%s is of cluster %q; want %q, as in the store", n.name, id, kv.Value)
		}
	}
	return string(kv.Value)
}

// All members have one cluster ID, also those that begin at the same instant, and those that come when the first ones
// have left. Another store has another.
func TestMembersAgreeOnTheClusterID(t *testing.T) {
	ids := map[string]bool{}
	for range 2 {
		inBubble(t, func(t *testing.T, w *world) {
			w.service.Inject(func(c memstore.Call) memstore.Fault { // each finds no ID
				if c.Op == memstore.Get && c.Key == clusterid.Key {
					return memstore.Fault{Delay: 10 * time.Millisecond}
				}
				return memstore.Fault{}
			})
			a, b := w.two()
			id := w.named(a, b)
			a.leave()
			b.leave()
			c := w.start("c")
			c.ready(window)
			if w.named(c) != id {
				t.Errorf("the cluster was %s, and is %s", id, w.named(c))
			}
			ids[id] = true
		})
	}
	if len(ids) != 2 {
		t.Errorf("two stores have the cluster IDs %v; want two", ids)
	}
}

// No member gives an ID before it knows its cluster, whatever becomes of the write of the cluster ID.
func TestClusterIDInDoubt(t *testing.T) {
	faults := map[string]memstore.Fault{
		"not applied":  {Outcome: memstore.FailBefore},
		"applied":      {Outcome: memstore.FailAfter},
		"applied late": {Outcome: memstore.ApplyLate, Delay: time.Second},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				written := make(chan struct{}, 1)
				w.service.Inject(func(c memstore.Call) memstore.Fault {
					if c.Op == memstore.Commit && len(c.Txn.Then) == 1 && c.Txn.Then[0].Key == clusterid.Key {
						select {
						case written <- struct{}{}: // the first one
							return fault
						default:
						}
					}
					return memstore.Fault{}
				})
				a := w.start("a")
				b := w.start("b")
				for _, n := range []*node{a, b} {
					for deadline := time.Now().Add(window); n.take() != nil; time.Sleep(time.Millisecond) {
						if time.Now().After(deadline) {
							t.Fatalf("%s is not ready: %v", n.name, n.Ready())
						}
					}
				}
				w.named(a, b)
				time.Sleep(2 * time.Second)
				w.named(a, b)
			})
		})
	}
}

// A cluster keeps its ID when its store loses data, as long as one member lives.
func TestClusterIDAfterALoss(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.two()
				id := w.named(a, b)
				lose := loss(w)
				b.leave()
				lose()
				a.startsOver()
				c := w.start("c")
				for _, n := range []*node{a, c} {
					n.ready(3 * window)
				}
				if got := w.named(a, c); got != id {
					t.Errorf("the cluster has the ID %s after the loss; want %s, as before", got, id)
				}
			})
		})
	}
}

// Somebody else gives the empty store an ID before a member does that knew it: the member takes that.
func TestAnotherIsFirstAfterALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		w.named(a, b)
		other := memstore.NewService()
		client := other.Client("another")
		defer client.Close()
		if _, err := client.Commit(t.Context(),
			store.Txn{Then: []store.Op{store.Put(clusterid.Key, []byte("another"))}}); err != nil {
			t.Fatal(err)
		}
		w.service.RollBack(other.Backup(), 0)
		for deadline := time.Now().Add(window); a.mem.Load().Cluster() != "another" ||
			b.mem.Load().Cluster() != "another"; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				break // named tells
			}
		}
		if got := w.named(a, b); got != "another" {
			t.Errorf("the cluster has the ID %s; want that of whoever put it first", got)
		}
	})
}

// A cluster ID that nobody wrote is an error, which Ready tells, and no header gets it.
func TestClusterIDThatCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		client := w.service.Client("test")
		defer client.Close()
		if _, err := client.Commit(t.Context(),
			store.Txn{Then: []store.Op{store.Put(clusterid.Key, []byte("a\r\nb"))}}); err != nil {
			t.Fatal(err)
		}
		m, err := Start(func(context.Context) (store.Store, error) {
			return w.service.Client("a"), nil
		}, Options{TTL: ttl, Window: window})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
		ctx, cancel := context.WithTimeout(t.Context(), window)
		defer cancel()
		if err := m.Wait(ctx); err == nil || !strings.Contains(err.Error(), `the cluster ID is "a\r\nb"; want`) {
			t.Errorf("Wait: %v", err)
		}
		if id := m.Cluster(); id != "" {
			t.Errorf("it is of cluster %q", id)
		}
	})
}
