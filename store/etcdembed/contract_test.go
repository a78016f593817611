package etcdembed

import (
	"flag"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/storetest"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) {
	// These tests wait more than they compute: let more of them wait at once.
	flag.Parse()
	if runtime.GOMAXPROCS(0) < 4 {
		_ = flag.Set("test.parallel", "4")
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, config Config) *Store {
	t.Helper()
	s, err := Open(config)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func client(t *testing.T, config etcdstore.Config) *etcdstore.Store {
	t.Helper()
	s, err := etcdstore.Open(config)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func putting(key string, op ...store.Op) store.Txn {
	return store.Txn{Then: append(op, store.Put(key, []byte("1")))}
}

// works opens a session, writes under it and reads.
func works(t *testing.T, s store.Store) {
	t.Helper()
	session, err := s.OpenSession(t.Context(), 30*time.Second)
	if err != nil {
		t.Fatalf("OpenSession: %v", err)
	}
	if _, err := s.Commit(t.Context(), putting("key", store.PutEphemeral("mine", nil, session))); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	if kvs, err := s.List(t.Context(), ""); err != nil || len(kvs) != 2 {
		t.Fatalf("List = %v, %v; want two keys", kvs, err)
	}
	if err := session.Close(t.Context()); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// A server that is stopped is closed here, and killed in TestKilled.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Parallel()
		config := Config{Dir: filepath.Join(t.TempDir(), "data")}
		server := open(t, config)
		return storetest.Harness{
			Open: func(t *testing.T) store.Store {
				return client(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
			},
			TTL:      time.Second,
			Patience: patience,
			Expire: func(t *testing.T, _ store.Session) { // the only one
				if err := server.endSessions(t.Context()); err != nil {
					t.Fatalf("ending the session: %v", err)
				}
			},
			Stop:  func(*testing.T) { _ = server.Close() },
			Start: func(t *testing.T) { server = open(t, config) },
		}
	})
}
