package grpcapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
)

// Every kind of error is told by its code and its reason. Only bugs are logged.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want refusal
	}{
		{calls.Input(errors.New("the count is odd")), bad("the count is odd")},
		{auth.ErrUnauthenticated, refusal{code: codes.Unauthenticated, reason: "unauthenticated"}},
		{auth.ErrForbidden, refusal{code: codes.PermissionDenied, reason: "forbidden"}},
		{peer.ErrNoSequencer, refusal{code: codes.NotFound, reason: "unknown_sequencer"}},
		{peer.ErrDestroyed, refusal{code: codes.NotFound, reason: "unknown_sequencer"}},
		{peer.ErrAttachedAgain, refusal{code: codes.FailedPrecondition, reason: "attached_again"}},
		{
			&auth.LimitError{Caller: "shop", Rate: 5},
			refusal{code: codes.ResourceExhausted, reason: "rate_limited", says: `the token "shop" allows 5 IDs`},
		},
		{
			&auth.LimitError{Caller: "shop", Rate: 5, RetryAfter: 300 * time.Millisecond},
			refusal{code: codes.ResourceExhausted, reason: "rate_limited", retry: 300 * time.Millisecond},
		},
		{
			fmt.Errorf("%w: %w", peer.ErrNotReady, &counter.ExhaustedError{Last: 9}),
			refusal{code: codes.FailedPrecondition, reason: "exhausted", says: "the numbers end at 9"},
		},
		{
			fmt.Errorf("%w: %w", peer.ErrNotReady, &counter.LostError{Last: 9}),
			refusal{code: codes.FailedPrecondition, reason: "lost", says: "the store has lost data"},
		},
		{calls.ErrCrowded, refusal{code: codes.ResourceExhausted, reason: "overloaded", retry: time.Second}},
		{fmt.Errorf("waiting: %w", context.DeadlineExceeded), refusal{
			code:   codes.ResourceExhausted,
			reason: "overloaded", says: "no answer within 10s", retry: time.Second,
		}},
		{errors.New("surprise"), refusal{code: codes.Internal, reason: "internal", says: "surprise"}},
		{
			&cluster.UnreadableError{Err: errors.New("torn")},
			refusal{code: codes.Internal, reason: "unreadable", says: "torn"},
		},
		{fmt.Errorf("%w: it has not joined yet", peer.ErrNotReady), unavailable("not_ready", "it has not joined yet")},
		{
			fmt.Errorf("%w: %w", peer.ErrNotReady, &peer.ClockError{Ahead: 2 * time.Hour, Of: 2, Others: 2}),
			unavailable("clock", "this clock is 2h0m ahead of 2 of 2 others"),
		},
		{fmt.Errorf("%w: %w", peer.ErrNotReady, peer.ErrCopied), unavailable("copied", "starts over")},
		{fmt.Errorf("%w: %w", peer.ErrNotReady, peer.ErrWaiting), unavailable("waiting", "")},
		{fmt.Errorf("%w: %w", peer.ErrNotReady, peer.ErrDetached), unavailable("detached", "")},
		{fmt.Errorf("%w: a window of 1s is too short", peer.ErrUnfit), unavailable("unfit", "a window of 1s")},
		{store.ErrUnavailable, unavailable("unavailable", "")},
		{store.ErrAmbiguous, unavailable("unavailable", "")},
		{firn.ErrLifetime, unavailable("lifetime", "")},
		{errors.New(strings.Repeat("é", 10_000)), refusal{code: codes.Internal, reason: "internal", says: "é..."}},
		{errors.New("a\xffb"), refusal{code: codes.Internal, reason: "internal", says: "a�b"}},
	} {
		f := &servertest.Issuer{Before: func(context.Context) error { return tt.err }}
		r := newFakeRig(t, f)
		_, err := r.ids.Next(within(t), &firnv1.NextRequest{})
		wants(t, "Next", err, tt.want)
		_, err = r.ids.NextBatch(within(t), &firnv1.NextBatchRequest{Count: 3})
		wants(t, "NextBatch", err, tt.want)
		if tt.want.reason != "rate_limited" { // a stream waits
			wants(t, "Stream", firstOf(t, r, &firnv1.StreamRequest{}), tt.want)
		}
		if logged := r.log.String() != ""; logged != (tt.want.code == codes.Internal) {
			t.Errorf("%v was logged as %.300q", tt.err, r.log.String())
		}
	}
}

