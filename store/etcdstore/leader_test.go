//go:build unix

package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// leader finds the leader of a cluster, whichever other servers are down.
func leader(t *testing.T, servers []*etcdtest.Server) *etcdtest.Server {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		for _, s := range servers {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			status, err := rawClient(t, s.Endpoint()).Status(ctx, s.Endpoint())
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				return s
			}
		}
	}
	t.Fatal("there is no leader")
	return nil
}

// Three servers, whose leader is killed, and another frozen and woken up again. Who follows misses nothing and sees
// nothing twice or out of order, and every entry is there once.
func TestTheLogAcrossLeaderChanges(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	servers := etcdtest.StartCluster(t, 3, etcdtest.Options{})
	var config etcdstore.Config
	for _, s := range servers {
		config.Endpoints = append(config.Endpoints, s.Endpoint())
	}
	writer, other := open(t, config), open(t, config)
	followers := []*followed{follow(t, writer, 0), follow(t, other, 0)}
	next := 0
	// appends goes on until so many entries are in the log for sure; those in doubt are repeated.
	appends := func(entries int) {
		t.Helper()
		for range entries {
			id := fmt.Sprint(next)
			for deadline := time.Now().Add(patience); ; {
				_, err := writer.Append(t.Context(), id, []byte("data of "+id))
				if err == nil {
					break
				}
				if passing := errors.Is(err, store.ErrAmbiguous) || errors.Is(err, store.ErrUnavailable); !passing ||
					time.Now().After(deadline) {
					t.Fatalf("Append(%s): %v", id, err)
				}
			}
			next++
		}
	}
	appends(20)

	killed := leader(t, servers)
	killed.Kill(t)
	appends(20)
	killed.Start(t)
	appends(5)

	frozen := leader(t, servers)
	frozen.Pause(t)
	appends(6) // some go to the frozen one, and wait
	frozen.Resume(t)
	appends(20)

	batch, err := other.Read(t.Context(), 0)
	if err != nil || len(batch.Entries) != next {
		t.Fatalf("the log has %d entries, want %d, %v", len(batch.Entries), next, err)
	}
	for _, f := range followers {
		got := f.until(t, fmt.Sprint(next-1))
		if len(got) != next {
			t.Errorf("Follow has yielded %d entries, want %d: %q", len(got), next, got)
		}
		for i, id := range got {
			if id != fmt.Sprint(i) {
				t.Fatalf("entry %d is %s: %q", i, id, got)
			}
		}
	}
}
