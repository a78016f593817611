package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/store"
)

// "The store renews it until it is closed." A host that stalls for longer than the TTL may end one session, and
// another: not three.
func sessionLives(s *suite) {
	for tries := 3; ; tries-- {
		session := s.session(s.Store)
		version := s.putUnder(session, "key", "1")
		gone := s.gone(s.Store, s.ctx, "key")
		var failed string
		select {
		case <-session.Done():
			failed = "Done is closed while the store renews the session"
		case <-gone:
			failed = "the key disappeared while the store renews the session"
		case <-time.After(session.TTL() * 5 / 2):
			s.wantVersion("key", "1", version)
			return
		}
		if tries == 1 {
			s.Error(failed)
			return
		}
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
		s.must("Close", session.Close(s.ctx))
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

// "All sessions in it must be the same one."
func sessionOne(s *suite) {
	first, second := s.session(s.Store), s.session(s.Store)
	s.refuse(store.ErrRefused, store.Txn{Then: []store.Op{
		store.PutEphemeral("a", nil, first), store.PutEphemeral("b", nil, second),
	}})
	s.wantAbsent("a")
	s.wantAbsent("b")
	s.commit(store.Txn{Then: []store.Op{store.PutEphemeral("a", nil, first), store.PutEphemeral("b", nil, first)}})
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

// "It returns ErrUnavailable when the service did not confirm; the session then ends by itself within its TTL." And
// "ErrSessionEnded means that the transaction puts a key under a session ... whose Done is closed."
func sessionCloseFails(s *suite) {
	session := s.session(s.Store)
	s.putUnder(session, "key", "1")
	gone := s.gone(s.Store, s.ctx, "key")
	over, cancel := context.WithCancel(s.ctx)
	cancel()
	if err := session.Close(over); !errors.Is(err, store.ErrUnavailable) {
		s.Fatalf("Close with a context that is over = %v, want ErrUnavailable", err)
	}
	select {
	case <-session.Done():
	default:
		s.Error("Done of a session that its owner has closed is open")
	}
	s.refuse(store.ErrSessionEnded,
		store.Txn{Then: []store.Op{store.Put("a", nil), store.PutEphemeral("b", nil, session)}})
	s.wantAbsent("a")
	s.wantAbsent("b")
	s.fires("the end of the key", gone)
	s.wantAbsent("key")
}

// "Abandon stops the renewals and closes Done, and leaves the session to the service, which ends it within its TTL ...
// nor does a later Close of the store end the session."
func sessionAbandoned(s *suite) {
	client := s.open()
	session := s.session(client)
	version, err := client.Commit(s.ctx, store.Txn{Then: []store.Op{store.PutEphemeral("key", []byte("1"), session)}})
	s.must("Commit", err)
	gone := s.gone(s.Store, s.ctx, "key")
	began := time.Now()
	session.Abandon()
	select {
	case <-session.Done():
	default:
		s.Error("Done of an abandoned session is open")
	}
	if _, err := client.Commit(s.ctx,
		store.Txn{Then: []store.Op{store.PutEphemeral("b", nil, session)}}); !errors.Is(err, store.ErrSessionEnded) {
		s.Errorf("Commit under an abandoned session = %v, want ErrSessionEnded", err)
	}
	session.Abandon()
	s.must("Close", client.Close())
	// later it may have ended by itself
	if kv := s.get("key"); kv.Version != version && time.Since(began) < session.TTL()/4 {
		s.Errorf("the key of an abandoned session is %s at once, want version %d", short(kv), version)
	}
	s.fires("the end of the key", gone)
	s.wantAbsent("key")
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
	s.must("Close of an expired session", session.Close(s.ctx))
}

// "... or could not renew for a whole TTL."
func sessionCutOff(s *suite, victim store.Store) {
	session := s.session(victim)
	_, err := victim.Commit(s.ctx, store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, session)}})
	s.must("Commit", err)
	select { // the TTL counts from the last renewal, not from the beginning
	case <-session.Done():
		s.Fatal("Done is closed while the store renews the session")
	case <-time.After(session.TTL() * 3 / 2):
	}
	s.CutOff(victim, true)
	start := time.Now()
	s.fires("Done in a partition", session.Done())
	if late := time.Since(start) - session.TTL(); late > s.TTL {
		s.Errorf("Done came %v after the TTL was over", late)
	}
	s.fires("the end of the key", s.gone(s.Store, s.ctx, "key"))
	s.wantAbsent("key")
	s.CutOff(victim, false)
}

// "Close ends every session, watch and Follow of this client."
func storeClose(s *suite) {
	other := s.open()
	session := s.session(other)
	s.putUnder(session, "key", "1")
	s.must("Close", other.Close())
	s.wantAbsent("key")
	select {
	case <-session.Done():
	default:
		s.Error("Done of a session that its store has ended is open")
	}
	s.must("Close of a session that its store has ended", session.Close(s.ctx))
}

// "Later calls fail with ErrRefused."
func traits(s *suite) {
	own := s.Traits()
	other := s.open()
	s.must("Close", other.Close())
	for name, client := range map[string]store.Store{"the same client": s.Store, "another one, closed": other} {
		is := client.Traits()
		if is.Shared != own.Shared || (is.OldestTransaction == nil) != (own.OldestTransaction == nil) {
			s.Errorf("Traits of %s = %+v, want %+v", name, is, own)
		}
		if is.OldestTransaction != nil {
			if open, known := is.OldestTransaction(); open < 0 || !known && open != 0 {
				s.Errorf("OldestTransaction of %s = %v, %t", name, open, known)
			}
		}
	}
}

func storeClosed(s *suite) {
	other := s.open()
	s.must("Close", other.Close())
	follow := func(ctx context.Context) error {
		for _, err := range other.Follow(ctx, 0) {
			return err
		}
		return nil
	}
	for _, c := range append(s.calls(other),
		call{"Append", func(ctx context.Context) error { _, err := other.Append(ctx, "a", nil); return err }, nil},
		call{"Follow", follow, nil},
	) {
		if err := c.do(s.ctx); !errors.Is(err, store.ErrRefused) {
			s.Errorf("%s: %v, want ErrRefused", c.name, err)
		}
	}
	s.wantAbsent("committed")
	s.wantLog()
}
