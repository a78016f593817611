package zkstore

import (
	"context"
	"fmt"

	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

// examineTree makes the tree if there is none, and compares what the service says with what this client knew of it.
//
// It begins with a transaction that changes nothing: a majority of the servers must agree to it, so its number is
// greater than those of all transactions that were ever confirmed, unless the service has lost some.
func (s *Store) examineTree(ctx context.Context, conn *wire.Conn) error {
	for {
		before, _ := s.tide() // what a session's connection tells meanwhile may be of later transactions
		replies, err := conn.Do(ctx, wire.Multi(wire.Check(s.root+revision, wire.AnyVersion)),
			wire.Exists(s.root+revision, false))
		if err != nil {
			return err
		}
		now, tree := replies[0].Zxid, replies[1]
		switch _, code := replies[0].Failed(); {
		case code != 0 && code != wire.ErrNoNode:
			return code
		case tree.Err != 0 && tree.Err != wire.ErrNoNode:
			return tree.Err
		}
		if s.compare(before, now, tree) {
			return nil
		}
		if err := s.makeTree(ctx, conn); err != nil {
			return err
		}
	}
}

// compare notes a loss of what was known before, and returns false when there is no tree.
func (s *Store) compare(before tidemark, now int64, tree wire.Reply) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := tree.Err == 0
	var why string
	switch {
	case before.origin != 0 && !there:
		why = "its nodes are gone"
	case before.origin != 0 && tree.Stat.Created != before.origin:
		why = "its nodes were made again"
	case now < before.seen:
		why = fmt.Sprintf("it is at transaction %#x, and was at %#x", now, before.seen)
	case there && tree.Stat.Modified < before.written:
		why = fmt.Sprintf("its last transaction of firn is %#x, and was %#x", tree.Stat.Modified, before.written)
	}
	if why != "" {
		s.log.Warn("the service has lost data", "why", why)
		s.losses++
		s.untold = true
		s.known = tidemark{}
		clear(s.nodes)
		s.appender.Forget()
	}
	s.known.seen = max(s.known.seen, now)
	if there {
		s.known.origin, s.known.written = tree.Stat.Created, max(s.known.written, tree.Stat.Modified)
	}
	return there
}

// makeTree makes the nodes below which all others are, with the one that stands for them as the last.
func (s *Store) makeTree(ctx context.Context, conn *wire.Conn) error {
	for i := 1; i < len(s.root); i++ {
		if s.root[i] != '/' {
			continue
		}
		replies, err := conn.Do(ctx, wire.Create(s.root[:i], nil, wire.Persistent, false))
		if err != nil {
			return err
		}
		if code := replies[0].Err; code != 0 && code != wire.ErrNodeExists && code != wire.ErrNoAuth {
			return code
		}
	}
	replies, err := conn.Do(ctx, s.create(s.root, nil, wire.Persistent))
	if err != nil {
		return err
	}
	if code := replies[0].Err; code != 0 && code != wire.ErrNodeExists && code != wire.ErrNoAuth {
		return code
	}
	var parts []wire.Request
	for _, name := range []string{keys, marks, log, ids, pieces, checkpoint, revision} {
		parts = append(parts, s.create(s.root+name, nil, wire.Persistent))
	}
	if replies, err = conn.Do(ctx, wire.Multi(parts...)); err != nil {
		return err
	}
	if _, code := replies[0].Failed(); code != 0 && code != wire.ErrNodeExists {
		return code
	}
	return nil
}

// create makes a node that only this client's user can use, if it has one.
func (s *Store) create(path string, data []byte, kind int32) wire.Request {
	return wire.Create(path, data, kind, s.user != "")
}

// tide is what the client knows of the service, and how often that was found to be wrong, before a call.
func (s *Store) tide() (before tidemark, losses int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known, s.losses
}

// saw notes how far a server is by an answer to a call, unless the service has lost data since.
func (s *Store) saw(losses int, seen, written int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if losses == s.losses {
		s.known.seen, s.known.written = max(s.known.seen, seen), max(s.known.written, written)
	}
}
