package node

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdembed"
	"github.com/firn-id/firn/store/quorum"
)

// embed starts the embedded etcd. It blocks while etcd replays its log.
func (n *Node) embed(context.Context) (Store, error) {
	if err := quorum.CheckAlone(n.config.DataDir); err != nil { // it says what to do
		return nil, err
	}
	n.log.Info("starting the embedded etcd", "data_dir", n.config.DataDir)
	e, err := etcdembed.Open(etcdembed.Config{
		Dir: n.config.DataDir, Moved: n.config.Moved, Logger: n.log, DialOptions: n.traces.asked(),
		Fatal: func(err *etcdembed.DataError) {
			n.config.Fatal(err)
		},
	})
	_, damaged := errors.AsType[*etcdembed.DataError](err)
	if _, copied := errors.AsType[*etcdembed.PlaceError](err); damaged || copied { // it says what to do
		return nil, err
	}
	if err != nil {
		return nil, &SettingError{"data-dir", err}
	}
	return e, nil
}

// openStore opens the store for the member, once Run has begun. If ctx ends meanwhile, it closes a store that
// opens too late, unless that takes longer than ShutdownTimeout. The embedded etcd survives the end of its
// process at any moment.
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
				// now that no other process uses the data directory, and before the node is ready
				n.forget = n.keepSecret()
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
