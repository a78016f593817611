package server

import (
	"context"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/server/auth"
)

// tries is how often consecutive IDs are sought before the node counts as overloaded.
const tries = 16

// Consecutive gives count consecutive IDs of a sequencer, and returns the last: they are last-count+1 to last. An error
// of the code BadRequest is returned when the layout has no such IDs: they lie in one tick of one node, so there are at
// most 2^sequence bits, and none where the node lies lowest. One of the code Overloaded is returned when others took
// IDs in between time and again.
// At is the other end of the caller's connection, see Many.
func (s *Service) Consecutive(ctx context.Context, who *auth.Caller, at, name string, count int) (last firn.ID, err error) {
	if count < 1 || count > MaxCount {
		return 0, Input(fmt.Errorf("count is %d; want a number from 1 to %d", count, MaxCount))
	}
	within, end, err := s.begin(ctx, who, auth.Issue, name, count)
	if err != nil {
		return 0, err
	}
	defer end()
	caller, room := partyOf(who, at), 2*count-1
	release, err := s.hold(ctx, within, caller, at, int64(room)*8)
	if err != nil {
		return 0, err
	}
	defer release()
	ids := make([]firn.ID, room)
	err = s.from(within, who, name, func(m Issuer) (err error) {
		if err := sideBySide(m.Layout(), count); err != nil {
			return err
		}
		last, err = consecutive(ids, count, func(ids []firn.ID) error {
			if count <= few {
				return m.Fill(within, ids)
			}
			return s.turns.each(within, name, caller, m.Layout().Rate(), len(ids), len(ids), func(int) error { return m.Fill(within, ids) })
		})
		return err
	})
	if err == nil {
		s.given.add(name, count)
	}
	return last, err
}

// sideBySide returns why a layout never has so many consecutive IDs.
func sideBySide(l firn.Layout, count int) error {
	switch {
	case count == 1:
		return nil
	case l.NodeLowest && l.NodeIDs() > 1:
		return Input(fmt.Errorf("%d consecutive IDs: in this layout the node is lowest, and one node's IDs are %d apart; ask for a list of IDs", count, l.NodeIDs()))
	case int64(count) > 1<<l.SequenceBits:
		return Input(fmt.Errorf("%d consecutive IDs: this layout has at most %d, in one tick; ask for fewer, or for a list of IDs", count, int64(1)<<l.SequenceBits))
	default:
		return nil
	}
}

// consecutive takes IDs until there are enough side by side, and returns the last of these. The others are not used
// by anybody. There is room in ids for twice as many but one: if what is left of a tick does not do, and that is all
// that the first of them come from, then the next tick does, unless others take of it first.
func consecutive(ids []firn.ID, count int, fill func([]firn.ID) error) (firn.ID, error) {
	for try := range tries {
		if try == 0 {
			ids = ids[:count]
		} else {
			ids = ids[:cap(ids)]
		}
		if err := fill(ids); err != nil {
			return 0, err
		}
		run := 0
		for i, id := range ids {
			if i > 0 && id != ids[i-1]+1 {
				run = 0
			}
			if run++; run == count {
				return id, nil
			}
		}
	}
	return 0, &scatteredError{count}
}

// scatteredError is returned when there were no consecutive IDs for all the others that were asked for.
type scatteredError struct{ count int }

func (e *scatteredError) Error() string {
	return fmt.Sprintf("no %d consecutive IDs in %d tries, since others took IDs in between; ask for fewer, or for a list of IDs, or try again", e.count, tries)
}
