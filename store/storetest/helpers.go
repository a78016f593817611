package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/store"
)

// short is the beginning of what may be long.
func short(v any) string { return fmt.Sprintf("%.200s", fmt.Sprintf("%+v", v)) }

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
	return s.commit(store.Txn{Then: putting(key, value)})
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
	s.must("Commit of "+short(txn), err)
	return version
}

// refuse commits a transaction that must fail in this way.
func (s *suite) refuse(want error, txn store.Txn) {
	s.Helper()
	if _, err := s.Commit(s.ctx, txn); !errors.Is(err, want) {
		s.Fatalf("Commit of %s = %v, want %v", short(txn), err, want)
	}
}

func (s *suite) get(key string) store.KV {
	s.Helper()
	kv, err := s.Get(s.ctx, key)
	s.must("Get "+short(key), err)
	return kv
}

// want checks that the key has this value, and that an absent one is absent.
func (s *suite) want(key, value string) store.KV {
	s.Helper()
	kv := s.get(key)
	if kv.Key != key || string(kv.Value) != value || kv.Version <= 0 {
		s.Fatalf("Get(%.80q) = %s, want the value %.80q", key, short(kv), value)
	}
	return kv
}

// wantVersion checks that the key has this value, and was not written since this version.
func (s *suite) wantVersion(key, value string, version store.Version) {
	s.Helper()
	if kv := s.want(key, value); kv.Version != version {
		s.Errorf("%.80s has version %d, want %d", key, kv.Version, version)
	}
}

func (s *suite) wantAbsent(key string) {
	s.Helper()
	if kv := s.get(key); kv.Version != 0 || len(kv.Value) != 0 {
		s.Fatalf("Get(%.80q) = %s, want it absent", key, short(kv))
	}
}

func (s *suite) session(client store.Store) store.Session {
	s.Helper()
	session, err := client.OpenSession(s.ctx, s.TTL)
	s.must("OpenSession", err)
	if session.TTL() < s.TTL-time.Second || session.TTL() <= 0 {
		s.Fatalf("TTL() = %v; asked for %v", session.TTL(), s.TTL)
	}
	return session
}

func (s *suite) gone(client store.Store, ctx context.Context, key string) <-chan struct{} {
	s.Helper()
	gone, err := client.Gone(ctx, key)
	s.must("Gone "+key, err)
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

// atOnce has so many new clients do something at the same time, and waits for all of them.
func (s *suite) atOnce(clients int, do func(i int, client store.Store) error) {
	s.Helper()
	var all sync.WaitGroup
	for i := range clients {
		client := s.open()
		all.Go(func() {
			if err := do(i, client); err != nil {
				s.Error(err)
			}
		})
	}
	all.Wait()
}

// meanwhile does something again and again in another goroutine, with 1, 2 and so on, until
// it fails or the case calls stop.
func (s *suite) meanwhile(do func(i int) error) (stop func()) {
	var running sync.WaitGroup
	var stopped atomic.Bool
	running.Go(func() {
		for i := 1; !stopped.Load(); i++ {
			if err := do(i); err != nil {
				s.Error(err)
				return
			}
		}
	})
	return func() {
		stopped.Store(true)
		running.Wait()
	}
}

// call is a call of a client, with the errors that it may return without an answer.
type call struct {
	name       string
	do         func(context.Context) error
	unanswered []error
}

// calls are all calls of a client, except Append and Follow, which go on without an answer.
func (s *suite) calls(client store.Store) []call {
	unavailable, either := []error{store.ErrUnavailable}, []error{store.ErrUnavailable, store.ErrAmbiguous}
	return []call{
		{"Get", func(ctx context.Context) error { _, err := client.Get(ctx, "key"); return err }, unavailable},
		{"List", func(ctx context.Context) error { _, err := client.List(ctx, ""); return err }, unavailable},
		{"OpenSession", func(ctx context.Context) error {
			_, err := client.OpenSession(ctx, s.TTL)
			return err
		}, unavailable},
		{"Gone", func(ctx context.Context) error { _, err := client.Gone(ctx, "key"); return err }, unavailable},
		{"Read", func(ctx context.Context) error { _, err := client.Read(ctx, 0); return err }, unavailable},
		{"Commit", func(ctx context.Context) error {
			_, err := client.Commit(ctx, store.Txn{Then: putting("committed", "1")})
			return err
		}, []error{store.ErrAmbiguous}},
		{"Checkpoint", func(ctx context.Context) error { return client.Checkpoint(ctx, store.Checkpoint{}) }, either},
		{"Trim", client.Trim, either},
	}
}

// wantUnanswered checks the error of a call that got no answer for this cause.
func (s *suite) wantUnanswered(c call, err, cause error) {
	s.Helper()
	is := func(want error) bool { return errors.Is(err, want) }
	if !slices.ContainsFunc(c.unanswered, is) || !is(cause) {
		s.Errorf("%s: %v, want %v and the cause %v", c.name, err, c.unanswered, cause)
	}
}

// when is a condition: the key has this version.
func when(key string, version store.Version) []store.Condition {
	return []store.Condition{{Key: key, Version: version}}
}

func putting(key, value string) []store.Op {
	return []store.Op{store.Put(key, []byte(value))}
}
