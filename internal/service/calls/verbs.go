package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// Expelled is the answer to Expel.
type Expelled struct {
	Member string `json:"member"`          // the ID of the member that was expelled
	Owner  string `json:"owner,omitempty"` // the name of its node; empty: unknown
}

// Expel removes a member or joiner from the cluster. Its process ends, with the machine of the quorum that it may be,
// and stays out until it is started again. See Meant for how a caller names it. A MajorityError is returned if the
// quorum then had no majority, unless that may end.
func (s *Service) Expel(ctx context.Context, who *auth.Caller, name string,
	endTheMajority bool,
) (_ Expelled, err error) {
	about := Audit{Call: "expel", Member: name}
	defer func(ctx context.Context) { s.finished(ctx, who, about, err) }(ctx)
	ctx, end, err := s.begin(askedBy(ctx, who), who, auth.Admin, "", 1)
	if err != nil {
		return Expelled{}, err
	}
	defer end()
	c, err := s.meant(ctx, name, true)
	if err != nil {
		return Expelled{}, err
	}
	about.Member = c.ID
	if !endTheMajority {
		if err := s.keepsMajority(ctx, c); err != nil {
			return Expelled{}, err
		}
	}
	if err := s.member.Expel(ctx, c.ID); err != nil {
		return Expelled{}, err
	}
	return Expelled{c.ID, c.Owner}, nil
}

// Forgotten is the answer to Forget.
type Forgotten struct {
	Name string `json:"name"`
}

// Forget removes what is kept about a node that is gone, by its name, so that it is no problem any more.
func (s *Service) Forget(ctx context.Context, who *auth.Caller, name string) (_ Forgotten, err error) {
	about := Audit{Call: "forget", Member: name}
	defer func(ctx context.Context) { s.finished(ctx, who, about, err) }(ctx)
	ctx, end, err := s.begin(ctx, who, auth.Admin, "", 1)
	if err != nil {
		return Forgotten{}, err
	}
	defer end()
	switch err := s.member.Forget(ctx, name); {
	case errors.Is(err, peer.ErrAlive):
		return Forgotten{}, Input(fmt.Errorf("%.100q is alive; expel it, or stop it, before it is forgotten", name))
	case errors.Is(err, peer.ErrNoNode):
		return Forgotten{}, Input(fmt.Errorf("no node is %.100q; want one of nodes in the status of the cluster", name))
	case err != nil:
		return Forgotten{}, err
	}
	if nodes, err := s.member.Nodes(ctx); err == nil {
		s.sights.sawNodes(nodes)
	}
	return Forgotten{name}, nil
}

// Skipped is the answer to Skip.
type Skipped struct {
	Position int64 `json:"position"`
}

// Skip has all members pass over an entry of the log that this node can't read. An error is returned when it has not
// stopped there, and when a member lives that may have applied the entry.
func (s *Service) Skip(ctx context.Context, who *auth.Caller, position int64) (_ Skipped, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "skip", "", err) }(ctx)
	ctx, end, err := s.begin(ctx, who, auth.Admin, "", 1)
	if err != nil {
		return Skipped{}, err
	}
	defer end()
	return Skipped{position}, s.member.Skip(ctx, position)
}

// Placed is the answer to DrainMember, UndrainMember and MoveNode: the sequencer then, and the member that it is about.
type Placed struct {
	StatusSequencer
	Member string `json:"member"`
	Owner  string `json:"owner,omitempty"` // the name of its node; empty: unknown
}

// DrainMember detaches a member from a sequencer, and keeps it from attaching again until UndrainMember.
func (s *Service) DrainMember(ctx context.Context, who *auth.Caller, sequencer, name string) (Placed, error) {
	return s.place(ctx, who, "drain", sequencer, name, s.member.Drain)
}

// UndrainMember ends a DrainMember.
func (s *Service) UndrainMember(ctx context.Context, who *auth.Caller, sequencer, name string) (Placed, error) {
	return s.place(ctx, who, "undrain", sequencer, name, s.member.Undrain)
}

