package quorum

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/storetest"
)

// one is a quorum of one, and a client of it.
type one struct {
	Store
	quorum *Quorum
}

// tryOne starts a quorum of one, and opens a client of it.
func tryOne(c Config) (*one, error) {
	q, err := One(c)
	if err == nil {
		err = q.Start()
	}
	if err != nil {
		return nil, err
	}
	s, err := q.Open(context.Background())
	if err != nil {
		q.Close()
		return nil, err
	}
	return &one{s, q}, nil
}

func openOne(t *testing.T, c Config) *one {
	t.Helper()
	o, err := tryOne(c)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// Close ends both.
func (o *one) Close() error {
	err := o.Store.Close()
	o.quorum.Close()
	return err
}

func (o *one) Endpoint() string { return o.quorum.server.Endpoint() }

func clientOf(t *testing.T, c etcdstore.Config) *etcdstore.Store {
	t.Helper()
	s, err := etcdstore.Open(c)
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
func TestContractOfOne(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Parallel()
		config := Config{Dir: filepath.Join(t.TempDir(), "data")}
		server := openOne(t, config)
		endpoint := server.Endpoint()
		return storetest.Harness{
			Open: func(t *testing.T) store.Store {
				return clientOf(t, etcdstore.Config{Endpoints: []string{endpoint}})
			},
			TTL:      time.Second,
			Patience: patience,
			Expire: func(t *testing.T, _ store.Session) { // the only one
				if err := endLeases(t.Context(), server.quorum.server.Server); err != nil {
					t.Fatalf("ending the session: %v", err)
				}
			},
			Stop:  func(*testing.T) { _ = server.Close() },
			Start: func(t *testing.T) { server = openOne(t, config) },
		}
	})
}
