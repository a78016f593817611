package calls

import (
	"context"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// tries is how often a call looks for consecutive IDs before it fails as Overloaded.
const tries = 16

// Consecutive takes count consecutive IDs of a sequencer, last-count+1 to last. The error has the code BadRequest
// when the sequencer has no such IDs: they lie in one tick of one node, so at most 2^(sequence bits) of them, or one
// when the node bits are lowest or the IDs scattered. It has the code Overloaded when other calls took IDs in between at every try. At
// is the address of the caller's end of the connection, see Many.
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
	by, err := s.from(within, who, name, func(m Issuer) (err error) {
		if err := sideBySide(m.Definition(), count); err != nil {
			return err
		}
		last, err = consecutive(ids, count, func(ids []firn.ID) error {
			if count <= few {
				return m.FillAfter(within, 0, ids)
			}
			return s.turns.each(within, name, caller, m, len(ids), len(ids), func(int) error { return m.FillAfter(within, 0, ids) })
		})
		return err
	})
	if err == nil && by == "" {
		s.given.add(name, count)
	}
	return last, err
}

// sideBySide returns an error if the layout never has so many consecutive IDs.
func sideBySide(d cluster.Definition, count int) error {
	l := d.IDLayout()
	switch {
	case count == 1:
		return nil
	case d.Scattered:
		return Input(fmt.Errorf("%d consecutive IDs: this sequencer scatters its IDs, so none follows another; ask for a list of IDs", count))
	case l.NodeLowest && l.NodeIDs() > 1:
		return Input(fmt.Errorf("%d consecutive IDs: in this layout the node is lowest, and one node's IDs are %d apart; ask for a list of IDs", count, l.NodeIDs()))
	case int64(count) > 1<<l.SequenceBits:
		return Input(fmt.Errorf("%d consecutive IDs: this layout has at most %d, in one tick; ask for fewer, or for a list of IDs", count, int64(1)<<l.SequenceBits))
	default:
		return nil
	}
}

// consecutive takes IDs until count of them are consecutive, and returns the last of these. Nobody uses the
// others. The capacity of ids is 2*count-1: if the rest of the current tick, at most count-1 IDs, is too short,
// the next tick is enough, unless other calls take IDs of it first.
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

// scatteredError says that other calls took IDs in between at every try.
type scatteredError struct{ count int }

func (e *scatteredError) Error() string {
	return fmt.Sprintf("no %d consecutive IDs in %d tries, since others took IDs in between; ask for fewer, or for a list of IDs, or try again", e.count, tries)
}
