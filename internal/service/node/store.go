package node

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/store"
)

// openStore opens the store for the member, once Run has begun. If ctx ends meanwhile, it closes a store that
// opens too late, unless that takes longer than ShutdownTimeout.
func (n *Node) openStore(ctx context.Context) (store.Store, error) {
	select {
	case <-n.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type result struct {
		store Store
		err   error
	}
	done := make(chan result, 1)
	go func() {
		s, err := n.open(ctx)
		done <- result{s, err}
	}()
	select {
	case r := <-done:
		if r.err == nil {
			n.store = r.store
			if n.quorum == nil {
				n.forget = n.keepSecret() // before the node is ready
			}
			close(n.opened)
		}
		return r.store, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		n.store = r.store
		return nil, errors.Join(ctx.Err(), r.err)
	case <-time.After(n.config.ShutdownTimeout):
		return nil, ctx.Err()
	}
}

// storeOrNil returns the store, and nil until it is open.
func (n *Node) storeOrNil() store.Store {
	select {
	case <-n.opened:
		return n.store
	default:
		return nil
	}
}

// closeStore closes the store, if it was opened, and the quorum. Call it once the member has ended.
func (n *Node) closeStore() {
	if n.store != nil {
		if err := n.store.Close(); err != nil {
			n.log.Warn("can't close the store", "err", err)
		}
	}
	if n.quorum != nil {
		n.quorum.Close()
	}
	if n.store != nil || n.quorum != nil {
		n.log.Info("stopped")
	}
}
