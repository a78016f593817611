package node

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/store/etcdembed"
)

// embed starts the etcd inside. It blocks while that replays its log.
func (n *Node) embed() (Store, error) {
	n.log.Info("starting the etcd inside", "data_dir", n.config.DataDir)
	e, err := etcdembed.Open(etcdembed.Config{
		Dir: n.config.DataDir, Logger: n.log, DialOptions: n.traces.asked(),
		Fatal: func(err *etcdembed.DataError) {
			n.config.Fatal(err)
		},
	})
	if _, ok := errors.AsType[*etcdembed.DataError](err); ok { // it says what to do
		return nil, err
	}
	if err != nil {
		return nil, &SettingError{"data-dir", err}
	}
	return e, nil
}

// openStore opens the store. When ctx ends meanwhile there is none, and no error: a store that is opened too late is
// closed again, unless that takes longer than requests may take to finish. The etcd inside survives
// its process's end at any moment.
func (n *Node) openStore(ctx context.Context) (Store, error) {
	type result struct {
		store Store
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
	case <-time.After(n.config.ShutdownTimeout):
		return nil, nil
	}
}

func (n *Node) closeStore(s Store) {
	if err := s.Close(); err != nil {
		n.log.Warn("closing the store", "err", err)
	}
	n.log.Info("stopped")
}
