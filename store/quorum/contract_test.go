package quorum

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
)

// withoutRecord is a store as the contract wants it: empty at first.
type withoutRecord struct{ store.Store }

func (s withoutRecord) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := s.Store.List(ctx, prefix)
	return slices.DeleteFunc(kvs, func(kv store.KV) bool { return kv.Key == recordKey }), err
}

// A quorum is a store like any other. It is stopped by stopping two of its three machines.
func TestContract(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Parallel()
		w := newWorld(t, 3)
		w.startAll()
		first := w.running[w.machines[0]]
		first.callDeadline = patience // a busy machine may take seconds for the largest transaction
		return storetest.Harness{
			Open:     func(*testing.T) store.Store { return withoutRecord{w.open(first)} },
			TTL:      2 * time.Second, // the shortest at etcd's ticks for several servers
			Patience: patience,
			Expire: func(t *testing.T, _ store.Session) { // the only one
				lease := first.onlyLease(t)
				if _, err := first.server.LeaseRevoke(t.Context(),
					&etcdserverpb.LeaseRevokeRequest{ID: lease}); err != nil {
					t.Fatal(err)
				}
			},
			Stop: func(*testing.T) {
				w.stop(w.machines[1])
				w.stop(w.machines[2])
			},
			Start: func(*testing.T) {
				w.start(w.machines[1])
				w.start(w.machines[2])
			},
		}
	})
}

// onlyLease waits for the one lease that there is: a server lists those that it has applied, and another may have
// granted it.
func (q *Quorum) onlyLease(t *testing.T) int64 {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		answer, err := q.server.LeaseLeases(t.Context(), &etcdserverpb.LeaseLeasesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Leases) == 1 {
			return answer.Leases[0].ID
		}
	}
	t.Fatalf("this machine has not applied the grant of a lease within %v", patience)
	return 0
}
