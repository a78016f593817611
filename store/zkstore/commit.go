package zkstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

// Commit applies a transaction, see store.Store.
//
// The client sends it again only after a server said that it had no effect: when an operation without a condition
// found its key otherwise than the client knew it, as a put of an existing key is another operation than one of an
// absent key.
func (s *Store) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	const call = "commit"
	if err := txn.Validate(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	if s.isClosed() {
		return 0, errClosed
	}
	under, err := s.sessionOf(ctx, txn)
	if err != nil {
		return 0, err
	}
	for {
		version, again, err := s.try(ctx, txn, under)
		switch {
		case again && err == nil:
			continue
		case err == nil:
			return version, nil
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrSessionEnded), errors.Is(err, store.ErrRefused):
			return 0, fmt.Errorf("%s: %w", call, err)
		case isLasting(err):
			return 0, wrap(call, store.ErrRefused, err)
		}
		return 0, wrap(call, store.ErrAmbiguous, err)
	}
}

// sessionOf is the session of the keys that a transaction puts; nil: they stay. Another client of the same nodes may
// have opened it: the transaction goes over the session's own connection.
func (s *Store) sessionOf(ctx context.Context, txn store.Txn) (*session, error) {
	for _, op := range txn.Then {
		if op.Session == nil || op.Delete {
			continue
		}
		under, ok := op.Session.(*session)
		if ok && under.store != s {
			if _, err := s.link(ctx); err != nil { // it learns which nodes these are
				return nil, wrap("commit", store.ErrAmbiguous, err)
			}
			ok = under.store.root == s.root && under.store.origin() == s.origin()
		}
		if !ok {
			return nil, fmt.Errorf("commit: %w: %s is put under a session of another store", store.ErrRefused, op.Key)
		}
		return under, nil
	}
	return nil, nil
}

// origin is the transaction that made the client's nodes.
func (s *Store) origin() int64 {
	known, _ := s.tide()
	return known.origin
}

// try sends a transaction once; again: it had no effect, since what the client knew was out of date.
func (s *Store) try(ctx context.Context, txn store.Txn, under *session) (version store.Version, again bool, err error) {
	conn, ended, err := s.linkUnder(ctx, under)
	if err != nil {
		return 0, false, err
	}
	known, err := s.knownFor(ctx, txn)
	if err != nil {
		return 0, false, err
	}
	p := plan{store: s, known: known, under: under}
	p.conditions(txn)
	if !ended {
		p.operations(txn)
	}
	reply, err := s.transact(ctx, conn, p.parts)
	if err != nil {
		return 0, false, err
	}
	part, code := reply.Failed()
	switch {
	case code == 0 && ended:
		return 0, false, fmt.Errorf("%w: %s can't be put under it", store.ErrSessionEnded, txn.Then[0].Key)
	case code == 0:
		p.learn(reply)
		return store.Version(reply.Stat.Modified), false, nil
	case code == wire.ErrSessionExpired || code == wire.ErrSessionMoved:
		if under != nil && !ended && code == wire.ErrSessionExpired {
			under.lost("the service has ended it")
		}
		conn.Abandon()
		return 0, true, ctx.Err()
	case code != wire.ErrNoNode && code != wire.ErrNodeExists && code != wire.ErrBadVersion:
		return 0, false, code
	case part >= 0 && part < p.conditional:
		return 0, false, fmt.Errorf("%w: %s", store.ErrConflict, p.keys[part])
	}
	for _, op := range txn.Then { // what was known of them may be wrong
		s.forget(op.Key)
	}
	return 0, true, ctx.Err()
}

// linkUnder returns the connection for a transaction that puts keys under a session, or under none. If that session has
// ended, only the conditions of the transaction matter, and any connection will do.
func (s *Store) linkUnder(ctx context.Context, under *session) (conn *wire.Conn, ended bool, err error) {
	if under != nil {
		conn, err = under.link(ctx)
		if ended = errors.Is(err, store.ErrSessionEnded); !ended {
			return conn, false, err
		}
	}
	conn, err = s.link(ctx)
	return conn, ended, err
}

func (s *Store) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, key)
}

