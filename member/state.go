package member

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/attachment"
	"github.com/firn-id/firn/internal/fence"
)

// Phase is where a sequencer stands on one member.
type Phase uint8

// The phases.
const (
	Attaching Phase = iota // it is about to get a node ID, or waits for the clock until it may use the one it has
	Attached               // it has a node ID, and makes IDs
	Waiting                // all node IDs are taken; it stands in line
	Detached               // it was told to let go
	Destroyed              // for ever
	Ended                  // the member has left, or can't go on; also for ever
)

func (p Phase) String() string {
	return [...]string{"attaching", "attached", "waiting", "detached", "destroyed", "ended"}[p]
}

// State is where a sequencer stands on one member. It is comparable.
type State struct {
	Phase Phase
	Node  int64 // the node ID in use, while Attached; else 0
	Place int   // in line, from 1, while Waiting; else 0
}

// String is such as "attached, node ID 7".
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

// status is what everybody sees of a sequencer. It does not change: another takes its place.
type status struct {
	inUse     tenure          // under which IDs are made; without a generator: there are none
	extended  bool            // its horizon is extended
	latest    tenure          // the one that was claimed last; without a fence: there is none
	withdrawn *firn.Generator // of the tenure whose use was ended last by withdraw
	used      time.Time       // the end of the last tick that a generator had used when it was stopped
	why       error           // why there are no IDs, or none from the horizon on

	wanted  bool  // Attach was the last that was asked for, not Detach
	granted grant // what the cluster's value gives
	empty   bool  // it has no node ID, and claims none
	settled bool  // it is clear how the attempt at a node ID ended that Attach began
	ended   bool  // the member has left, or can't go on

	changed chan struct{} // closed when another status has taken the place of this one
}

// update puts a status in the place of the current one, if change says so, and wakes those who wait for that.
func (s *Sequencer) update(change func(*status) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.status.Load()
	changed := next.changed
	next.changed = make(chan struct{})
	if change(&next) {
		s.status.Store(&next)
		close(changed)
	}
}

// finish notes that it makes no IDs any more, or will not for long.
func (s *Sequencer) finish(why error) {
	s.update(func(st *status) bool {
		if st.granted.kind == attachment.Destroyed {
			return false
		}
		st.why, st.ended = why, true
		return true
	})
}

// withdraw ends the use of a tenure at once, whatever the sequencer's goroutine is busy with.
func (s *Sequencer) withdraw(t tenure) {
	s.update(func(st *status) bool {
		t.generator.Stop()
		st.withdrawn = t.generator
		if st.inUse == t {
			st.inUse = tenure{}
		}
		return true
	})
	s.poke()
}

// before is the fence of the latest tenure, whose horizon does not count against this member's clock; nil: there is none in
// the store.
func (s *Sequencer) before() *fence.Fence {
	if t := s.status.Load().latest; !s.m.stale(t) {
		return t.fence
	}
	return nil
}

func (st *status) state() State {
	switch {
	case st.ended:
		return State{Phase: Ended}
	case st.inUse.generator != nil:
		return State{Phase: Attached, Node: st.inUse.fence.Node()}
	case st.granted.kind == attachment.Destroyed:
		return State{Phase: Destroyed}
	case !st.wanted:
		return State{Phase: Detached}
	case st.granted.kind == attachment.InLine:
		return State{Phase: Waiting, Place: int(st.granted.place)}
	default:
		return State{Phase: Attaching}
	}
}

// State returns where the sequencer stands. Ready says why there are no IDs, if there are none.
func (s *Sequencer) State() State {
	return s.status.Load().state()
}

// Changes yields where the sequencer stands, and then every change of that, until ctx ends; a sequencer that is
// Destroyed or Ended changes no more, and that is the last. Who takes long misses what is over by then, but not
// the latest. Any number can look on at once.
func (s *Sequencer) Changes(ctx context.Context) iter.Seq[State] {
	return func(yield func(State) bool) {
		for last, first := (State{}), true; ; first = false {
			status := s.status.Load()
			state := status.state()
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
