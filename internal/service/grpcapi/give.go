package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/idtext"
)

// giver is the service Firn.
type giver struct {
	firnv1.UnimplementedFirnServer
	*Server
}

// named is the name of a sequencer; empty: of the default one.
func named(name string) string {
	if name == "" {
		return peer.DefaultSequencer
	}
	return name
}

// madeBy says in an answer which member has made its IDs, as httpapi.MadeBy does; empty: this node's.
func madeBy(ctx context.Context, member string) {
	if member != "" {
		_ = grpc.SetHeader(ctx, metadata.Pairs("firn-made-by", member)) // an error says that the header was sent before
	}
}

func (g *giver) Next(ctx context.Context, r *firnv1.NextRequest) (*firnv1.NextResponse, error) {
	after, err := readAfter(r)
	if err != nil {
		return nil, err
	}
	if r.GetForm() != firnv1.Form_FORM_UNSPECIFIED || after != 0 {
		return g.nextAs(ctx, r, after)
	}
	id, by, err := g.service.Next(ctx, callerOf(ctx), named(r.GetSequencer()))
	if err != nil {
		return nil, err
	}
	madeBy(ctx, by)
	return &firnv1.NextResponse{Id: int64(id)}, nil
}

// readAfter reads the ID that those of an answer are to exceed; zero: none.
func readAfter(r interface{ GetAfter() int64 }) (firn.ID, error) {
	if after := r.GetAfter(); after < 0 {
		return 0, calls.Input(fmt.Errorf("after is %d; want an ID from 1 to %d, or 0 for none", after, firn.MaxID))
	}
	return firn.ID(r.GetAfter()), nil
}

