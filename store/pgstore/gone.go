package pgstore

import (
	"context"

	"github.com/firn-id/firn/store"
)

// watch is a key that somebody watches.
type watch struct {
	key     string
	created int64 // the revision of the write that made the key
	gone    chan struct{}
	forget  func() bool // ends the waiting for the end of its context
}

// Gone watches a key until it disappears, see store.Store. Each poll looks whether the key is still the one that was
// there as the watch began, so nothing is lost when a notification is.
func (s *Store) Gone(ctx context.Context, key string) (<-chan struct{}, error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	var found *watchRow
	if _, err := s.read(ctx, "watch "+key, func(m *message) {
		maybe(m, &found, "SELECT key, created FROM keys WHERE key = @key", args{"key": binary(key)})
	}); err != nil {
		return nil, err
	}
	w := &watch{key: key, gone: make(chan struct{})}
	if found == nil {
		close(w.gone)
		return w.gone, nil
	}
	w.created = found.Created
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.watches[w] = true
	w.forget = context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, w)
	})
	return w.gone, nil
}

type watchRow struct {
	Key     []byte
	Created int64
}

// lookAtWatches closes the channels of keys that are not the ones that were there. found are keys with the revisions
// that made them. Watches that began later than that was asked are left alone.
func (s *Store) lookAtWatches(watches []*watch, found []watchRow) {
	created := make(map[string]int64, len(found))
	for _, row := range found {
		created[string(row.Key)] = row.Created
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range watches {
		if s.watches[w] && created[w.key] != w.created && !s.closed {
			w.forget()
			delete(s.watches, w)
			close(w.gone)
		}
	}
}
