package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
)

// MaxOwners is how many node IDs one answer has at most.
const MaxOwners = 4096

// Owners are the owners of a sequencer's node IDs, as JSON shows them: of those that are granted to a member or
// were ever used.
type Owners struct {
	Sequencer string        `json:"sequencer"`
	UnixMS    int64         `json:"unix_ms"` // when this was read, by the clock of the server that answers
	Nodes     []OwnerStatus `json:"nodes"`   // ascending
	Next      *int64        `json:"next,omitempty"`
}

// OwnerStatus is one of Owners. A Member without Live is about to claim the node ID; an owner that is Live
// without a Member was taken out, and makes IDs up to its horizon.
type OwnerStatus struct {
	Node       int64      `json:"node"`
	Member     string     `json:"member,omitempty"`     // to whom the log grants it
	Live       bool       `json:"live"`                 // it has an owner in the store
	Owner      string     `json:"owner,omitempty"`      // whose process that is
	Since      *time.Time `json:"since,omitempty"`      // since when, by its clock
	Horizon    *time.Time `json:"horizon,omitempty"`    // up to where IDs may have been made; absent when it was never used
	HorizonMS  *int64     `json:"horizon_ms,omitempty"` // the same, in Unix milliseconds
	Unreadable bool       `json:"unreadable,omitempty"` // there is a horizon, which can't be read
}

// Owners returns the owners and horizons of a sequencer's node IDs, beginning at from. The limit is 1 to
// MaxOwners.
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

// statuses are those of the node IDs from one on that a member has by the log or that are known to the store.
func statuses(q cluster.Sequencer, owners []member.Owner, from int64) []OwnerStatus {
	known := map[int64]OwnerStatus{}
	for node, holder := range q.Nodes() {
		known[node] = OwnerStatus{Node: node, Member: holder}
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
