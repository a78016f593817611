package storetest

import (
	"errors"
	"time"

	"github.com/firn-id/firn/store"
)

// "The store renews it until it is closed."
func sessionLives(s *suite) {
	session := s.session(s.Store)
	version := s.putUnder(session, "key", "1")
	gone := s.gone(s.Store, s.ctx, "key")
	select {
	case <-session.Done():
		s.Error("Done is closed while the store renews the session")
	case <-gone:
		s.Error("the key disappeared while the store renews the session")
	case <-time.After(session.TTL() * 5 / 2):
	}
	if kv := s.want("key", "1"); kv.Version != version {
		s.Errorf("the version went from %d to %d", version, kv.Version)
	}
}

// "Close ends the session and with it every key put under it."
func sessionClose(s *suite) {
	session := s.session(s.Store)
	s.putUnder(session, "mine/a", "1")
	s.putUnder(session, "mine/b", "1")
	s.put("stays", "1")
	s.must("Close", session.Close(s.ctx))
	if kvs, err := s.List(s.ctx, "mine/"); err != nil || len(kvs) != 0 {
		s.Errorf("List after Close = %+v, %v", kvs, err)
	}
	s.want("stays", "1")
	s.fires("Done after Close", session.Done())
}

// "It is safe to call more than once."
func sessionCloseTwice(s *suite) {
	session := s.session(s.Store)
	for range 3 {
		if err := session.Close(s.ctx); err != nil {
			s.Errorf("Close: %v", err)
		}
	}
}

// "[Keys] put under it disappear when it ends": those that are under it then. A
// key that was put under another session since, or under none, stays.
func sessionTakeOver(s *suite) {
	first, second := s.session(s.Store), s.session(s.open())
	s.putUnder(first, "taken over", "1")
	s.putUnder(first, "kept", "1")
	s.putUnder(first, "dropped", "1")
	s.putUnder(second, "taken over", "2")
	s.put("kept", "2")
	s.must("Close", first.Close(s.ctx))
	s.want("taken over", "2")
	s.want("kept", "2")
	s.wantAbsent("dropped")
	s.must("Close", second.Close(s.ctx))
	s.wantAbsent("taken over")
}

// "ErrSessionEnded means that the transaction puts a key under a session that has
// ended. Nothing was applied."
func sessionClosedPut(s *suite) {
	session := s.session(s.Store)
	s.must("Close", session.Close(s.ctx))
	s.refuseEnded(session)
}

func sessionExpiredPut(s *suite) {
	s.needs(s.Expire != nil, "expire a session")
	session := s.session(s.Store)
	s.putUnder(session, "mine", "1")
	s.Expire(s.T, session)
	s.wantAbsent("mine")
	s.refuseEnded(session)
}

func (s *suite) refuseEnded(session store.Session) {
	s.Helper()
	s.refuse(store.ErrSessionEnded, store.Txn{Then: []store.Op{
		store.Put("a", nil), store.PutEphemeral("b", nil, session), store.Put("c", nil),
	}})
	if kvs, err := s.List(s.ctx, ""); err != nil || len(kvs) != 0 {
		s.Errorf("something was applied: %+v, %v", kvs, err)
	}
	version := s.put("key", "1")
	s.refuse(store.ErrConflict, store.Txn{
		If: when("key", version-1), Then: []store.Op{store.PutEphemeral("b", nil, session)},
	})
}

// "Done is closed when the session has or may have ended: the client learned of the
// end".
func sessionExpiredDone(s *suite) {
	s.needs(s.Expire != nil, "expire a session")
	session := s.session(s.Store)
	s.silent("Done is closed", session.Done())
	s.Expire(s.T, session)
	s.fires("Done after the session expired", session.Done())
	if err := session.Close(s.ctx); err != nil {
		s.Errorf("Close of an expired session: %v", err)
	}
}

// "... or could not renew for a whole TTL."
func sessionCutOff(s *suite) {
	s.needs(s.CutOff != nil, "cut a client off")
	victim := s.open()
	session := s.session(victim)
	_, err := victim.Commit(s.ctx, store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, session)}})
	if err != nil {
		s.Fatalf("Commit: %v", err)
	}
	select { // the TTL counts from the last renewal, not from the beginning
	case <-session.Done():
		s.Fatal("Done is closed while the store renews the session")
	case <-time.After(session.TTL() * 3 / 2):
	}
	s.CutOff(victim, true)
	start := time.Now()
	s.fires("Done in a partition", session.Done())
	if late := time.Since(start) - session.TTL(); late > s.TTL/2 {
		s.Errorf("Done came %v after the TTL was over", late)
	}
	s.disappears("key")
	s.CutOff(victim, false)
}

// "Close ends every session, watch and Follow of this client."
func storeClose(s *suite) {
	other := s.open()
	session := s.session(other)
	s.putUnder(session, "key", "1")
	s.must("Close", other.Close())
	s.wantAbsent("key")
	s.silent("Done is open", notYet(session.Done()))
	if err := session.Close(s.ctx); err != nil {
		s.Errorf("Close of a session that its store has ended: %v", err)
	}
}

// notYet is closed if and only if c is still open.
func notYet(c <-chan struct{}) <-chan struct{} {
	open := make(chan struct{})
	select {
	case <-c:
	default:
		close(open)
	}
	return open
}

// "Later calls fail with ErrRefused."
func storeClosed(s *suite) {
	other := s.open()
	s.must("Close", other.Close())
	calls := map[string]func() error{
		"Get":         func() error { _, err := other.Get(s.ctx, "key"); return err },
		"List":        func() error { _, err := other.List(s.ctx, ""); return err },
		"Commit":      func() error { _, err := other.Commit(s.ctx, store.Txn{Then: putting("key", "1")}); return err },
		"OpenSession": func() error { _, err := other.OpenSession(s.ctx, s.TTL); return err },
		"Gone":        func() error { _, err := other.Gone(s.ctx, "key"); return err },
		"Append":      func() error { _, err := other.Append(s.ctx, "a", nil); return err },
		"Read":        func() error { _, err := other.Read(s.ctx, 0); return err },
		"Checkpoint":  func() error { return other.Checkpoint(s.ctx, store.Checkpoint{}) },
		"Trim":        func() error { return other.Trim(s.ctx) },
		"Follow": func() error {
			for _, err := range other.Follow(s.ctx, 0) {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, store.ErrRefused) {
			s.Errorf("%s: %v, want ErrRefused", name, err)
		}
	}
	s.wantAbsent("key")
	s.wantLog()
}
