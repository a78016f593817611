package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/store"
)

// Get reads one key, see store.Store. The read is linearizable.
func (s *Store) Get(ctx context.Context, key string) (store.KV, error) {
	if err := store.ValidateKey(key); err != nil {
		return store.KV{}, err
	}
	found, err := s.read(ctx, key)
	if err != nil {
		return store.KV{}, callError("get "+key, err)
	}
	if len(found.Kvs) == 0 {
		return store.KV{Key: key}, nil
	}
	return s.kv(found.Kvs[0]), nil
}

// List reads every key with a prefix, see store.Store. It is one linearizable
// read, and so at one revision.
func (s *Store) List(ctx context.Context, prefix string) ([]store.KV, error) {
	if err := store.ValidatePrefix(prefix); err != nil {
		return nil, err
	}
	found, err := s.read(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, callError("list "+prefix, err)
	}
	kvs := make([]store.KV, 0, len(found.Kvs))
	for _, kv := range found.Kvs {
		kvs = append(kvs, s.kv(kv))
	}
	return kvs, nil
}

// read is a linearizable read with a deadline; its errors are etcd's.
func (s *Store) read(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel, conn, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return conn.Get(ctx, s.prefix+key, options...)
}

func (s *Store) kv(kv *mvccpb.KeyValue) store.KV {
	return store.KV{
		Key:     strings.TrimPrefix(string(kv.Key), s.prefix),
		Value:   kv.Value,
		Version: store.Version(kv.ModRevision),
	}
}

// Commit applies a transaction, see store.Store.
//
// The client sends it at most once. Its retry interceptor treats a Txn as not
// repeatable: it sends it again only when there was no connection to send it on, or
// when the server refused its auth token, which it checks before anything else. gRPC
// below it repeats only what the server has not seen. Everything else is an error, and
// an error is ambiguous unless it is known to be definite.
func (s *Store) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	const call = "commit"
	if err := txn.Validate(); err != nil {
		return 0, err
	}
	conditions, ops, err := s.translate(txn)
	if err != nil {
		return 0, err
	}
	over := isOver(txn)
	if over {
		ops = nil // all that is left to know is whether the conditions hold
	}
	ctx, cancel, conn, err := s.begin(ctx)
	if err != nil {
		return 0, writeError(call, err)
	}
	defer cancel()
	resp, err := conn.Txn(ctx).If(conditions...).Then(ops...).Commit()
	if err != nil {
		return 0, writeError(call, err)
	}
	switch {
	case !resp.Succeeded:
		return 0, fmt.Errorf("%s: %w", call, store.ErrConflict)
	case over:
		return 0, fmt.Errorf("%s: %w: its owner has closed it, or could not renew it", call, store.ErrSessionEnded)
	}
	// The revision of a transaction that wrote is the mod revision of all that it wrote.
	return store.Version(resp.Header.Revision), nil
}

// isOver reports whether a transaction puts keys under a session whose Done is closed. Its lease may live on.
func isOver(txn store.Txn) bool {
	return slices.ContainsFunc(txn.Then, func(op store.Op) bool {
		session, ok := op.Session.(*session)
		if !ok || op.Delete {
			return false
		}
		select {
		case <-session.done:
			return true
		default:
			return false
		}
	})
}

// translate makes an etcd transaction. A version is a mod revision, which is zero for an
// absent key in etcd, too.
func (s *Store) translate(txn store.Txn) ([]clientv3.Cmp, []clientv3.Op, error) {
	conditions := make([]clientv3.Cmp, 0, len(txn.If))
	for _, c := range txn.If {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(s.prefix+c.Key), "=", int64(c.Version)))
	}
	ops := make([]clientv3.Op, 0, len(txn.Then))
	for _, op := range txn.Then {
		switch {
		case op.Delete:
			ops = append(ops, clientv3.OpDelete(s.prefix+op.Key))
		case op.Session == nil:
			ops = append(ops, clientv3.OpPut(s.prefix+op.Key, string(op.Value)))
		default:
			session, ok := op.Session.(*session)
			if !ok {
				return nil, nil,
					fmt.Errorf("commit: %w: %s is put under a session of another store", store.ErrRefused, op.Key)
			}
			ops = append(ops, clientv3.OpPut(s.prefix+op.Key, string(op.Value), clientv3.WithLease(session.lease)))
		}
	}
	return conditions, ops, nil
}
