// Package memstore is a store in memory that misbehaves on command, for tests and
// simulations. It is not for production: its data end with the process.
//
// One Service holds the data for any number of named clients. It waits by package
// time only, so that under testing/synctest a test with sessions, delays and
// partitions takes no time at all.
package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
)

// Service holds the data that its clients share. NewService makes it. It is safe for
// concurrent use.
type Service struct {
	mu       sync.Mutex // guards everything here, in the clients and in their sessions
	revision store.Version
	keys     map[string]entry
	log      logbook
	watches  map[string]map[*watch]bool
	hook     Hook
}

// entry is a key that exists.
type entry struct {
	value   []byte
	version store.Version
	session *lease // nil for a key that stays
}

// watch is one running Gone.
type watch struct {
	client *Client
	ctx    context.Context
	gone   chan struct{}
	forget func() bool // stops waiting for the end of ctx
}

// fire notifies the watcher, unless it has stopped watching.
func (w *watch) fire() {
	if w.ctx.Err() == nil {
		close(w.gone)
	}
}

// NewService makes an empty service.
func NewService() *Service {
	return &Service{
		keys:    make(map[string]entry),
		log:     logbook{positions: make(map[string]store.Position), following: make(map[*Client]int)},
		watches: make(map[string]map[*watch]bool),
	}
}

// Expire ends a session at once, as a service with a wrong clock would. Its client
// learns of that as of any other news, see Client.Lag.
func (s *Service) Expire(session store.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(session.(*Session).lease)
}

func (s *Service) getLocked(key string) store.KV {
	e := s.keys[key]
	return store.KV{Key: key, Value: slices.Clone(e.value), Version: e.version}
}

func (s *Service) listLocked(prefix string) []store.KV {
	var kvs []store.KV
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if strings.HasPrefix(key, prefix) {
			kvs = append(kvs, s.getLocked(key))
		}
	}
	return kvs
}

// commitLocked checks everything before it applies anything. Like etcd it reports a
// condition that does not hold before a session that has ended.
func (s *Service) commitLocked(txn store.Txn) (store.Version, error) {
	for _, c := range txn.If {
		if have := s.keys[c.Key].version; have != c.Version {
			return 0, fmt.Errorf("%w: %s is at version %d, not %d", store.ErrConflict, c.Key, have, c.Version)
		}
	}
	for _, op := range txn.Then {
		if op.Session == nil || op.Delete {
			continue
		}
		switch session, ok := op.Session.(*Session); {
		case !ok || session.client.svc != s:
			return 0, fmt.Errorf("%w: %s is put under a session of another store", store.ErrRefused, op.Key)
		case !session.alive || session.isDone:
			return 0, fmt.Errorf("%w: %s can't be put under it", store.ErrSessionEnded, op.Key)
		}
	}
	s.revision++
	for _, op := range txn.Then {
		if op.Delete {
			s.deleteLocked(op.Key)
			continue
		}
		e := entry{value: slices.Clone(op.Value), version: s.revision}
		if session, ok := op.Session.(*Session); ok {
			e.session = session.lease
		}
		s.keys[op.Key] = e
	}
	return s.revision, nil
}

// deleteLocked removes a key, if it exists, and notifies its watchers.
func (s *Service) deleteLocked(key string) {
	if _, ok := s.keys[key]; !ok {
		return
	}
	delete(s.keys, key)
	for w := range s.watches[key] {
		w.client.tellLocked(w.fire)
		w.forget()
	}
	delete(s.watches, key)
}

// endLocked ends a session at the service: its keys disappear at one moment.
func (s *Service) endLocked(session *lease) {
	if !session.alive {
		return
	}
	session.alive = false
	session.expiry.Stop()
	s.revision++
	for key, e := range s.keys {
		if e.session == session {
			s.deleteLocked(key)
		}
	}
	for _, held := range session.held {
		held.client.tellLocked(held.doneLocked)
	}
}

// expired ends a session whose time is up, unless it was renewed meanwhile.
func (s *Service) expired(session *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(session.renewed) >= session.ttl {
		s.endLocked(session)
	}
}
