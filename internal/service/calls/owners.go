package calls

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// MaxOwners is the most node IDs in one answer.
const MaxOwners = 4096

// Owners has the owners of a sequencer's node IDs, as JSON: of those that are granted to a member or were ever
// used, or are reserved.
type Owners struct {
	Sequencer string        `json:"sequencer"`
	UnixMS    int64         `json:"unix_ms"` // when this was read, by the answering server's clock
	Nodes     []OwnerStatus `json:"nodes"`   // ascending
	Next      *int64        `json:"next,omitempty"`
}

// OwnerStatus is the state of one node ID. A Member that is not Live is about to claim it; an owner that is Live
// without a Member is a database, as its name says, or was revoked, and makes IDs up to its horizon.
type OwnerStatus struct {
	Node       int64      `json:"node"`
	Member     string     `json:"member,omitempty"`       // the member to which the log grants it
	Live       bool       `json:"live"`                   // the store has an owner
	Owner      string     `json:"owner,omitempty"`        // the owner's process
	For        string     `json:"reserved_for,omitempty"` // what it is reserved for
	Since      *time.Time `json:"since,omitempty"`        // since when, by the owner's clock
	Horizon    *time.Time `json:"horizon,omitempty"`      // its IDs are below this; absent: never used
	HorizonMS  *int64     `json:"horizon_ms,omitempty"`   // the same, in Unix milliseconds
	Unreadable bool       `json:"unreadable,omitempty"`   // the horizon can't be read
}

// Owners returns the owners and horizons of at most limit node IDs of a sequencer, 1 to MaxOwners, beginning at
// from.
func (s *Service) Owners(ctx context.Context, who *auth.Caller, name string, from int64, limit int) (Owners, error) {
	if limit < 1 || limit > MaxOwners {
		return Owners{}, Input(fmt.Errorf("limit is %d; want a number from 1 to %d", limit, MaxOwners))
	}
	ctx, end, err := s.administer(ctx, who, auth.Look, name)
	if err != nil {
		return Owners{}, err
	}
	defer end()
	q, err := s.lookup(ctx, name)
	if err != nil {
		return Owners{}, err
	}
	owners, err := s.member.Owners(ctx, name)
	if err != nil {
		return Owners{}, err
	}
	n := Owners{Sequencer: name, UnixMS: time.Now().UnixMilli(), Nodes: statuses(q, owners, from)}
	if len(n.Nodes) > limit {
		n.Next = &n.Nodes[limit].Node
		n.Nodes = n.Nodes[:limit]
	}
	return n, nil
}

// statuses returns the status of each node ID, beginning at from, that the log grants to a member or that the
// store knows.
func statuses(q cluster.Sequencer, owners []peer.Owner, from int64) []OwnerStatus {
	known := map[int64]OwnerStatus{}
	for node, holder := range q.Nodes() {
		known[node] = OwnerStatus{Node: node, Member: holder}
	}
	for r := range q.Reservations() {
		for _, node := range r.Nodes {
			known[node] = OwnerStatus{Node: node, For: r.For}
		}
	}
	for _, o := range owners {
		n := known[o.Node]
		n.Node, n.Live, n.Owner = o.Node, o.Live, o.Name
		if !o.Since.IsZero() {
			since := o.Since.UTC()
			n.Since = &since
		}
		switch horizon := o.Horizon.UTC(); {
		case horizon.IsZero():
		case !horizon.Before(lastTime):
			n.Unreadable = true
		default:
			ms := horizon.UnixMilli()
			n.Horizon, n.HorizonMS = &horizon, &ms
		}
		known[o.Node] = n
	}
	maps.DeleteFunc(known, func(node int64, _ OwnerStatus) bool { return node < from })
	all := slices.AppendSeq([]OwnerStatus{}, maps.Values(known))
	slices.SortFunc(all, func(a, b OwnerStatus) int { return cmp.Compare(a.Node, b.Node) })
	return all
}
