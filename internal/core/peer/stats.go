package peer

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// Stats is the state of a member and what it has counted since Start. It is for monitoring; nothing depends on
// it.
type Stats struct {
	Session bool // it has a session that, as far as it knows, has not ended
	Joined  bool // it is a member by the value that it has reached
	// how often it joined again: its session had ended, others took it for dead, or the store had lost data
	Rejoins uint64

	Copies uint64 // how often it started over since it was copied or set back, or the system resumed from a snapshot

	Stopped int64 // position of the log's entry, or checkpoint, that it can't read and has stopped at; 0: none

	Extensions    Extensions
	StepsBelieved uint64 // how often it followed a step ahead of the wall clock, see firn.SteadyClock.Follow

	Position int64 // position of the last entry that it has applied; 0: none yet
	Entries  int64 // how many entries those are, since the log began

	Offset                time.Duration // of the wall clock from ID time, see firn.SteadyClock.Offset
	StepsAhead, StepsBack uint64        // of the wall clock, see firn.SteadyClock.Steps
}

// Extensions counts the outcomes of attempts to renew: one for each sequencer, every third of the window and more
// often while they fail.
type Extensions struct {
	Done   uint64 // the store has confirmed
	Doubt  uint64 // unknown whether it was written
	Failed uint64 // it was not written
	Lost   uint64 // the node ID or its session was lost: no renewal is possible
}

// Stats returns the member's statistics. It does not ask the store, and may be called at any time, also after
// Leave.
func (m *Member) Stats() Stats {
	v, incarnation, _ := m.look()
	clock := m.options.Clock
	ahead, back := clock.Steps()
	var at int64
	if stop := m.stopped.Load(); stop != nil {
		at = stop.at
	}
	return Stats{
		Stopped: at,
		Session: incarnation != nil && !incarnation.over(), Joined: incarnation != nil && v.IsMember(incarnation.id),
		Rejoins: m.rejoins.Load(), Copies: m.copies.Load(),
		Extensions: m.keeper.extensions.read(), StepsBelieved: m.believed.Load(),
		Position: v.Position(), Entries: v.Entries(),
		Offset: clock.Offset(), StepsAhead: ahead, StepsBack: back,
	}
}

// extensions are the counters of an Extensions.
type extensions struct{ done, doubt, failed, lost atomic.Uint64 }

// count counts one attempt by the error that fence.Extend returned.
func (e *extensions) count(err error) {
	switch {
	case err == nil:
		e.done.Add(1)
	case errors.Is(err, fence.ErrLost):
		e.lost.Add(1)
	case errors.Is(err, store.ErrAmbiguous):
		e.doubt.Add(1)
	default:
		e.failed.Add(1)
	}
}

func (e *extensions) read() Extensions {
	return Extensions{Done: e.done.Load(), Doubt: e.doubt.Load(), Failed: e.failed.Load(), Lost: e.lost.Load()}
}

// SequencerStats is the state of a sequencer on one member, and what it has counted since it was first attached.
type SequencerStats struct {
	State State

	// IDs of the node ID in use may have times from Floor up to but excluding Horizon. Left is how far the
	// horizon is ahead of the clock, negative once passed. All are zero while none is in use.
	Floor, Horizon time.Time
	Left           time.Duration

	Ahead time.Duration // how far IDs are ahead of the clock, see Sequencer.Ahead; Left includes it

	Window time.Duration // how far ahead of the clock a renewal puts the horizon

	Waits      uint64        // how often a caller waited for the clock or the sequence, see firn.Waits
	WaitedTime time.Duration // the total time waited
}

// Stats returns the sequencer's statistics. It does not ask the store, and may be called at any time.
func (s *Sequencer) Stats() SequencerStats {
	stats := SequencerStats{
		State: s.State(), Window: s.fences.Window, Waits: s.waits.Count(),
		WaitedTime: s.waits.Time(), Ahead: s.Ahead(),
	}
	if t := s.status.Load().inUse(); t.fence != nil {
		state := t.fence.State()
		stats.Floor, stats.Horizon = time.UnixMilli(state.Floor), time.UnixMilli(state.Horizon)
		stats.Left = stats.Horizon.Sub(s.m.now())
	}
	return stats
}
