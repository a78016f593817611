package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn/store"
)

// givesUp appends through a client that is cut off, until its caller gives up.
func (s *suite) givesUp(victim store.Store, id string) error {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.TTL/2)
	defer cancel()
	_, err := victim.Append(ctx, id, []byte("1"))
	if !errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("Append in a partition: %v, want the cause", err)
	}
	return err
}

// doubtful cuts a client off while it appends, until an append is in doubt. The cut may hit another call of the client
// instead: then the append was not sent, is not in doubt, and must add nothing.
func (s *suite) doubtful(victim store.Store, id string) {
	s.Helper()
	s.eventually("an append in doubt", func() error {
		s.CutOff(victim, true)
		err := s.givesUp(victim, id)
		if errors.Is(err, store.ErrAmbiguous) {
			return nil
		}
		s.CutOff(victim, false)
		batch, unreached := victim.Read(s.ctx, 0)
		if slices.Contains(lines(batch.Entries), id+"=1") {
			s.Fatalf("the entry is in the log after Append in a partition: %v, want ErrAmbiguous", err)
		}
		return errors.Join(err, unreached)
	})
	if err := s.givesUp(victim, id); !errors.Is(err, store.ErrAmbiguous) {
		s.Fatalf("Append of an entry in doubt: %v, want ErrAmbiguous", err)
	}
}

// "An append in doubt can be repeated ...: the entry is added once or not at all."
func appendDoubt(s *suite, victim store.Store) {
	first := s.append(victim, "first", "1")
	t := s.follow(s.Store, 0)
	for i := range 3 {
		id := fmt.Sprintf("doubt-%d", i)
		s.doubtful(victim, id)
		s.CutOff(victim, false)
		position := s.appendAtLast(victim, id, "1")
		if again := s.append(victim, id, "1"); again != position || position <= first {
			s.Errorf("%s is at %d, and appended again at %d", id, position, again)
		}
	}
	t.reaches(s.append(victim, "last", "1"))
	t.want("first=1", "doubt-0=1", "doubt-1=1", "doubt-2=1", "last=1")
}

// "A repeat returns ErrAmbiguous, unless the entry is still there", when entries that
// came after the first try were trimmed: it is never added a second time.
func appendDoubtTrim(s *suite, victim store.Store) {
	t := s.follow(s.Store, 0)
	s.append(victim, "first", "1")
	s.doubtful(victim, "doubt")
	second := s.append(s.Store, "second", "1")
	t.reaches(second)
	s.checkpoint(s.Store, second, "first and second")
	s.trim(s.Store)
	s.CutOff(victim, false)
	// What was sent may still arrive: a store that can't be reached at first is no answer.
	var err error
	s.eventually("the answer to the append after the trim", func() error {
		_, err = victim.Append(s.ctx, "doubt", []byte("1"))
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil
	})
	if !errors.Is(err, store.ErrAmbiguous) {
		s.Errorf("the append after the trim: %v, want ErrAmbiguous", err)
	}
	if _, err := victim.Append(s.ctx, "doubt", []byte("1")); !errors.Is(err, store.ErrAmbiguous) {
		s.Errorf("the same again: %v, want ErrAmbiguous", err)
	}
	t.reaches(s.append(victim, "last", "1"))
	t.want("first=1", "second=1", "last=1")
}

// The entry that was in doubt and is in the log when everything before it was
// trimmed is found there, be it that another added it.
func appendDoubtThere(s *suite, victim store.Store) {
	first := s.append(victim, "first", "1")
	s.doubtful(victim, "doubt")
	s.checkpoint(s.Store, first, "first")
	s.trim(s.Store)
	s.CutOff(victim, false)
	// Nothing that came after its first try was trimmed: it is not in doubt any more.
	position := s.appendAtLast(victim, "doubt", "1")
	if got := s.read(first); !slices.Equal(lines(got.Entries), []string{"doubt=1"}) ||
		got.Entries[0].Position != position {
		s.Errorf("the log has %+v, want one entry at %d", got, position)
	}
}
