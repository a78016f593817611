package grpcapi

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/member"
)

// giver is the service Firn.
type giver struct {
	firnv1.UnimplementedFirnServer
	*Server
}

// named is the name of a sequencer; empty: of the default one.
func named(name string) string {
	if name == "" {
		return member.DefaultSequencer
	}
	return name
}

func (g *giver) Next(ctx context.Context, r *firnv1.NextRequest) (*firnv1.NextResponse, error) {
	id, err := g.service.Next(ctx, callerOf(ctx), named(r.GetSequencer()))
	if err != nil {
		return nil, err
	}
	return &firnv1.NextResponse{Id: int64(id)}, nil
}

func (g *giver) NextBatch(ctx context.Context, r *firnv1.NextBatchRequest) (*firnv1.NextBatchResponse, error) {
	if r.GetCount() > maxBatch { // gRPC keeps the whole answer until the caller reads it
		return nil, server.Input(fmt.Errorf("count is %d; want a number from 1 to %d; for more use Stream", r.GetCount(), maxBatch))
	}
	var answer firnv1.NextBatchResponse
	from := connOf(ctx)
	err := g.service.Many(ctx, callerOf(ctx), from.at, named(r.GetSequencer()), int(r.GetCount()), func(ids *server.Batch) error {
		g.keep(from, &answer, encode(ids), ids.Keep(), nil)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &answer, nil
}

// encode returns a NextBatchResponse or a StreamResponse with IDs as protobuf has it: field 1, packed. To fill the messages
// first, and to have package proto encode them, would take three times as long.
func encode(ids *server.Batch) *[]byte {
	const field = 1
	size := ids.Len() * 8
	b := buffers.Get(max(protowire.SizeTag(field)+protowire.SizeBytes(size), leastBuffer))
	*b = protowire.AppendTag((*b)[:0], field, protowire.BytesType)
	*b = protowire.AppendVarint(*b, uint64(size))
	*b = ids.AppendLittleEndian(*b)
	return b
}

func (g *giver) Decode(ctx context.Context, r *firnv1.DecodeRequest) (*firnv1.DecodeResponse, error) {
	if r.GetId() < 0 {
		return nil, server.Input(fmt.Errorf("the id %d is negative; want 0 to %d", r.GetId(), firn.MaxID))
	}
	p, err := g.service.Decode(ctx, callerOf(ctx), named(r.GetSequencer()), firn.ID(r.GetId()))
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339Nano, p.Time)
	if err != nil {
		return nil, err
	}
	return &firnv1.DecodeResponse{
		Id: p.ID, Time: timestamppb.New(at), Tick: p.Tick,
		Datacenter: p.Datacenter, Node: p.Node, NodeId: p.NodeID, Sequence: p.Sequence,
	}, nil
}
