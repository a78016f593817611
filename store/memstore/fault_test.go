package memstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// put is a transaction that creates key.
func put(key string) store.Txn {
	return store.Txn{If: []store.Condition{{Key: key}}, Then: []store.Op{store.Put(key, []byte("1"))}}
}

// only injects a fault into commits.
func only(fault memstore.Fault) memstore.Hook {
	return func(call memstore.Call) memstore.Fault {
		if call.Op == memstore.Commit {
			return fault
		}
		return memstore.Fault{}
	}
}

func exists(t *testing.T, s store.Store, key string) bool {
	t.Helper()
	kv, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return kv.Version != 0
}

func TestFaultsOfACommit(t *testing.T) {
	const delay = time.Minute // far beyond the deadline of a call
	tests := []struct {
		name          string
		fault         memstore.Fault
		took          time.Duration
		want          error
		applied, then bool // when Commit returns; and an hour later
	}{
		{"none", memstore.Fault{}, 0, nil, true, true},
		{"slow", memstore.Fault{Delay: time.Second}, time.Second, nil, true, true},
		{
			"slower than the caller waits",
			memstore.Fault{Delay: delay},
			5 * time.Second,
			store.ErrAmbiguous, false, true,
		},
		{"fails before", memstore.Fault{Outcome: memstore.FailBefore}, 0, store.ErrAmbiguous, false, false},
		{"fails after", memstore.Fault{Outcome: memstore.FailAfter}, 0, store.ErrAmbiguous, true, true},
		{"applies late", memstore.Fault{Outcome: memstore.ApplyLate, Delay: delay}, 0, store.ErrAmbiguous, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memstore.NewService().Client("c")
				c.Inject(only(tt.fault))
				start := time.Now()
				if _, err := c.Commit(t.Context(), put("key")); !errors.Is(err, tt.want) {
					t.Errorf("Commit = %v, want %v", err, tt.want)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("Commit took %v, want %v", took, tt.took)
				}
				if got := exists(t, c, "key"); got != tt.applied {
					t.Errorf("applied when Commit returns: %v, want %v", got, tt.applied)
				}
				time.Sleep(time.Hour)
				if got := exists(t, c, "key"); got != tt.then {
					t.Errorf("applied in the end: %v, want %v", got, tt.then)
				}
			})
		})
	}
}

// The conditions of a late transaction are looked at when it applies: the next
// one under the same condition wins, and the late one then does nothing.
func TestLateCommitMeetsItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memstore.NewService().Client("c")
		c.Inject(only(memstore.Fault{Outcome: memstore.ApplyLate, Delay: time.Second}))
		if _, err := c.Commit(t.Context(), put("key")); !errors.Is(err, store.ErrAmbiguous) {
			t.Fatalf("Commit = %v, want ErrAmbiguous", err)
		}
		c.Inject(nil)
		version, err := c.Commit(t.Context(), put("key"))
		if err != nil {
			t.Fatalf("Commit: %v", err)
		}
		time.Sleep(time.Minute)
		if kv, _ := c.Get(t.Context(), "key"); kv.Version != version {
			t.Errorf("the key is at version %d, want %d", kv.Version, version)
		}
	})
}

// A commit made in a partition never arrives; one that was under way as the
// partition began is lost too.
func TestPartitionLosesCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memstore.NewService().Client("c")
		c.Inject(only(memstore.Fault{Outcome: memstore.ApplyLate, Delay: time.Second}))
		_, _ = c.Commit(t.Context(), put("under way"))
		c.Inject(nil)
		c.CutOff(true)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.Commit(ctx, put("cut off")); !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("Commit = %v, want ErrAmbiguous", err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("Commit ended after %v, and its context after 2s", took)
		}
		c.CutOff(false)
		if exists(t, c, "under way") || exists(t, c, "cut off") {
			t.Error("a commit got through the partition")
		}
	})
}

// The service's hook sees every call that no client's own hook does, renewals included.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := memstore.NewService()
		a, b := svc.Client("a"), svc.Client("b")
		defer a.Close()
		seen := make(map[string]int)
		svc.Inject(func(call memstore.Call) memstore.Fault {
			seen[call.Client+" "+string(call.Op)+" "+call.Key]++
			return memstore.Fault{}
		})
		b.Inject(only(memstore.Fault{}))
		if _, err := a.OpenSession(t.Context(), 6*time.Second); err != nil {
			t.Fatalf("OpenSession: %v", err)
		}
		time.Sleep(time.Minute + time.Millisecond)
		synctest.Wait()
		exists(t, a, "key")
		exists(t, b, "key")
		if seen["a get key"] != 1 || seen["b get key"] != 0 || seen["a renew session "] != 60 {
			t.Errorf("the hook saw %v", seen)
		}
	})
}

// A session that was expired behind its client's back: gone at once at the
// service, and learned of as late as was asked for.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := memstore.NewService()
		c := svc.Client("c")
		defer c.Close()
		session, err := c.OpenSession(t.Context(), time.Minute)
		if err != nil {
			t.Fatalf("OpenSession: %v", err)
		}
		under := store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, session)}}
		if _, err := c.Commit(t.Context(), under); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		gone, err := c.Gone(t.Context(), "key")
		if err != nil {
			t.Fatalf("Gone: %v", err)
		}
		c.Lag(7 * time.Second)
		svc.Expire(session)
		start := time.Now()
		if exists(t, c, "key") {
			t.Error("the key is still there")
		}
		if _, err := c.Commit(t.Context(), under); !errors.Is(err, store.ErrSessionEnded) {
			t.Errorf("Commit = %v, want ErrSessionEnded", err)
		}
		<-gone
		<-session.Done()
		if late := time.Since(start); late != 7*time.Second {
			t.Errorf("the client learned of it after %v, want 7s", late)
		}
	})
}

// A client that is closed in a partition is a client that crashed: its session
// expires a TTL after the last renewal that arrived.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := memstore.NewService()
		other, c := svc.Client("other"), svc.Client("c")
		session, err := c.OpenSession(t.Context(), time.Minute)
		if err != nil {
			t.Fatalf("OpenSession: %v", err)
		}
		if _, err := c.Commit(t.Context(),
			store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, session)}}); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		gone, err := other.Gone(t.Context(), "key")
		if err != nil {
			t.Fatalf("Gone: %v", err)
		}
		time.Sleep(10*time.Minute + time.Second) // it was renewed a second ago
		c.CutOff(true)
		if err := c.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		start := time.Now()
		<-gone
		if took := time.Since(start); took != 59*time.Second {
			t.Errorf("the key outlived its client by %v, want the TTL since its last renewal", took)
		}
	})
}

// A session whose opening was not answered is nobody's: it expires by itself.
func TestOrphanedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memstore.NewService().Client("c")
		defer c.Close()
		for _, fault := range []memstore.Fault{
			{Outcome: memstore.FailAfter}, {Outcome: memstore.ApplyLate, Delay: time.Second}, {Delay: time.Hour},
		} {
			c.Inject(func(memstore.Call) memstore.Fault { return fault })
			if _, err := c.OpenSession(t.Context(), time.Second); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("OpenSession = %v, want ErrUnavailable", err)
			}
		}
		time.Sleep(2 * time.Hour)
	})
}
