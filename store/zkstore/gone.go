package zkstore

import (
	"context"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

const (
	// Events are hints: what is watched is also read this often.
	defaultRecheck = 10 * time.Second

	// How long to wait before another try.
	retryAfter = 200 * time.Millisecond
)

// Gone watches a key until it disappears, see store.Store.
//
// Only a read tells that the key has disappeared: it is absent, or has another birth. An event of the node's mark
// merely hints when to read: the mark is not touched when the key is written.
func (s *Store) Gone(ctx context.Context, key string) (<-chan struct{}, error) {
	call := "watch " + key
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	n, _, err := s.node(ctx, key)
	if err != nil {
		return nil, callError(call, err)
	}
	gone := make(chan struct{})
	if n.version == 0 {
		close(gone)
		return gone, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.running.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.life, cancel)()
		if s.waitGone(ctx, key, n) {
			close(gone)
		}
	})
	return gone, nil
}

// waitGone waits until the key has another birth than the node has; false when ctx ends before.
func (s *Store) waitGone(ctx context.Context, key string, n node) bool {
	for ctx.Err() == nil {
		hint, stop := s.hinted(s.markPath(n.mark))
		replies, err := s.peek(ctx, wire.Exists(s.markPath(n.mark), true))
		switch {
		case err != nil:
			_ = retry.Sleep(ctx, retryAfter)
		case replies[0].Err == wire.ErrNoNode:
			now, _, err := s.node(ctx, key)
			switch {
			case err != nil || now.mark == n.mark:
				_ = retry.Sleep(ctx, retryAfter)
			case now.birth != n.birth && ctx.Err() == nil:
				stop()
				return true
			default:
				n = now
			}
		default:
			wait(ctx, hint, s.recheck)
		}
		stop()
	}
	return false
}

// wait waits for a hint, but not longer than that.
func wait(ctx context.Context, hint <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-hint:
	case <-timer.C:
	case <-ctx.Done():
	}
}