// firstOf is the error that a stream begins with.
func firstOf(t *testing.T, r *rig, request *firnv1.StreamRequest) error {
	t.Helper()
	stream, err := r.ids.Stream(within(t), request)
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// There is another definition: it is told, and what differs.
func TestConflict(t *testing.T) {
	m := servertest.Join(t)
	if _, err := m.Create(t.Context(), "orders", cluster.Define(firn.Default)); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, new(servertest.Issuer), m, trusting)
	_, err := r.admin.CreateSequencer(within(t),
		&firnv1.CreateSequencerRequest{Name: "orders", Definition: &firnv1.Definition{Nodes: new(int64(2))}})
	want := refusal{code: codes.AlreadyExists, reason: "exists", says: "nodes: 1024 is in force, 2 is wanted"}
	wants(t, "CreateSequencer", err, want)
	got := refusalOf(err).conflict
	if got.GetInForce().GetNodes() != 1024 || got.GetInForce().GetTick().AsDuration() != time.Millisecond {
		t.Errorf("in force: %v", got.GetInForce())
	}
	difference := &firnv1.Difference{Field: "nodes", InForce: "1024", Wanted: "2"}
	if d := got.GetDifferences(); len(d) != 1 || !proto.Equal(d[0], difference) {
		t.Errorf("differences: %v", d)
	}
}

// A panic is one call's, and not the end of the process. What it says is for the log.
func TestPanics(t *testing.T) {
	f := &servertest.Issuer{Before: func(context.Context) error { panic("the secret") }}
	r := newFakeRig(t, f)
	want := refusal{code: codes.Internal, reason: "internal", says: "a bug in firn; the server has logged it"}
	_, err := r.ids.Next(within(t), &firnv1.NextRequest{})
	wants(t, "Next", err, want)
	wants(t, "Stream", firstOf(t, r, &firnv1.StreamRequest{}), want)
	if log := r.log.String(); strings.Count(log, "panic: the secret") != 2 ||
		!strings.Contains(log, "/firn.v1.Firn/Stream") || !strings.Contains(log, "refuse_test.go") {
		t.Errorf("the log: %s", log)
	}
}

// Of a caller that goes away, or waits no longer, nothing is logged.
func TestGoneCallers(t *testing.T) {
	asked := make(chan struct{}, 2)
	f := &waiting{asked: asked}
	r := newRig(t, f, servertest.Join(t), trusting)
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-asked
		cancel()
	}()
	_, err := r.ids.Next(ctx, &firnv1.NextRequest{})
	wants(t, "canceled", err, refusal{code: codes.Canceled})
	ctx, cancel = context.WithTimeout(within(t), 10*time.Millisecond)
	defer cancel()
	_, err = r.ids.Next(ctx, &firnv1.NextRequest{})
	wants(t, "late", err, refusal{code: codes.DeadlineExceeded})
	if err := r.shutdown(); err != nil { // the calls have ended
		t.Error(err)
	}
	if log := r.log.String(); log != "" {
		t.Errorf("it was logged: %s", log)
	}
}

// waiting is a member that gives nothing.
type waiting struct {
	servertest.Issuer
	asked chan struct{}
}

func (w *waiting) Next(ctx context.Context) (firn.ID, error) {
	select {
	case w.asked <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

// What gRPC itself refuses is refused before firn sees it.
func TestTooLarge(t *testing.T) {
	r := newFakeRig(t, new(servertest.Issuer))
	_, err := r.ids.Next(within(t), &firnv1.NextRequest{Sequencer: strings.Repeat("a", 64<<10)})
	wants(t, "64 KiB", err, refusal{code: codes.ResourceExhausted, says: "larger than max"})
	_, err = r.ids.Next(within(t), &firnv1.NextRequest{Sequencer: strings.Repeat("a", 60<<10)})
	wants(t, "60 KiB", err, bad("the sequencer's name"))
}
