package storetest

import (
	"context"
	"errors"

	"github.com/firn-id/firn/store"
)

// "It returns ErrAmbiguous in every other case", and ErrUnavailable when "a call that
// changes no key got no answer in time".
func cutOffCommit(s *suite) {
	s.needs(s.CutOff != nil, "cut a client off")
	s.put("key", "1")
	victim := s.open()
	if _, err := victim.Get(s.ctx, "key"); err != nil {
		s.Fatalf("Get: %v", err)
	}
	s.CutOff(victim, true)
	ctx, cancel := context.WithTimeout(s.ctx, s.TTL/2)
	defer cancel()
	_, err := victim.Commit(ctx, store.Txn{Then: putting("key", "2")})
	if !errors.Is(err, store.ErrAmbiguous) || !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("Commit in a partition: %v, want ErrAmbiguous and its cause", err)
	}
	ctx, cancel = context.WithTimeout(s.ctx, s.TTL/2)
	defer cancel()
	if _, err := victim.Get(ctx, "key"); !errors.Is(err, store.ErrUnavailable) {
		s.Errorf("Get in a partition: %v, want ErrUnavailable", err)
	}
	s.CutOff(victim, false)
	s.eventually("Get after the partition", func() error {
		_, err := victim.Get(s.ctx, "key")
		return err
	})
}

// "A store is linearizable and does not forget what it committed."
func restart(s *suite) {
	s.needs(s.Stop != nil, "restart the service")
	version := s.put("key", "1")
	s.delete("deleted")
	s.Stop(s.T)
	s.Start(s.T)
	s.eventually("Get after the restart", func() error {
		_, err := s.Get(s.ctx, "key")
		return err
	})
	if kv := s.want("key", "1"); kv.Version != version {
		s.Errorf("the version went from %d to %d", version, kv.Version)
	}
	if next := s.put("key", "2"); next <= version {
		s.Errorf("version %d came after %d", next, version)
	}
}

// "The caller settles it by writing: it commits its next transaction under the
// same conditions, so that at most one of the two can ever apply".
func settle(s *suite) {
	s.needs(s.CutOff != nil, "cut a client off")
	version := s.put("key", "0")
	victim := s.open()
	s.CutOff(victim, true)
	ctx, cancel := context.WithTimeout(s.ctx, s.TTL/2)
	defer cancel()
	_, err := victim.Commit(ctx, store.Txn{If: when("key", version), Then: putting("key", "first")})
	if !errors.Is(err, store.ErrAmbiguous) {
		s.Fatalf("Commit in a partition: %v, want ErrAmbiguous", err)
	}
	s.CutOff(victim, false)
	second := store.Txn{If: when("key", version), Then: putting("key", "second")}
	s.eventually("the second transaction", func() error {
		_, err = victim.Commit(s.ctx, second)
		if errors.Is(err, store.ErrConflict) {
			return nil
		}
		return err
	})
	if err == nil {
		s.want("key", "second")
	} else {
		s.want("key", "first")
	}
	s.refuse(store.ErrConflict, second)
}
