package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/firn-id/firn/store"
)

// "It returns ErrAmbiguous in every other case", and ErrUnavailable when "a call that
// changes no key got no answer in time".
func unanswered(s *suite, victim store.Store) {
	s.session(victim)
	last := s.append(victim, "a", "1")
	s.CutOff(victim, true)
	ctx, cancel := context.WithTimeout(s.ctx, s.TTL/2)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range s.calls(victim) {
		all.Go(func() { s.wantUnanswered(c, c.do(ctx), context.DeadlineExceeded) })
	}
	all.Wait()
	s.CutOff(victim, false)
	s.eventually("Get, Checkpoint and Trim after the partition", func() error {
		_, err := victim.Get(s.ctx, "key")
		return errors.Join(err, victim.Checkpoint(s.ctx, store.Checkpoint{Position: last}), victim.Trim(s.ctx))
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
	s.wantVersion("key", "1", version)
	if next := s.put("key", "2"); next <= version {
		s.Errorf("version %d came after %d", next, version)
	}
}

// "The caller settles it by writing: it commits its next transaction under the
// same conditions, so that at most one of the two can ever apply".
func settle(s *suite, victim store.Store) {
	version := s.put("key", "0")
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
