package grpcapi_test

import (
	"context"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/metrics"
	"github.com/firn-id/firn/internal/test/servertest"
)

// Calls are counted by their methods and by what they came to; streams are not timed, and health is not counted.
func TestCallsAreCounted(t *testing.T) {
	m := servertest.NewMeter()
	f := new(servertest.Issuer)
	r := newMeteredRig(t, f, m)
	ctx := within(t)
	for range 3 {
		if _, err := r.ids.Next(ctx, &firnv1.NextRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = r.ids.NextBatch(ctx, &firnv1.NextBatchRequest{Count: 0})
	_, _ = r.admin.GetSequencer(ctx, &firnv1.GetSequencerRequest{Name: "orders"})
	stream, err := r.ids.Stream(ctx, &firnv1.StreamRequest{Total: 5000})
	for err == nil {
		_, err = stream.Recv()
	}
	_, _ = healthpb.NewHealthClient(r.conn).Check(ctx, &healthpb.HealthCheckRequest{})
	f.Fail(peer.ErrNotReady)
	_, _ = r.ids.Next(ctx, &firnv1.NextRequest{})
	gone, cancel := context.WithCancel(ctx)
	f.Fail(nil)
	f.Before = func(context.Context) error { cancel(); <-gone.Done(); return gone.Err() }
	_, _ = r.ids.Next(gone, &firnv1.NextRequest{})
	if err := r.shutdown(); err != nil { // so that the last call has ended on the server too
		t.Fatal(err)
	}
	// Its server may know that before or after it is told.
	lost := m.Take("grpc firn.v1.Firn/Next gone", "grpc firn.v1.Firn/Next unavailable",
		"grpc firn.v1.Firn/Next internal")
	if lost != 1 {
		t.Errorf("a call whose caller went away was counted %d times", lost)
	}
	m.Wants(t, map[string]int{
		"grpc firn.v1.Firn/Next ok": 3, "grpc firn.v1.Firn/Next not_ready": 1,
		"grpc firn.v1.Firn/NextBatch bad_request":           1,
		"grpc firn.v1.Admin/GetSequencer unknown_sequencer": 1, "grpc firn.v1.Firn/Stream ok": 1,
	}, map[string]int{
		"grpc firn.v1.Firn/Next": 5, "grpc firn.v1.Firn/NextBatch": 1,
		"grpc firn.v1.Admin/GetSequencer": 1,
	})
}

func BenchmarkCounted(b *testing.B) {
	for name, meter := range map[string]calls.Meter{"no": nil, "yes": metrics.New(metrics.Build{})} {
		b.Run(name, func(b *testing.B) {
			r := newMeteredRig(b, new(servertest.Issuer), meter)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.ids.Next(b.Context(), &firnv1.NextRequest{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
