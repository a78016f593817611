package etcdstore

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

const (
	// A silent watch proves nothing, so the key is also read this often.
	defaultRecheck = 10 * time.Second

	// How long to wait before another try.
	retryAfter = 300 * time.Millisecond
)

// Gone watches a key until it disappears, see store.Store.
//
// Only a linearizable read tells that the key has disappeared: the key is absent, or
// its create revision has changed, so that it was deleted and put again. An etcd watch
// merely hints when to read, also when it begins. So nothing is lost when it breaks or
// its revision is compacted.
func (s *Store) Gone(ctx context.Context, key string) (<-chan struct{}, error) {
	const call = "watch "
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	was, err := s.created(ctx, key)
	if err != nil {
		return nil, callError(call+key, err)
	}
	gone := make(chan struct{})
	if was == 0 {
		close(gone)
		return gone, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.running.Go(func() { s.watch(ctx, key, was, gone) })
	return gone, nil
}

// created reads the key's create revision; zero when it is absent.
func (s *Store) created(ctx context.Context, key string) (int64, error) {
	found, err := s.read(ctx, key, clientv3.WithKeysOnly())
	if err != nil || len(found.Kvs) == 0 {
		return 0, err
	}
	return found.Kvs[0].CreateRevision, nil
}

// watch closes gone when the key is no longer the one created then.
func (s *Store) watch(ctx context.Context, key string, was int64, gone chan<- struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(s.life, cancel)()
	hints := make(chan struct{}, 1)
	var hinting sync.WaitGroup
	hinting.Go(func() { s.hint(ctx, key, hints) })
	if s.waitGone(ctx, key, was, hints) {
		close(gone)
	}
	cancel()
	hinting.Wait()
}

// waitGone reads the key at every hint, and every recheck without one, until it is no
// longer the one created then; false when ctx ends before.
func (s *Store) waitGone(ctx context.Context, key string, was int64, hints <-chan struct{}) bool {
	again := time.NewTimer(s.recheck)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-hints:
		case <-again.C:
		}
		now, err := s.created(ctx, key)
		switch {
		case err != nil:
			again.Reset(retryAfter)
		case ctx.Err() != nil:
			return false
		case now != was:
			return true
		default:
			again.Reset(s.recheck)
		}
	}
}

// hint fills hints whenever the key may have disappeared: as a watch begins,
// delivers or breaks.
func (s *Store) hint(ctx context.Context, key string, hints chan<- struct{}) {
	conn := s.conn.Load() // a key was read over it
	for ctx.Err() == nil {
		// Without a leader the watch ends, instead of going silent.
		watch, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		for range conn.Watch(watch, s.prefix+key, clientv3.WithFilterPut(), clientv3.WithCreatedNotify()) {
			select {
			case hints <- struct{}{}:
			default:
			}
		}
		cancel()
		_ = retry.Sleep(ctx, retryAfter)
	}
}
