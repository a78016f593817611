package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdembed"
	"github.com/firn-id/firn/store/etcdstore"
)

// startEtcd starts an etcd in this process, with its data in a directory that end removes.
func startEtcd() (etcd *etcdembed.Store, end func(), err error) {
	dir, err := os.MkdirTemp("", "firn-bench-")
	if err != nil {
		return nil, nil, err
	}
	etcd, err = etcdembed.Open(etcdembed.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return etcd, func() {
		_ = etcd.Close() // what was measured is known by then
		_ = os.RemoveAll(dir)
	}, nil
}

// commitCounter is a store that counts the transactions that pass through it.
type commitCounter struct {
	store.Store

	mu      sync.Mutex // guards what follows
	commits []commit
}

type commit struct {
	at    time.Time
	bytes int // of keys and values, those of the conditions included
}

// Commit counts the transaction and passes it on.
func (c *commitCounter) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	sent := commit{at: time.Now()}
	for _, condition := range txn.If {
		sent.bytes += len(etcdstore.DefaultPrefix) + 1 + len(condition.Key)
	}
	for _, op := range txn.Then {
		sent.bytes += len(etcdstore.DefaultPrefix) + 1 + len(op.Key) + len(op.Value)
	}
	c.mu.Lock()
	c.commits = append(c.commits, sent)
	c.mu.Unlock()
	return c.Store.Commit(ctx, txn)
}

// all returns what was counted.
func (c *commitCounter) all() []commit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.commits)
}