// knownFor returns the nodes of the keys of a transaction as the client knows them, and reads those that it doesn't.
// Of a key with a condition it is the node with that version, and no other: ErrConflict is returned when that one is
// no more.
func (s *Store) knownFor(ctx context.Context, txn store.Txn) (map[string]node, error) {
	known := make(map[string]node, len(txn.Then)+len(txn.If))
	var unknown []string
	var gets []wire.Request
	look := func(key string, good func(node) bool) {
		n, found := s.recall(key)
		if found && good(n) {
			known[key] = n
			return
		}
		unknown = append(unknown, key)
		gets = append(gets, wire.Get(s.path(key)))
	}
	wanted := make(map[string]store.Version, len(txn.If))
	for _, c := range txn.If {
		if v, twice := wanted[c.Key]; twice && v != c.Version {
			return nil, fmt.Errorf("%w: %s can't have two versions", store.ErrConflict, c.Key)
		}
		wanted[c.Key] = c.Version
	}
	for key, version := range wanted {
		if version == 0 {
			known[key] = node{}
			continue
		}
		look(key, func(n node) bool { return n.version == version })
	}
	for _, op := range txn.Then {
		if _, conditional := wanted[op.Key]; !conditional {
			look(op.Key, func(node) bool { return true })
		}
	}
	if len(gets) == 0 {
		return known, nil
	}
	replies, err := s.read(ctx, gets...)
	if err != nil {
		return nil, err
	}
	for i, key := range unknown {
		n, _, err := parse(replies[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		s.remember(key, n)
		if want, conditional := wanted[key]; conditional && n.version != want {
			return nil, fmt.Errorf("%w: %s is at version %d, not %d", store.ErrConflict, key, n.version, want)
		}
		known[key] = n
	}
	return known, nil
}

// plan is a transaction of ZooKeeper's.
type plan struct {
	store *Store
	known map[string]node
	under *session

	parts       []wire.Request
	keys        []string // of the parts
	conditional int      // so many parts come first, and fail because of a condition
	becomes     map[string]node
	set         map[string]int // which part writes a node in place
}

func (p *plan) add(key string, parts ...wire.Request) {
	for _, part := range parts {
		p.parts = append(p.parts, part)
		p.keys = append(p.keys, key)
	}
}

// conditions demands that the keys are as they are known.
func (p *plan) conditions(txn store.Txn) {
	seen := make(map[string]bool, len(txn.If))
	for _, c := range txn.If {
		if seen[c.Key] {
			continue
		}
		seen[c.Key] = true
		p.demand(c.Key, p.known[c.Key].writes)
	}
	p.conditional = len(p.parts)
}

// demand demands that a key is absent, or that its node is the known one after so many writes. What is absent can
// be made.
func (p *plan) demand(key string, writes int32) {
	s, n := p.store, p.known[key]
	path := s.path(key)
	if n.version == 0 {
		p.add(key, s.create(path, nil, wire.Persistent), wire.Delete(path, wire.AnyVersion))
		return
	}
	p.add(key, wire.Check(path, writes), wire.Check(s.markPath(n.mark), wire.AnyVersion))
}

// operations does what the transaction does, if the keys without a condition are as they are known, too, whatever
// was written to them meanwhile.
func (p *plan) operations(txn store.Txn) {
	p.becomes, p.set = make(map[string]node), make(map[string]int)
	demanded := make(map[string]bool, len(txn.If))
	for _, c := range txn.If {
		demanded[c.Key] = true
	}
	for _, op := range txn.Then {
		if !demanded[op.Key] {
			p.demand(op.Key, wire.AnyVersion)
		}
		if op.Delete {
			p.remove(op.Key)
		} else {
			p.put(op)
		}
	}
}

func (p *plan) remove(key string) {
	n := p.known[key]
	p.becomes[key] = node{}
	if n.version != 0 {
		p.add(key, wire.Delete(p.store.path(key), wire.AnyVersion),
			wire.Delete(p.store.markPath(n.mark), wire.AnyVersion))
	}
}

// put writes a node in place, or makes it anew if it is to end with another session.
func (p *plan) put(op store.Op) {
	s, n := p.store, p.known[op.Key]
	var owner int64
	kind := wire.Persistent
	if op.Session != nil {
		owner, kind = p.under.id, wire.Ephemeral
	}
	path := s.path(op.Key)
	if n.version != 0 && n.owner == owner {
		p.becomes[op.Key], p.set[op.Key] = n, len(p.parts)
		p.add(op.Key, wire.Set(path, record(n.mark, n.birth, op.Value), wire.AnyVersion))
		return
	}
	p.remove(op.Key)
	mark := newMark()
	birth := n.birth
	if n.version == 0 {
		birth = mark
	}
	p.becomes[op.Key] = node{mark: mark, birth: birth, owner: owner}
	p.add(op.Key, s.create(path, record(mark, birth, op.Value), kind), s.create(s.markPath(mark), nil, kind))
}

// learn remembers what the transaction made of the keys.
func (p *plan) learn(reply wire.Reply) {
	for key, n := range p.becomes {
		if n.mark != "" {
			n.version = store.Version(reply.Stat.Modified)
			if part, inPlace := p.set[key]; inPlace {
				n.writes = reply.Parts[part].Stat.Version
			}
		}
		p.store.remember(key, n)
	}
}
