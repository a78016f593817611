package server

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
)

// StatusSequencer is a sequencer as JSON shows it.
type StatusSequencer struct {
	Name       string             `json:"name"`
	Definition cluster.Definition `json:"definition"`
	Created    int64              `json:"created"`  // the position at which it was
	Capacity   int64              `json:"capacity"` // how many node IDs there are
	Until      time.Time          `json:"until"`    // when the time of its layout ends
	Rate       float64            `json:"rate"`     // IDs per second and node
	Nodes      map[int64]string   `json:"nodes"`    // which member has a node ID
	Waiting    []string           `json:"waiting"`  // for one, in order
	Free       int64              `json:"free"`     // how many node IDs nobody has
	Here       Here               `json:"here"`
}

// Here is where the member that answers stands with a sequencer, see member.State.
type Here struct {
	State string `json:"state"`           // a member.Phase; or none: it was never attached
	Node  *int64 `json:"node,omitempty"`  // the node ID, while attached
	Place int    `json:"place,omitempty"` // in line, from 1, while waiting
	Why   string `json:"why,omitempty"`   // there are no IDs
}

// never is the state of a member that was never attached.
const never = "none"

// String is the state for people.
func (e Here) String() string {
	switch {
	case e.Node != nil:
		return fmt.Sprintf("%s, node ID %d", e.State, *e.Node)
	case e.Place > 0:
		return fmt.Sprintf("%s, place %d in line", e.State, e.Place)
	case e.State == never:
		return "not attached"
	default:
		return e.State
	}
}

// Until is the end of a layout's time, as far as a date can say it: the last day of 9999 at the latest.
func Until(l firn.Layout) time.Time {
	last := lastTime.AddDate(0, 0, -1)
	if end := l.Lifetime(); end.Before(last) {
		return end
	}
	return last
}

// describe says what the cluster and this member know of a sequencer.
func (s *Service) describe(name string, q cluster.Sequencer) StatusSequencer {
	d := q.Definition()
	return StatusSequencer{
		Name: name, Definition: d, Created: q.Created(), Capacity: d.Capacity(), Until: Until(d.IDLayout()), Rate: d.IDLayout().Rate(),
		Nodes: maps.Collect(q.Nodes()), Waiting: q.Waiting(), Free: q.Free(), Here: s.here(name),
	}
}

func (s *Service) here(name string) Here {
	q, ok := s.member.Sequencer(name)
	if !ok {
		return Here{State: never}
	}
	state := q.State()
	here := Here{State: state.Phase.String(), Place: state.Place}
	if state.Phase == member.Attached {
		here.Node = &state.Node
	}
	if err := q.Ready(); err != nil {
		here.Why = err.Error()
	}
	return here
}

// Here returns the member's state in a sequencer. Callers that may take IDs of it may see that: the IDs tell as
// much.
func (s *Service) Here(who *auth.Caller, name string) (Here, error) {
	if err := who.May(auth.Issue, name); err != nil {
		return Here{}, err
	}
	return s.here(name), nil
}

func (s *Service) describeAll(v cluster.Value) []StatusSequencer {
	all := []StatusSequencer{}
	for name, q := range v.Sequencers() {
		all = append(all, s.describe(name, q))
	}
	return all
}

// Sequencers describes all sequencers, by name.
func (s *Service) Sequencers(ctx context.Context, who *auth.Caller) ([]StatusSequencer, error) {
	_, end, err := s.begin(ctx, who, auth.Look, "", 1)
	if err != nil {
		return nil, err
	}
	defer end()
	v, err := s.latest()
	if err != nil {
		return nil, err
	}
	return s.describeAll(v), nil
}

// Sequencer describes one sequencer, to who takes its IDs, too.
func (s *Service) Sequencer(ctx context.Context, who *auth.Caller, name string) (StatusSequencer, error) {
	ctx, end, err := s.begin(ctx, who, auth.All, name, 1)
	if err != nil {
		return StatusSequencer{}, err
	}
	defer end()
	q, err := s.lookup(ctx, name)
	if err != nil {
		return StatusSequencer{}, err
	}
	return s.describe(name, q), nil
}

func (s *Service) lookup(ctx context.Context, name string) (cluster.Sequencer, error) {
	if err := cluster.CheckName(name); err != nil {
		return cluster.Sequencer{}, Input(err)
	}
	return s.member.Lookup(ctx, name)
}
