package zkstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

// Get reads one key, see store.Store.
func (s *Store) Get(ctx context.Context, key string) (store.KV, error) {
	call := "get " + key
	if err := store.ValidateKey(key); err != nil {
		return store.KV{}, err
	}
	n, value, err := s.node(ctx, key)
	if err != nil {
		return store.KV{}, callError(call, err)
	}
	return store.KV{Key: key, Value: value, Version: n.version}, nil
}

// node reads the node of a key.
func (s *Store) node(ctx context.Context, key string) (node, []byte, error) {
	replies, err := s.read(ctx, wire.Get(s.path(key)))
	if err != nil {
		return node{}, nil, err
	}
	n, value, err := parse(replies[0])
	if err == nil {
		s.remember(key, n)
	}
	return n, value, err
}

// List reads every key with a prefix, see store.Store. It reads the names, and then the nodes one after another. What
// it found was so at the moment at which it read the names, if no node was written after that; else it reads again.
func (s *Store) List(ctx context.Context, prefix string) ([]store.KV, error) {
	call := "list " + prefix
	if err := store.ValidatePrefix(prefix); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	for {
		kvs, err := s.list(ctx, prefix)
		if err != nil {
			return nil, callError(call, err)
		}
		if kvs != nil {
			return kvs, nil
		}
	}
}

// list is one try of List; nil: a node was written meanwhile.
func (s *Store) list(ctx context.Context, prefix string) ([]store.KV, error) {
	replies, err := s.read(ctx, wire.Children(s.root+keys, false))
	if err != nil {
		return nil, err
	}
	moment := replies[0].Zxid
	found := make([]string, 0, len(replies[0].Children))
	for _, name := range replies[0].Children {
		if key, ok := keyOf(name); ok && strings.HasPrefix(key, prefix) {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	kvs := make([]store.KV, 0, len(found))
	for some := range slices.Chunk(found, readsAtOnce) {
		gets := make([]wire.Request, len(some))
		for i, key := range some {
			gets[i] = wire.Get(s.path(key))
		}
		if replies, err = s.peek(ctx, gets...); err != nil {
			return nil, err
		}
		for i, reply := range replies {
			n, value, err := parse(reply)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", some[i], err)
			}
			if n.version == 0 || int64(n.version) > moment {
				return nil, nil
			}
			s.remember(some[i], n)
			kvs = append(kvs, store.KV{Key: some[i], Value: value, Version: n.version})
		}
	}
	return kvs, nil
}

// readsAtOnce is how many nodes are asked for before the first answer is waited for.
const readsAtOnce = 256
