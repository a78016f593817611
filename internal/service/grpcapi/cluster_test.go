package grpcapi_test

import (
	"context"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/servertest"
)

// Every answer names the cluster, also errors and health checks: in the trailer, and of a stream before it ends.
func TestEveryAnswerNamesTheCluster(t *testing.T) {
	for of, m := range map[string]*peer.Member{
		"":                 servertest.Waiting(t, "no answer"),
		servertest.Cluster: servertest.Join(t),
	} {
		r := newRig(t, new(servertest.Issuer), m, trusting)
		var want []string
		if of != "" {
			want = []string{of}
		}
		names := func(what string, md metadata.MD) {
			t.Helper()
			if got := md.Get(clusterid.Trailer); !slices.Equal(got, want) {
				t.Errorf("%s is of cluster %q; want %q", what, got, want)
			}
		}
		for what, call := range map[string]func(context.Context, ...grpc.CallOption) error{
			"an ID": func(ctx context.Context, o ...grpc.CallOption) error {
				_, err := r.ids.Next(ctx, new(firnv1.NextRequest), o...)
				return err
			},
			"an error": func(ctx context.Context, o ...grpc.CallOption) error {
				if _, err := r.ids.Next(ctx, &firnv1.NextRequest{Sequencer: "nothing"}, o...); err == nil {
					t.Error("there is a sequencer nothing")
				}
				return nil
			},
			"a health check": func(ctx context.Context, o ...grpc.CallOption) error {
				_, err := healthpb.NewHealthClient(r.conn).Check(ctx, new(healthpb.HealthCheckRequest), o...)
				return err
			},
		} {
			var trailer metadata.MD
			if err := call(within(t), grpc.Trailer(&trailer)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			names(what, trailer)
		}
		stream, err := r.ids.Stream(within(t), &firnv1.StreamRequest{Total: 3})
		if err != nil {
			t.Fatal(err)
		}
		header, err := stream.Header()
		if err != nil {
			t.Fatal(err)
		}
		names("the beginning of a stream", header)
		for err == nil {
			_, err = stream.Recv()
		}
		if err != io.EOF {
			t.Error(err)
		}
		names("the end of a stream", stream.Trailer())
	}
}
