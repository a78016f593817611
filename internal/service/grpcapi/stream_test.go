package grpcapi_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/test/servertest"
)

// A stream gives as many as it was to, in order, in batches of the size that was asked for.
func TestStream(t *testing.T) {
	f := new(servertest.Issuer)
	r := newFakeRig(t, f)
	for _, tt := range []struct {
		request *firnv1.StreamRequest
		sizes   []int
	}{
		{&firnv1.StreamRequest{Total: 1}, []int{1}},
		{&firnv1.StreamRequest{Total: 2500}, []int{1000, 1000, 500}},
		{&firnv1.StreamRequest{Total: 2000}, []int{1000, 1000}},
		{&firnv1.StreamRequest{Total: 5, BatchSize: 2}, []int{2, 2, 1}},
		{&firnv1.StreamRequest{Total: 20_000, BatchSize: 10_000, Sequencer: "default"}, []int{10_000, 10_000}},
	} {
		next := int64(first) + f.Given()
		stream, err := r.ids.Stream(within(t), tt.request)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for {
			got, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range got.GetIds() {
				if id != next {
					t.Fatalf("%v: the ID %d, want %d", tt.request, id, next)
				}
				next++
			}
			sizes = append(sizes, len(got.GetIds()))
		}
		if !slices.Equal(sizes, tt.sizes) {
			t.Errorf("%v: batches of %v, want %v", tt.request, sizes, tt.sizes)
		}
	}
}

func TestBadStreams(t *testing.T) {
	r := newFakeRig(t, new(servertest.Issuer))
	for _, tt := range []struct {
		request *firnv1.StreamRequest
		want    refusal
	}{
		{&firnv1.StreamRequest{BatchSize: -1}, bad("batch_size is -1; want a number from 1 to 10000, or 0 for 1000")},
		{&firnv1.StreamRequest{BatchSize: 10_001}, bad("batch_size is 10001; want")},
		{&firnv1.StreamRequest{Total: -1}, bad("total is -1; want at least 1, or 0 for no limit")},
		{&firnv1.StreamRequest{Sequencer: "Orders"}, bad(`the sequencer's name "Orders"`)},
		{&firnv1.StreamRequest{Sequencer: "orders"}, refusal{code: codes.NotFound, reason: "unknown_sequencer"}},
	} {
		wants(t, tt.request.String(), firstOf(t, r, tt.request), tt.want)
	}
}

