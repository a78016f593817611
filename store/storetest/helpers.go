package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/store"
)

// must ends the case with an error of a call.
func (s *suite) must(call string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", call, err)
	}
}

// put commits one unconditional put that must succeed.
func (s *suite) put(key, value string) store.Version {
	s.Helper()
	return s.commit(store.Txn{Then: []store.Op{store.Put(key, []byte(value))}})
}

// delete commits one unconditional delete that must succeed.
func (s *suite) delete(key string) {
	s.Helper()
	s.commit(store.Txn{Then: []store.Op{store.Delete(key)}})
}

// putUnder puts an ephemeral key.
func (s *suite) putUnder(session store.Session, key, value string) store.Version {
	s.Helper()
	return s.commit(store.Txn{Then: []store.Op{store.PutEphemeral(key, []byte(value), session)}})
}

func (s *suite) commit(txn store.Txn) store.Version {
	s.Helper()
	version, err := s.Commit(s.ctx, txn)
	if err != nil {
		s.Fatalf("Commit(%v): %v", txn, err)
	}
	return version
}

// refuse commits a transaction that must fail in this way.
func (s *suite) refuse(want error, txn store.Txn) {
	s.Helper()
	if _, err := s.Commit(s.ctx, txn); !errors.Is(err, want) {
		s.Fatalf("Commit(%v) = %v, want %v", txn, err, want)
	}
}

func (s *suite) get(key string) store.KV {
	s.Helper()
	kv, err := s.Get(s.ctx, key)
	if err != nil {
		s.Fatalf("Get(%q): %v", key, err)
	}
	return kv
}

// want checks that the key has this value, and that an absent one is absent.
func (s *suite) want(key, value string) store.KV {
	s.Helper()
	kv := s.get(key)
	if kv.Key != key || string(kv.Value) != value || kv.Version <= 0 {
		s.Fatalf("Get(%q) = %+v, want the value %q", key, kv, value)
	}
	return kv
}

func (s *suite) wantAbsent(key string) {
	s.Helper()
	if kv := s.get(key); kv.Version != 0 || len(kv.Value) != 0 {
		s.Fatalf("Get(%q) = %+v, want it absent", key, kv)
	}
}

func (s *suite) session(client store.Store) store.Session {
	s.Helper()
	session, err := client.OpenSession(s.ctx, s.TTL)
	if err != nil {
		s.Fatalf("OpenSession: %v", err)
	}
	if session.TTL() < s.TTL {
		s.Fatalf("TTL() = %v, less than the %v asked for", session.TTL(), s.TTL)
	}
	return session
}

func (s *suite) gone(client store.Store, ctx context.Context, key string) <-chan struct{} {
	s.Helper()
	gone, err := client.Gone(ctx, key)
	if err != nil {
		s.Fatalf("Gone(%q): %v", key, err)
	}
	return gone
}

// fires waits for a channel that must be closed.
func (s *suite) fires(what string, c <-chan struct{}) {
	s.Helper()
	select {
	case <-c:
	case <-time.After(s.Patience):
		s.Fatalf("%s: nothing within %v", what, s.Patience)
	}
}

// silent checks that a channel is open at this moment.
func (s *suite) silent(what string, c <-chan struct{}) {
	s.Helper()
	select {
	case <-c:
		s.Fatalf("%s, and must not", what)
	default:
	}
}

// disappears waits until a key is absent.
func (s *suite) disappears(key string) {
	s.Helper()
	s.fires(key+" disappears", s.gone(s.Store, s.ctx, key))
	s.wantAbsent(key)
}

// eventually repeats a call until it succeeds.
func (s *suite) eventually(what string, call func() error) {
	s.Helper()
	deadline := time.Now().Add(s.Patience)
	for {
		err := call()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s: %v", what, err)
		}
		time.Sleep(s.TTL / 50)
	}
}

// when is a condition: the key has this version.
func when(key string, version store.Version) []store.Condition {
	return []store.Condition{{Key: key, Version: version}}
}

func putting(key, value string) []store.Op {
	return []store.Op{store.Put(key, []byte(value))}
}
