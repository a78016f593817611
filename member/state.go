package member

import (
	"context"
	"fmt"
	"iter"
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

// State returns where the sequencer stands. Ready says why there are no IDs, if there are none.
func (s *Sequencer) State() State {
	state, _ := s.seen()
	return state
}

// Changes yields where the sequencer stands, and then every change of that, until ctx ends; a sequencer that is
// Destroyed or Ended changes no more, and that is the last. Who takes long misses what is over by then, but not
// the latest. Any number can look on at once.
func (s *Sequencer) Changes(ctx context.Context) iter.Seq[State] {
	return func(yield func(State) bool) {
		for last, first := (State{}), true; ; first = false {
			state, changed := s.seen()
			if (first || state != last) && !yield(state) || state.Phase >= Destroyed {
				return
			}
			last = state
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// seen is the state that is shown, and a channel that is closed when another is.
func (s *Sequencer) seen() (State, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.changed
}

// show makes the state the one that follows from how things stand.
func (s *Sequencer) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showLocked()
}

func (s *Sequencer) showLocked() {
	state := State{Phase: Attaching}
	switch h := s.current.Load(); {
	case s.ended:
		state.Phase = Ended
	case h != nil:
		state = State{Phase: Attached, Node: h.fence.Node()}
	case s.granted.kind == destroyed:
		state.Phase = Destroyed
	case !s.wanted:
		state.Phase = Detached
	case s.granted.kind == inLine:
		state = State{Phase: Waiting, Place: int(s.granted.place)}
	}
	if state != s.state {
		s.state = state
		s.nudgeLocked()
	}
}

// nudgeLocked wakes who waits for something of the sequencer.
func (s *Sequencer) nudgeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}