// nextAs gives an ID that exceeds another one, or with its text.
func (g *giver) nextAs(ctx context.Context, r *firnv1.NextRequest, after firn.ID) (*firnv1.NextResponse, error) {
	name := named(r.GetSequencer())
	texts, err := g.texts(ctx, callerOf(ctx), name, r.GetForm())
	if err != nil {
		return nil, err
	}
	var answer firnv1.NextResponse
	err = g.service.ManyAfter(ctx, callerOf(ctx), connOf(ctx).at, name, after, 1, func(ids *calls.Batch) error {
		madeBy(ctx, ids.By())
		if texts == nil {
			answer.Id = int64(ids.Last())
			return nil
		}
		write, err := texts.Of(ids)
		if err != nil {
			return err
		}
		text, err := write(nil, ids.Last())
		if answer.Text = string(text); !texts.Secret {
			answer.Id = int64(ids.Last())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &answer, nil
}

// texts returns what writes new IDs of a sequencer in a form; nil: none is asked for.
func (g *giver) texts(ctx context.Context, who *auth.Caller, name string, f firnv1.Form) (*calls.Texts, error) {
	form, err := readForm(f)
	if err != nil || form == nil {
		return nil, err
	}
	texts, err := g.service.Texts(ctx, who, name, *form)
	return &texts, err
}

// readForm reads a form; nil: it is not specified.
func readForm(f firnv1.Form) (*idtext.Form, error) {
	if f == firnv1.Form_FORM_UNSPECIFIED {
		return nil, nil
	}
	name, ok := strings.CutPrefix(f.String(), "FORM_")
	if !ok {
		return nil, calls.Input(fmt.Errorf("form is %d; want one of %d to %d", f, firnv1.Form_FORM_DECIMAL,
			firnv1.Form_FORM_PREFIXED_CHECKED))
	}
	form, err := idtext.ParseForm(strings.ReplaceAll(strings.ToLower(name), "_", "-"))
	return &form, err
}

// mostOf is how many IDs a message may have: fewer with texts, which are longer.
func mostOf(f firnv1.Form) int32 {
	if f != firnv1.Form_FORM_UNSPECIFIED {
		return maxTexts
	}
	return maxBatch
}

func (g *giver) NextBatch(ctx context.Context, r *firnv1.NextBatchRequest) (*firnv1.NextBatchResponse, error) {
	if most := mostOf(r.GetForm()); r.GetCount() > most { // gRPC keeps the whole answer until the caller reads it
		return nil, calls.Input(fmt.Errorf("count is %d; want a number from 1 to %d; for more use Stream",
			r.GetCount(), most))
	}
	name := named(r.GetSequencer())
	after, err := readAfter(r)
	if err != nil {
		return nil, err
	}
	texts, err := g.texts(ctx, callerOf(ctx), name, r.GetForm())
	if err != nil {
		return nil, err
	}
	var answer firnv1.NextBatchResponse
	from := connOf(ctx)
	err = g.service.ManyAfter(ctx, callerOf(ctx), from.at, name, after, int(r.GetCount()),
		func(ids *calls.Batch) error {
			madeBy(ctx, ids.By())
			encoded, err := encode(ids, texts)
			if err != nil {
				return err
			}
			g.keep(from, &answer, encoded, ids.Keep(), nil)
			return nil
		})
	if err != nil {
		return nil, err
	}
	return &answer, nil
}

// encode returns a NextBatchResponse or a StreamResponse with IDs as protobuf has it: field 1, packed, and their texts,
// if some are wanted: field 2. To fill the messages first, and to have package proto encode them, would take three
// times as long.
func encode(ids *calls.Batch, texts *calls.Texts) (*[]byte, error) {
	const field = 1
	size := ids.Len() * 8
	whole := protowire.SizeTag(field) + protowire.SizeBytes(size)
	if texts != nil {
		whole += ids.Len() * longestText
	}
	b := buffers.Get(max(whole, leastBuffer))
	*b = (*b)[:0]
	if texts == nil || !texts.Secret {
		*b = protowire.AppendTag(*b, field, protowire.BytesType)
		*b = protowire.AppendVarint(*b, uint64(size))
		*b = ids.AppendLittleEndian(*b)
	}
	if texts == nil {
		return b, nil
	}
	err := appendTexts(b, ids, texts)
	return b, err
}

// longestText is the size of the longest text of an ID in a message: a UUID, its tag and its length.
const longestText = 38

func appendTexts(to *[]byte, ids *calls.Batch, texts *calls.Texts) error {
	const field = 2
	write, err := texts.Of(ids)
	if err != nil {
		return err
	}
	var text []byte
	for some := range ids.All() {
		for _, id := range some {
			if text, err = write(text[:0], id); err != nil {
				return err
			}
			*to = protowire.AppendBytes(protowire.AppendTag(*to, field, protowire.BytesType), text)
		}
	}
	return nil
}

func (g *giver) Decode(ctx context.Context, r *firnv1.DecodeRequest) (*firnv1.DecodeResponse, error) {
	d, err := readDecoding(r)
	if err != nil {
		return nil, calls.Input(err)
	}
	p, err := g.service.Decode(ctx, callerOf(ctx), named(r.GetSequencer()), d)
	if err != nil {
		return nil, err
	}
	if p.Kind == cluster.Counter {
		return &firnv1.DecodeResponse{Id: p.ID, Text: p.Text, Date: p.Date, Number: p.Number}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, p.Time)
	if err != nil {
		return nil, err
	}
	return &firnv1.DecodeResponse{
		Id: p.ID, Time: timestamppb.New(at), Tick: p.Tick,
		Datacenter: p.Datacenter, Node: p.Node, NodeId: p.NodeID, Sequence: p.Sequence, Text: p.Text,
		NeverHeld: p.NeverHeld,
	}, nil
}

func readDecoding(r *firnv1.DecodeRequest) (d calls.Decoding, err error) {
	if d.Form, err = readForm(r.GetForm()); err != nil {
		return d, err
	}
	if d.As, err = readForm(r.GetAs()); err != nil {
		return d, err
	}
	switch d.Text = r.GetText(); {
	case d.Text != "" && r.GetId() != 0:
		return d, fmt.Errorf("both id, %d, and text, %.40q, are given; want one of them", r.GetId(), d.Text)
	case d.Text != "":
		return d, nil
	case d.As != nil:
		return d, errors.New("as is given, and text is not; want both")
	case r.GetId() < 0:
		return d, fmt.Errorf("the id %d is negative; want 0 to %d", r.GetId(), firn.MaxID)
	}
	d.Text, d.As = firn.ID(r.GetId()).String(), new(idtext.Decimal)
	return d, nil
}
