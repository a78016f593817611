package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdembed"
)

// closingStore is a store of which this process is the owner.
type closingStore interface {
	store.Store
	Close() error
}

// embed starts the etcd inside. It blocks while that replays its log.
func (n *node) embed() (closingStore, error) {
	n.log.Info("starting the etcd inside", "data_dir", n.dataDir)
	e, err := etcdembed.Open(etcdembed.Config{
		Dir: n.dataDir, Logger: n.log, DialOptions: n.traces.asked(),
		Fatal: func(err *etcdembed.DataError) {
			report(n.stderr, "firn:", err)
			os.Exit(statusFailure)
		},
	})
	if _, ok := errors.AsType[*etcdembed.DataError](err); ok { // it says what to do
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w; --data-dir names the directory, --etcd an etcd cluster elsewhere", err)
	}
	return e, nil
}

// openStore opens the store. When ctx ends meanwhile there is none, and no error: a store that is opened too late is
// closed again, unless that takes longer than requests may take to finish. The etcd inside survives
// its process's end at any moment.
func (n *node) openStore(ctx context.Context) (closingStore, error) {
	type result struct {
		store closingStore
		err   error
	}
	done := make(chan result, 1)
	go func() {
		s, err := n.open()
		done <- result{s, err}
	}()
	select {
	case r := <-done:
		return r.store, r.err
	case <-ctx.Done():
	}
	n.log.Info("stopping before the store was open", "why", context.Cause(ctx))
	select {
	case r := <-done:
		if r.err == nil {
			n.closeStore(r.store)
		}
		return nil, r.err
	case <-time.After(n.shutdownWithin):
		return nil, nil
	}
}

func (n *node) closeStore(s closingStore) {
	if err := s.Close(); err != nil {
		n.log.Warn("closing the store", "err", err)
	}
	n.log.Info("stopped")
}
