package storetest

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// "ErrRolledBack when the last entry that it has yielded is not in the log any more and
// no checkpoint stands for it": all of it is gone.
func followWiped(s *suite) { s.rollBack(0) }

// The backup has the beginning of the log.
func followSetBack(s *suite) { s.rollBack(3) }

// rollBack has the service forget all but so many entries, while some follow.
func (s *suite) rollBack(kept int) {
	s.needs(s.Backup != nil, "set the service back")
	for i := range kept {
		s.append(s.Store, fmt.Sprintf("kept-%d", i), "1")
	}
	restore := s.Backup(s.T)
	var last store.Position
	for i := range 5 {
		last = s.append(s.open(), fmt.Sprintf("lost-%d", i), "1")
	}
	other := s.open()
	tapes := []*tape{s.follow(s.Store, 0), s.follow(s.Store, 0), s.follow(other, 0)}
	for _, t := range tapes {
		t.reaches(last)
	}
	restore(s.T)
	for _, t := range tapes {
		s.fires("the end of Follow after the store was set back", t.ended)
		if !errors.Is(t.err, store.ErrRolledBack) {
			s.Errorf("Follow ended with %v, want ErrRolledBack", t.err)
		}
	}
	// On the store as it is now all goes on.
	entry := s.append(other, "new", "1")
	again := s.follow(other, 0)
	again.reaches(entry)
	if want := kept + 1; len(again.entries) != want {
		s.Errorf("the log has %q, want %d entries", lines(again.entries), want)
	}
}

// "ErrRolledBack when the last entry that it has yielded is not in the log any more": the log has grown beyond it
// meanwhile, so that no position tells.
func followSetBackAndGrown(s *suite) {
	t := s.awayWhileSetBack(func(store.Store) {})
	s.fires("the end of Follow after the store was set back", t.ended)
	if !errors.Is(t.err, store.ErrRolledBack) {
		s.Errorf("Follow ended with %v, want ErrRolledBack", t.err)
	}
}

// "... and no checkpoint stands for it": one does by its position, though it was written for another log, and nothing
// was trimmed. Entries that follow would not fit those before, so it goes on from the checkpoint, or ends.
func followSetBackAndCheckpoint(s *suite) {
	t := s.awayWhileSetBack(func(other store.Store) {
		s.checkpoint(other, s.append(other, "all", "1"), "all")
		s.append(other, "more", "1")
	})
	t.until("the checkpoint, or the end", func() bool {
		return len(t.checkpoints) > 0 || t.err != nil || len(t.entries) > 2
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.checkpoints) == 0 && !errors.Is(t.err, store.ErrRolledBack) {
		s.Errorf("Follow has yielded %q, ended with %v; want the checkpoint after the second, or ErrRolledBack",
			lines(t.entries), t.err)
	}
}

// awayWhileSetBack has a client follow the log, which is cut off while the service is set back and its log grows. It
// reaches the service again after that and what then does.
func (s *suite) awayWhileSetBack(then func(other store.Store)) *tape {
	s.Helper()
	s.needs(s.Backup != nil, "set the service back")
	s.needs(s.CutOff != nil, "cut a client off")
	s.append(s.Store, "kept", "1")
	restore := s.Backup(s.T)
	away := s.open()
	last := s.append(away, "lost", "1")
	tape := s.follow(away, 0)
	tape.reaches(last)
	s.CutOff(away, true)
	restore(s.T)
	other := s.open()
	for i, grown := 0, false; i < 10 || !grown; i++ {
		s.eventually("an append", func() error { // it may fail when s.Store notices meanwhile, and tells the service
			at, err := other.Append(s.ctx, fmt.Sprintf("new-%d", i), []byte("1"))
			grown = at > last+10
			return err
		})
	}
	then(other)
	s.CutOff(away, false)
	return tape
}

// "ErrRolledBack means that the store is behind what the client knew": nobody follows.
func appendSetBack(s *suite) {
	s.needs(s.Backup != nil, "set the service back")
	restore := s.Backup(s.T)
	for i := range 5 {
		s.append(s.Store, fmt.Sprintf("lost-%d", i), "1")
	}
	s.checkpoint(s.Store, s.append(s.Store, "last", "1"), "all")
	restore(s.T)
	var err error
	s.eventually("the append that is told", func() error {
		if _, err = s.Append(s.ctx, "first", []byte("1")); errors.Is(err, store.ErrRolledBack) {
			return nil
		}
		return fmt.Errorf("the append: %w; want ErrRolledBack", err)
	})
	s.append(s.Store, "second", "1")
}
