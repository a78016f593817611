package member

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/fence"
	"github.com/firn-id/firn/store"
)

// Stats is where a member stands and what it has counted since it was made, for those who watch it. Nothing is decided
// by it.
type Stats struct {
	Session bool   // it has a session that has not ended, for all that it knows
	Joined  bool   // it is a member of the cluster, by the value that it has reached
	Rejoins uint64 // how often it had to join again, because its session had ended, others took it for dead, or the store had lost data

	Extensions    Extensions
	StepsBelieved uint64 // how often it followed the wall to where that had stepped ahead, see firn.SteadyClock.Follow

	Position int64 // of the log's last entry that it has applied; 0: none yet
	Entries  int64 // how many those are, since the log began

	Offset                time.Duration // of the wall from the time of IDs, see firn.SteadyClock.Offset
	StepsAhead, StepsBack uint64        // of the wall, see firn.SteadyClock.Steps
}

// Extensions counts what came of attempts to write further horizons: one for each sequencer, every third of the window
// and more often while they fail.
type Extensions struct {
	Done   uint64 // the store has confirmed
	Doubt  uint64 // nobody knows whether it was written
	Failed uint64 // it was not written
	Lost   uint64 // it can't be written any more: the node ID or its session was lost
}

// Stats returns how things stand. It asks nobody and may be called at any time, also after Leave.
func (m *Member) Stats() Stats {
	v, incarnation, _ := m.look()
	clock := m.options.Clock
	ahead, back := clock.Steps()
	return Stats{
		Session: incarnation != nil && !incarnation.over(), Joined: incarnation != nil && v.IsMember(incarnation.id), Rejoins: m.rejoins.Load(),
		Extensions: m.extensions.read(), StepsBelieved: uint64(m.era.Load()),
		Position: v.Position(), Entries: v.Entries(),
		Offset: clock.Offset(), StepsAhead: ahead, StepsBack: back,
	}
}

// extensions are an Extensions that is being counted.
type extensions struct{ done, doubt, failed, lost atomic.Uint64 }

// count counts what came of one attempt, by the error that fence.Extend returns.
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

// SequencerStats is where a sequencer stands on one member, and what was counted there since it was first attached.
type SequencerStats struct {
	State State

	// Floor and Horizon enclose the time of the IDs that the node ID in use may make, Horizon excluded; Left is
	// how far the clock is from the horizon, negative once it is past it. Zero while there is no node ID in use.
	Floor, Horizon time.Time
	Left           time.Duration

	Waits      uint64        // how often a caller waited for the clock or the sequence, see firn.Waits
	WaitedTime time.Duration // for how long in all
}

// Stats returns how things stand. It asks nobody and may be called at any time.
func (s *Sequencer) Stats() SequencerStats {
	stats := SequencerStats{State: s.State(), Waits: s.waits.Count(), WaitedTime: s.waits.Time()}
	if t := s.status.Load().inUse(); t.fence != nil {
		state := t.fence.State()
		stats.Floor, stats.Horizon = time.UnixMilli(state.Floor), time.UnixMilli(state.Horizon)
		stats.Left = stats.Horizon.Sub(s.m.now())
	}
	return stats
}
