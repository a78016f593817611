//go:build unix

package etcdstore

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/store"
)

// openServer is a client of a server of its own.
func openServer(t *testing.T) *Store {
	t.Helper()
	server := etcdtest.Start(t, etcdtest.Options{})
	s, err := Open(Config{Endpoints: []string{server.Endpoint()}})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Silence proves nothing: without a single hint a key that has disappeared is
// found out by reading now and then, also when it was put again meanwhile.
func TestGoneWithoutHints(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	s.recheck = 10 * time.Millisecond
	put := store.Txn{Then: []store.Op{store.Put("key", nil)}}
	remove := store.Txn{Then: []store.Op{store.Delete("key")}}
	for name, then := range map[string][]store.Txn{"deleted": {remove}, "put again": {remove, put}} {
		if _, err := s.Commit(t.Context(), put); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		was, err := s.created(t.Context(), "key")
		if err != nil || was == 0 {
			t.Fatalf("created = %d, %v", was, err)
		}
		gone := make(chan bool)
		go func() { gone <- s.waitGone(t.Context(), "key", was, nil) }()
		for _, txn := range append([]store.Txn{put}, then...) {
			if _, err := s.Commit(t.Context(), txn); err != nil && !errors.Is(err, store.ErrConflict) {
				t.Fatalf("Commit: %v", err)
			}
		}
		select {
		case <-gone:
		case <-time.After(30 * time.Second):
			t.Errorf("a key that was %s went unnoticed", name)
		}
	}
}
