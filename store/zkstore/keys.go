package zkstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/answers"
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

// List reads every key with a prefix, see store.Store. It reads the names, and then the nodes. What it found was so at
// the moment at which it read the names, if no node was written after that; else it reads again, and asks for the nodes
// that it knows of together with the names, so that little is written meanwhile.
func (s *Store) List(ctx context.Context, prefix string) ([]store.KV, error) {
	call := "list " + prefix
	if err := store.ValidatePrefix(prefix); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	var likely []string
	for {
		kvs, keys, err := s.list(ctx, prefix, likely)
		if err != nil {
			return nil, callError(call, err)
		}
		if kvs != nil {
			return kvs, nil
		}
		likely = keys[:min(len(keys), maxNodes)]
	}
}

// list is one try of List: without the first result, a node was written meanwhile. It returns the keys, too.
func (s *Store) list(ctx context.Context, prefix string, likely []string) ([]store.KV, []string, error) {
	replies, err := s.read(ctx, append([]wire.Request{wire.Children(s.root+keys, false)}, s.gets(likely)...)...)
	if err != nil {
		return nil, nil, err
	}
	moment := replies[0].Zxid
	found := keysOf(replies[0].Children, prefix)
	nodes := make(map[string]wire.Reply, len(found))
	for i, key := range likely {
		nodes[key] = replies[1+i]
	}
	rest := slices.DeleteFunc(slices.Clone(found), func(key string) bool { _, have := nodes[key]; return have })
	size := 0
	for some := range slices.Chunk(rest, readsAtOnce) {
		if replies, err = s.peek(ctx, s.gets(some)...); err != nil {
			return nil, nil, err
		}
		for i, key := range some {
			nodes[key] = replies[i]
			size += len(replies[i].Data)
		}
		if size > answers.Max {
			return nil, nil, fmt.Errorf("the keys have more than %d bytes", answers.Max)
		}
	}
	kvs := make([]store.KV, 0, len(found))
	for _, key := range found {
		n, value, err := parse(nodes[key])
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", key, err)
		}
		if n.version == 0 || int64(n.version) > moment {
			return nil, found, nil
		}
		s.remember(key, n)
		kvs = append(kvs, store.KV{Key: key, Value: value, Version: n.version})
	}
	return kvs, found, answers.Keys(prefix, kvs)
}

// keysOf are the keys of these nodes that have a prefix, in order.
func keysOf(names []string, prefix string) []string {
	found := make([]string, 0, len(names))
	for _, name := range names {
		if key, ok := keyOf(name); ok && strings.HasPrefix(key, prefix) {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	return found
}

func (s *Store) gets(keys []string) []wire.Request {
	gets := make([]wire.Request, len(keys))
	for i, key := range keys {
		gets[i] = wire.Get(s.path(key))
	}
	return gets
}

// readsAtOnce is how many nodes are asked for before the first answer is waited for.
const readsAtOnce = 256
