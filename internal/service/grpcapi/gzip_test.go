package grpcapi_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/test/servertest"
)

// Nothing is decompressed, and no answer compressed, whatever a caller says of its requests.
func TestCompressedCallsAreRefused(t *testing.T) {
	m := new(servertest.Issuer)
	r := newFakeRig(t, m)
	zipped := grpc.UseCompressor(gzip.Name)
	long := strings.Repeat("a", 60_000)
	for name, call := range map[string]func() error{
		"an empty request, which is not compressed": func() error {
			_, err := r.ids.Next(within(t), new(firnv1.NextRequest), zipped)
			return err
		},
		"a long request": func() error {
			_, err := r.ids.NextBatch(within(t), &firnv1.NextBatchRequest{Sequencer: long, Count: 1}, zipped)
			return err
		},
		"a stream": func() error {
			s, err := r.ids.Stream(within(t), &firnv1.StreamRequest{Sequencer: long}, zipped)
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
		"health": func() error {
			_, err := healthpb.NewHealthClient(r.conn).Check(within(t), new(healthpb.HealthCheckRequest), zipped)
			return err
		},
	} {
		err := call()
		if code := status.Code(err); code != codes.InvalidArgument && code != codes.Internal ||
			!strings.Contains(err.Error(), "call without compression") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := m.Given(); n != 0 {
		t.Errorf("%d IDs were given", n)
	}
	if got, err := r.ids.Next(within(t), new(firnv1.NextRequest)); err != nil || got.GetId() == 0 {
		t.Errorf("without compression: %v, %v", got, err)
	}
}
