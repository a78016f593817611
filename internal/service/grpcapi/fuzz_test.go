package grpcapi

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
)

// source gives the same IDs again and again.
type source struct{}

func (source) Next(context.Context) (firn.ID, error) { return 1, nil }
func (source) FillAfter(_ context.Context, _ firn.ID, _ time.Duration, ids []firn.ID) error {
	clear(ids)
	return nil
}
func (source) Ready() error                   { return nil }
func (source) Definition() cluster.Definition { return cluster.Define(firn.Default) }

// taker takes a few batches.
type taker struct {
	grpc.ServerStream
	ctx  context.Context
	left int
}

func (s *taker) Context() context.Context     { return s.ctx }
func (s *taker) SetTrailer(metadata.MD)       {}
func (s *taker) SetHeader(metadata.MD) error  { return nil }
func (s *taker) SendHeader(metadata.MD) error { return nil }
func (s *taker) SendMsg(m any) error {
	if s.left--; s.left < 0 {
		return errors.New("enough")
	}
	_, err := proto.Marshal(m.(proto.Message))
	return err
}

// Whatever a request says, its answer is one, or tells what is wrong with it: never a bug.
func FuzzRequests(f *testing.F) {
	definition := definitionMessage(cluster.Define(firn.Twitter))
	for _, m := range []proto.Message{
		&firnv1.NextRequest{Sequencer: "orders"}, &firnv1.NextBatchRequest{Count: 3},
		&firnv1.StreamRequest{BatchSize: 2, Total: 5},
		&firnv1.DecodeRequest{Id: 1 << 40}, &firnv1.CreateSequencerRequest{Name: "orders", Definition: definition},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	s := New(calls.New(servertest.Join(f), calls.Options{Default: source{}}), &auth.Policy{Trusted: true})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.Cleanup(func() { _ = s.Shutdown(ctx) }) // at once
	give, admin := &giver{Server: s}, &admin{service: s.service}
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(answer any, err error) {
			t.Helper()
			switch status.Code(err) {
			case codes.Internal, codes.Unknown:
				t.Errorf("%q: %v", data, err)
			case codes.OK:
				if m, ok := answer.(proto.Message); ok {
					if _, err := proto.Marshal(m); err != nil {
						t.Errorf("%q: the answer: %v", data, err)
					}
				}
			}
		}
		call := func(request proto.Message, next grpc.UnaryHandler) {
			t.Helper()
			if proto.Unmarshal(data, request) == nil {
				check(s.unary(t.Context(), request, &grpc.UnaryServerInfo{FullMethod: "/firn.v1/Fuzz"}, next))
			}
		}
		call(&firnv1.NextRequest{}, unary(give.Next))
		call(&firnv1.NextBatchRequest{}, unary(give.NextBatch))
		call(&firnv1.DecodeRequest{}, unary(give.Decode))
		call(&firnv1.ListSequencersRequest{}, unary(admin.ListSequencers))
		call(&firnv1.GetSequencerRequest{}, unary(admin.GetSequencer))
		call(&firnv1.CreateSequencerRequest{}, unary(admin.CreateSequencer))
		call(&firnv1.DestroySequencerRequest{}, unary(admin.DestroySequencer))
		call(&firnv1.AttachSequencerRequest{}, unary(admin.AttachSequencer))
		call(&firnv1.DetachSequencerRequest{}, unary(admin.DetachSequencer))
		call(&firnv1.ClusterStatusRequest{}, unary(admin.ClusterStatus))

		var request firnv1.StreamRequest
		if proto.Unmarshal(data, &request) == nil {
			info := &grpc.StreamServerInfo{FullMethod: "/firn.v1/Fuzz"}
			// what is sent is never read: large messages fill the stream
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			check(nil, s.stream(nil, &taker{ctx: ctx, left: 3}, info, func(_ any, stream grpc.ServerStream) error {
				return give.Stream(&request,
					&grpc.GenericServerStream[firnv1.StreamRequest, firnv1.StreamResponse]{ServerStream: stream})
			}))
		}
	})
}

// unary is a handler of any request.
func unary[Request, Answer any](f func(context.Context, *Request) (*Answer, error)) grpc.UnaryHandler {
	return func(ctx context.Context, request any) (any, error) { return f(ctx, request.(*Request)) }
}
