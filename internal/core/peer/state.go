package peer

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/attachment"
	"github.com/firn-id/firn/internal/core/fence"
)

// Phase is the phase of a sequencer on one member.
type Phase uint8

// The phases.
const (
	Attaching Phase = iota // it asks for a node ID, or waits until the clock reaches the floor of its own
	Attached               // it has a node ID, and makes IDs
	Waiting                // all node IDs are taken; it waits in line
	Detached               // Detach was called
	Drained                // an operator keeps it detached, see Member.Drain
	Destroyed              // the sequencer was destroyed; this is final
	Ended                  // the member has left, or can't go on; this is final
)

func (p Phase) String() string {
	return [...]string{"attaching", "attached", "waiting", "detached", "drained", "destroyed", "ended"}[p]
}

// State is the state of a sequencer on one member. It is comparable.
type State struct {
	Phase Phase
	Node  int64 // the node ID in use, while Attached; else 0
	Place int   // in line, from 1, while Waiting; else 0
}

// String returns text such as "attached, node ID 7".
func (s State) String() string {
	switch s.Phase {
	case Attached:
		return fmt.Sprintf("%v, node ID %d", s.Phase, s.Node)
	case Waiting:
		return fmt.Sprintf("%v, place %d in line", s.Phase, s.Place)
	default:
		return s.Phase.String()
	}
}

// status is all that the member knows about a sequencer at one moment. It never changes: update replaces it.
type status struct {
	quick     *firn.Generator  // the generator, for the shortest way to an ID; nil if the member keeps a journal
	generator *firn.Generator  // makes the IDs; nil: none are made
	state     attachment.State // changed by the goroutine of run only
	tenures   [2]tenure        // those of state
	used      time.Time        // the end of the last tick that stopped generators used
	why       error            // why there are no IDs, or none from the horizon on

	granted grant // by the cluster's value
	settled bool  // the attempt at a node ID that Attach began has an outcome

	created int64 // position in the log, which identifies the generation; 0: unknown, after the store lost data
	ensured bool  // EnsureSequencer was called: the member creates it again after the store lost data
	wanted  bool  // Attach was called last, not Detach
	// IDs may exist up to this instant, so that those made before it are smaller; zero: none are known
	smaller time.Time
	ended   bool // the member has left, or can't go on

	changed chan struct{} // closed when another status has replaced this one
}

// tenure is a node ID that was claimed; the zero value is none.
type tenure struct {
	fence     *fence.Fence
	generator *firn.Generator // nil until IDs are made under it
	losses    int64           // how often the store had lost data before
	withdrawn bool            // its use has ended, see withdraw
	left      bool            // to a copy of this process, see startAnew
}

// inUse returns the tenure under which IDs are made.
func (st *status) inUse() tenure {
	for _, t := range st.tenures {
		if t.generator != nil && t.generator == st.generator {
			return t
		}
	}
	return tenure{}
}

// generatorOf returns the generator that makes IDs under a fence, and nil if there is none.
func (s *Sequencer) generatorOf(f *fence.Fence) *firn.Generator {
	for _, t := range s.status.Load().tenures {
		if t.fence == f {
			return t.generator
		}
	}
	return nil
}

// latest returns the tenure that was claimed last and is not stopped.
func (st *status) latest() (t tenure) {
	if i := st.state.Latest(); i >= 0 {
		t = st.tenures[i]
	}
	return t
}

// destroyed reports whether the sequencer was destroyed.
func (st *status) destroyed() bool { return st.granted.kind == attachment.Destroyed }

// update replaces the status with what change makes of it, and wakes callers that wait for a change.
func (s *Sequencer) update(change func(*status)) {
	s.updateIf(func(st *status) bool {
		change(st)
		return true
	})
}

// updateIf is update, unless change returns false.
func (s *Sequencer) updateIf(change func(*status) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.status.Load()
	next := *was
	if !change(&next) {
		return
	}
	if s.m.journal == nil {
		next.quick = next.generator
	}
	next.changed = make(chan struct{})
	s.status.Store(&next)
	close(was.changed)
	if next.state.Empty() != was.state.Empty() {
		s.m.poke() // it may detach now
	}
}

// finish notes that it makes no more IDs, or only those up to its horizon.
func (s *Sequencer) finish(why error) {
	s.update(func(st *status) {
		if st.destroyed() {
			return
		}
		st.ended, st.why = true, why
	})
}

// withdraw ends the use of a tenure at once, without waiting for the goroutine of run, and notes why. That gives it
// back, and claims nothing until it is told of a grant again: by the one that it knows it would claim the same node ID.
func (s *Sequencer) withdraw(t tenure, why error) {
	s.update(func(st *status) {
		if t.generator != nil {
			t.generator.Stop()
		}
		slot := slices.Index(st.tenures[:], t)
		if slot < 0 {
			return
		}
		st.tenures[slot].withdrawn, st.why = true, why
		if st.granted.kind == attachment.Granted {
			st.granted = grant{}
		}
		if st.generator == t.generator {
			st.generator = nil
		}
	})
	s.poke()
}

// shown returns what State returns.
func (st *status) shown() State {
	switch {
	case st.ended:
		return State{Phase: Ended}
	case st.generator != nil:
		return State{Phase: Attached, Node: st.generator.NodeID()}
	case st.destroyed():
		return State{Phase: Destroyed}
	case !st.wanted:
		return State{Phase: Detached}
	case st.granted.drained:
		return State{Phase: Drained}
	case st.granted.kind == attachment.InLine:
		return State{Phase: Waiting, Place: int(st.granted.place)}
	default:
		return State{Phase: Attaching}
	}
}

// State returns the state of the sequencer now. Ready says why there are no IDs, if there are none.
func (s *Sequencer) State() State { return s.status.Load().shown() }

// Changes yields the state of the sequencer, and then each change of it, until ctx ends. Destroyed and Ended are the
// last. A slow caller misses intermediate states, but never the latest. Any number of callers can watch at once.
func (s *Sequencer) Changes(ctx context.Context) iter.Seq[State] {
	return func(yield func(State) bool) {
		for last, first := (State{}), true; ; first = false {
			status := s.status.Load()
			state := status.shown()
			if (first || state != last) && !yield(state) || state.Phase >= Destroyed {
				return
			}
			last = state
			select {
			case <-status.changed:
			case <-ctx.Done():
				return
			}
		}
	}
}