// What is made and not taken is bounded: a caller that does not read is not given more and more.
func TestStreamWaitsForItsCaller(t *testing.T) {
	const (
		batch  = 1000
		window = 64 << 10
		// Batches on the way: in the caller's window and in the server's buffer, 64 KiB each, and one at either end.
		most = 2*window/(8*batch) + 2
		rest = 4 // that gRPC may hold besides
	)
	f := &servertest.Issuer{IDs: firn.Default}
	r := newRig(t, f, servertest.Join(t), trusting, grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(1<<20))
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	stream, err := r.ids.Stream(ctx, &firnv1.StreamRequest{BatchSize: batch})
	if err != nil {
		t.Fatal(err)
	}
	for taken := range int64(50) {
		// Meanwhile the server does much else, over the same connection, and could make a lot.
		for range 20 {
			if _, err := r.ids.Decode(within(t), &firnv1.DecodeRequest{Id: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if ahead := f.Given()/batch - taken; ahead > most+rest {
			t.Fatalf("%d batches were made and not taken, want at most %d", ahead, most+rest)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
}

// A caller that cancels ends its stream, also one that waits for it.
func TestStreamIsCanceled(t *testing.T) {
	r := newFakeRig(t, new(servertest.Issuer))
	for _, read := range []int{0, 1, 50} {
		ctx, cancel := context.WithCancel(within(t))
		stream, err := r.ids.Stream(ctx, &firnv1.StreamRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for range read {
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		for err == nil {
			_, err = stream.Recv()
		}
		wants(t, "Recv", err, refusal{code: codes.Canceled})
	}
	if err := r.shutdown(); err != nil { // no stream is left
		t.Error(err)
	}
	if log := r.log.String(); log != "" {
		t.Errorf("it was logged: %s", log)
	}
}

// A server that drains, or stops, ends its streams with UNAVAILABLE. What was sent arrives before.
func TestStreamEndsWithTheServer(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"drain": func(r *rig) { r.service.Drain() },
		"stop": func(r *rig) {
			if err := r.shutdown(); err != nil {
				r.t.Error(err)
			}
		},
	} {
		r := newFakeRig(t, new(servertest.Issuer))
		stream, err := r.ids.Stream(within(t), &firnv1.StreamRequest{BatchSize: 10})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		next := int64(first)
		for i := 0; err == nil; i++ {
			var got *firnv1.StreamResponse
			if got, err = stream.Recv(); err != nil {
				break
			}
			if got.GetIds()[0] != next {
				t.Fatalf("%s: the ID %d, want %d", name, got.GetIds()[0], next)
			}
			next += 10
			if i == 20 {
				go func() {
					defer close(ended)
					end(r)
				}()
			}
		}
		wants(t, name, err, unavailable("not_ready", "it is shutting down"))
		<-ended
		if name == "drain" {
			wants(t, "after it", firstOf(t, r, &firnv1.StreamRequest{}),
				unavailable("not_ready", "it is shutting down"))
		}
	}
}

// A stream that waits for IDs ends with the server as well.
func TestStreamEndsWhileItWaits(t *testing.T) {
	asked := make(chan struct{})
	r := newRig(t, &stuck{asked: asked}, servertest.Join(t), trusting)
	go func() {
		<-asked
		r.service.Drain()
	}()
	wants(t, "Stream", firstOf(t, r, &firnv1.StreamRequest{}), unavailable("not_ready", "it is shutting down"))
}

// The IDs of a stream ascend, whichever node IDs its messages are of.
func TestStreamAscends(t *testing.T) {
	stream, err := newRig(t, new(following), servertest.Join(t), trusting).ids.Stream(within(t),
		&firnv1.StreamRequest{BatchSize: 10})
	if err != nil {
		t.Fatal(err)
	}
	for last := int64(0); last < 100; {
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range got.GetIds() {
			if id <= last {
				t.Fatalf("%d after %d", id, last)
			}
			last = id
		}
	}
}

// following gives the IDs that follow the one that they are to exceed.
type following struct{ servertest.Issuer }

func (*following) FillAfter(_ context.Context, after firn.ID, _ time.Duration, ids []firn.ID) error {
	for i := range ids {
		ids[i] = after + firn.ID(i) + 1
	}
	return nil
}

// stuck is a member that has no ID to give.
type stuck struct {
	servertest.Issuer
	asked chan struct{}
}

func (s *stuck) FillAfter(ctx context.Context, _ firn.ID, _ time.Duration, _ []firn.ID) error {
	close(s.asked)
	<-ctx.Done()
	return ctx.Err()
}

// A stream goes as fast as the caller's limit allows, and ends when it never will.
func TestStreamKeepsToTheLimit(t *testing.T) {
	turn := 0
	f := &servertest.Issuer{Before: func(context.Context) error {
		if turn++; turn%2 == 1 {
			return &auth.LimitError{Caller: "shop", Rate: 10, RetryAfter: time.Millisecond}
		}
		return nil
	}}
	r := newFakeRig(t, f)
	stream, err := r.ids.Stream(within(t), &firnv1.StreamRequest{Total: 5, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if got, err := stream.Recv(); err != nil || len(got.GetIds()) != 1 {
			t.Fatalf("%d: %v, %v", i, got, err)
		}
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) || turn != 10 {
		t.Errorf("%v after %d turns", err, turn)
	}

	never := &servertest.Issuer{Before: func(context.Context) error {
		return &auth.LimitError{Caller: "shop", Rate: 10}
	}}
	r = newFakeRig(t, never)
	wants(t, "never", firstOf(t, r, &firnv1.StreamRequest{}),
		refusal{code: codes.ResourceExhausted, reason: "rate_limited"})

	long := &servertest.Issuer{Before: func(context.Context) error {
		return &auth.LimitError{Caller: "shop", Rate: 10, RetryAfter: time.Hour}
	}}
	r = newFakeRig(t, long)
	stream, err = r.ids.Stream(within(t), &firnv1.StreamRequest{})
	if err != nil {
		t.Fatal(err)
	}
	r.service.Drain()
	_, err = stream.Recv()
	wants(t, "a long wait", err, unavailable("not_ready", "it is shutting down"))
}

// Calls that take longer than the server waits for them are cut off.
func TestShutdownCuts(t *testing.T) {
	asked := make(chan struct{}, 1)
	r := newRig(t, &waiting{asked: asked}, servertest.Join(t), trusting)
	failed := make(chan error, 1)
	go func() {
		_, err := r.ids.Next(within(t), &firnv1.NextRequest{})
		failed <- err
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := r.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if got := refusalOf(<-failed); got.code != codes.Unavailable {
		t.Errorf("Next: %v", got)
	}
	if err := r.shutdown(); err != nil {
		t.Errorf("Shutdown again: %v", err)
	}
}

// revocable knows one token, until it does no longer.
type revocable struct{ revoked atomic.Bool }

func (v *revocable) Identify(string) (*auth.Caller, error) {
	if v.revoked.Load() {
		return nil, auth.ErrUnauthenticated
	}
	return new(auth.Policy).Admit("")
}

// A stream ends when its token is good no longer.
func TestStreamOfARevokedToken(t *testing.T) {
	known := new(revocable)
	r := newRig(t, new(servertest.Issuer), servertest.Join(t), &auth.Policy{Tokens: known})
	stream, err := r.ids.Stream(metadata.AppendToOutgoingContext(within(t), "authorization", "Bearer x"),
		&firnv1.StreamRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	known.revoked.Store(true)
	for err == nil {
		_, err = stream.Recv()
	}
	wants(t, "Stream", err, refusal{code: codes.Unauthenticated, reason: "unauthenticated"})
}
