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
	found, err := s.read(ctx, "watch "+key, maybe("SELECT created FROM keys WHERE key = "+bytesOf(key), "i"))
	if err != nil {
		return nil, err
	}
	w := &watch{key: key, gone: make(chan struct{})}
	if len(found[1]) == 0 {
		close(w.gone)
		return w.gone, nil
	}
	w.created = found[1].int(0, 0)
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

// lookAtWatches closes the channels of keys that are not the ones that were there. found are keys with the revisions
// that made them. Watches that began later than that was asked are left alone.
func (s *Store) lookAtWatches(watches []*watch, found rows) {
	created := make(map[string]int64, len(found))
	for i := range found {
		created[string(found.bytes(i, 0))] = found.int(i, 1)
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
