package grpcapi

import (
	"context"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/member"
)

// LimitCalls allows so many calls at a time. It is to be called before there are any.
func (s *Server) LimitCalls(calls int) { s.limit(calls) }

// MaxBatch is how many IDs a batch can have.
const MaxBatch = maxBatch

// TakeWithin is how long an answer may go untaken.
const TakeWithin = takeWithin

// Nowhere is a cluster without sequencers, which can't have any.
type Nowhere struct{ server.Cluster }

func (Nowhere) ID() string                                 { return "" }
func (Nowhere) Value() (v cluster.Value)                   { return v }
func (Nowhere) Sequencer(string) (*member.Sequencer, bool) { return nil, false }
func (Nowhere) Destroy(context.Context, string) error      { return member.ErrNoSequencer }
func (Nowhere) Attach(context.Context, string) (*member.Sequencer, error) {
	return nil, member.ErrNoSequencer
}

func (f Nowhere) AttachOnDemand(ctx context.Context, name string) (*member.Sequencer, error) {
	return f.Attach(ctx, name)
}

func (Nowhere) Lookup(context.Context, string) (q cluster.Sequencer, err error) {
	return q, member.ErrNoSequencer
}

func (Nowhere) Create(context.Context, string, cluster.Definition) (bool, error) { return true, nil }
