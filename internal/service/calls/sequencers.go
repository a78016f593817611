package calls

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// StatusSequencer is the state of a sequencer, as JSON. A counter has no node IDs, and so none of what tells of them.
type StatusSequencer struct {
	Name       string             `json:"name"`
	Definition cluster.Definition `json:"definition"`
	Created    int64              `json:"created"`           // the position of the entry that created it
	Capacity   int64              `json:"capacity,omitzero"` // number of node IDs in the region
	Region     cluster.Region     `json:"region,omitzero"`   // that it was created in
	Until      time.Time          `json:"until,omitzero"`    // when the time of its layout ends
	Rate       float64            `json:"rate,omitzero"`     // IDs per second and node
	Nodes      map[int64]string   `json:"nodes,omitzero"`    // the member that has each node ID
	Waiting    []string           `json:"waiting,omitzero"`  // members waiting for a node ID, in order
	Free       *int64             `json:"free,omitempty"`    // number of node IDs that a member can get
	// in force; that of the definition is what it was created with
	Allocation *cluster.Allocation `json:"allocation,omitempty"`
	// percent of the members by the policy, 0: the rest; nil: the policy does not name it
	Share   *int64   `json:"share,omitempty"`
	Drained []string `json:"drained,omitzero"` // members that may not attach
	// node IDs that no member gets, in the order of their purposes
	Reservations []Reservation `json:"reservations,omitempty"`
	// IDs per second that callers got lately, of all nodes whose pulse is fresh; nil: unknown
	Given *float64 `json:"given_rate,omitempty"`
	// how far a counter is; nil: it is none, or was not read
	Count *Count `json:"count,omitempty"`
	Here  Here   `json:"here"`

	Unfenced []Unfenced `json:"-"`

	Lacking []string `json:"-"` // those of Waiting for which none is free, see cluster.Value.Lacking
}

// NodeIDs returns how many node IDs members have or can have, and how many of these are free: none of a counter.
func (s StatusSequencer) NodeIDs() (all, free int64) {
	if s.Free == nil {
		return 0, 0
	}
	return *s.Free + int64(len(s.Nodes)), *s.Free
}

// Here is the answering member's state in a sequencer, see peer.State.
type Here struct {
	// a peer.Phase, or "none": it was never attached; in a counter counting, lost, exhausted, or none: it gave none yet
	State string `json:"state"`
	Node  *int64 `json:"node,omitempty"`  // the node ID in use, while attached
	Place int    `json:"place,omitempty"` // in the waiting line, from 1
	Why   string `json:"why,omitempty"`   // why it makes no IDs
	// the greatest number of a counter that this member knows to be reserved, by anybody, given or not; 0: none
	Reserved firn.ID `json:"reserved,omitempty"`
}

// never is the state of a member that was never attached.
const never = "none"

// String returns the state for people.
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

// Until returns the end of a layout's time, the last day of 9999 at the latest.
func Until(l firn.Layout) time.Time {
	last := lastTime.AddDate(0, 0, -1)
	if end := l.Lifetime(); end.Before(last) {
		return end
	}
	return last
}

// describe returns what the cluster and this member know about a sequencer.
func (s *Service) describe(name string, q cluster.Sequencer) StatusSequencer {
	described := describe(sharesOf(s.member.Value()), name, q)
	described.Here = s.here(name)
	return described
}

// sharesOf returns the percentages of a policy, by sequencer.
func sharesOf(v cluster.Value) map[string]int64 {
	shares := map[string]int64{}
	for _, share := range v.Policy() {
		shares[share.Sequencer] = share.Percent
	}
	return shares
}

// describe returns what the cluster knows about a sequencer under a policy with these shares.
func describe(shares map[string]int64, name string, q cluster.Sequencer) StatusSequencer {
	d := q.Definition()
	described := StatusSequencer{
		Name: name, Definition: d, Created: q.Created(), Region: q.Region(), Here: Here{State: never},
	}
	if d.Kind != cluster.Counter {
		described.Until = Until(d.IDLayout())
	}
	if d.Claimed() {
		return described
	}
	free, allocation := q.Free(), q.Allocation()
	described.Capacity, described.Free, described.Allocation = q.NodeIDs().Size(), &free, &allocation
	described.Rate = d.IDLayout().Rate()
	described.Nodes, described.Waiting = maps.Collect(q.Nodes()), q.Waiting()
	described.Drained = slices.AppendSeq([]string{}, q.DrainedMembers())
	for r := range q.Reservations() {
		described.Reservations = append(described.Reservations, reservationOf(r))
	}
	if share, ok := shares[name]; ok {
		described.Share = &share
	}
	return described
}

func (s *Service) here(name string) Here {
	if c, ok := s.member.Counter(name); ok {
		return hereCounting(c)
	}
	q, ok := s.member.Sequencer(name)
	if !ok {
		return Here{State: never}
	}
	state := q.State()
	here := Here{State: state.Phase.String(), Place: state.Place}
	if state.Phase == peer.Attached {
		here.Node = &state.Node
	}
	if err := q.Ready(); err != nil {
		here.Why = err.Error()
	}
	return here
}

// Here returns the member's state in a sequencer. Callers that may take its IDs may see it: the IDs tell as much.
func (s *Service) Here(who *auth.Caller, name string) (Here, error) {
	if err := who.May(auth.Issue, name); err != nil {
		return Here{}, err
	}
	return s.here(name), nil
}

func (s *Service) describeAll(v cluster.Value) []StatusSequencer {
	all := describeAll(v)
	for i, q := range all {
		all[i].Here = s.here(q.Name)
	}
	return all
}

// describeAll describes all sequencers, by name, for one that is no member.
func describeAll(v cluster.Value) []StatusSequencer {
	all, shares := []StatusSequencer{}, sharesOf(v)
	for name, q := range v.Sequencers() {
		described := describe(shares, name, q)
		described.Lacking = v.Lacking(name)
		all = append(all, described)
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

// Sequencer describes one sequencer, also to callers that may only take its IDs.
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
	if q.Definition().Claimed() {
		return s.counted(ctx, name)
	}
	return s.describe(name, q), nil
}

func (s *Service) lookup(ctx context.Context, name string) (cluster.Sequencer, error) {
	if err := cluster.CheckName(name); err != nil {
		return cluster.Sequencer{}, Input(err)
	}
	return s.member.Lookup(ctx, name)
}