// MoveNode gives a node ID of a sequencer to a member that is attached to it.
func (s *Service) MoveNode(ctx context.Context, who *auth.Caller, sequencer string, node int64,
	to string,
) (Placed, error) {
	return s.place(ctx, who, "move", sequencer, to, func(ctx context.Context, sequencer, id string) error {
		if node < 0 {
			return Input(fmt.Errorf("the node ID %d; want 0 or more", node))
		}
		return s.member.Move(ctx, sequencer, node, id)
	})
}

// place changes what a member has of a sequencer. See Meant for how a caller names it.
func (s *Service) place(ctx context.Context, who *auth.Caller, call, sequencer, name string,
	do func(ctx context.Context, sequencer, id string) error,
) (_ Placed, err error) {
	about := Audit{Call: call, Sequencer: sequencer, Member: name}
	defer func(ctx context.Context) { s.finished(ctx, who, about, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Admin, sequencer)
	if err != nil {
		return Placed{}, err
	}
	defer end()
	c, err := s.meant(ctx, name, false)
	if err != nil {
		return Placed{}, err
	}
	about.Member = c.ID
	if err := do(ctx, sequencer, c.ID); err != nil {
		return Placed{}, err
	}
	q, err := s.known(sequencer)
	return Placed{q, c.ID, c.Owner}, err
}

// Allocate changes how many of the members that want a node ID of a sequencer get one.
func (s *Service) Allocate(ctx context.Context, who *auth.Caller, sequencer string,
	a cluster.Allocation,
) (_ StatusSequencer, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "allocate", sequencer, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Admin, sequencer)
	if err != nil {
		return StatusSequencer{}, err
	}
	defer end()
	if err := a.Validate(); err != nil {
		return StatusSequencer{}, Input(err)
	}
	if err := s.member.Allocate(ctx, sequencer, a); err != nil {
		return StatusSequencer{}, err
	}
	return s.known(sequencer)
}

// known describes a sequencer that a call has just changed.
func (s *Service) known(sequencer string) (StatusSequencer, error) {
	q, ok := s.member.Value().Sequencer(sequencer)
	if !ok {
		return StatusSequencer{}, fmt.Errorf("%w: %q; it was destroyed a moment ago", peer.ErrNoSequencer, sequencer)
	}
	return s.describe(sequencer, q), nil
}

// Policy says which share of the members serves which sequencer.
type Policy struct {
	Shares   []cluster.Share     `json:"shares"`   // empty: there is no policy
	Assigned map[string][]string `json:"assigned"` // the members that serve each sequencer of the policy
}

// Policy returns the policy in force.
func (s *Service) Policy(ctx context.Context, who *auth.Caller) (Policy, error) {
	_, end, err := s.begin(ctx, who, auth.Look, "", 1)
	if err != nil {
		return Policy{}, err
	}
	defer end()
	v, err := s.latest()
	if err != nil {
		return Policy{}, err
	}
	return policyOf(v), nil
}

// SetPolicy replaces the policy. Without shares there is no policy.
func (s *Service) SetPolicy(ctx context.Context, who *auth.Caller, shares []cluster.Share) (_ Policy, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "set policy", "", err) }(ctx)
	ctx, end, err := s.begin(askedBy(ctx, who), who, auth.Admin, "", 1)
	if err != nil {
		return Policy{}, err
	}
	defer end()
	if _, err := cluster.Encode(cluster.SetPolicy{Shares: shares}, time.Time{}); err != nil {
		return Policy{}, Input(err)
	}
	if err := s.member.SetPolicy(ctx, shares); err != nil {
		return Policy{}, err
	}
	return policyOf(s.member.Value()), nil
}

func policyOf(v cluster.Value) Policy {
	p := Policy{Shares: append([]cluster.Share{}, v.Policy()...), Assigned: map[string][]string{}}
	for _, share := range p.Shares {
		p.Assigned[share.Sequencer] = []string{}
	}
	for _, id := range v.Members() {
		if name, ok := v.Assigned(id); ok {
			p.Assigned[name] = append(p.Assigned[name], id)
		}
	}
	return p
}
