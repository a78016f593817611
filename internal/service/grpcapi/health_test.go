package grpcapi_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/test/servertest"
)

const (
	serving    = healthpb.HealthCheckResponse_SERVING
	notServing = healthpb.HealthCheckResponse_NOT_SERVING
	unknown    = healthpb.HealthCheckResponse_SERVICE_UNKNOWN
)

// Health is that of the service: ready, not ready, and never again once it drains. Who watches is told.
func TestHealth(t *testing.T) {
	notReady := fmt.Errorf("%w: it is joining", peer.ErrNotReady)
	f := &servertest.Issuer{Err: notReady}
	r := newFakeRig(t, f)
	client := healthpb.NewHealthClient(r.conn)
	names := []string{"", "firn.v1.Firn", "firn.v1.Admin"}
	watches := map[string]healthpb.Health_WatchClient{}
	for _, name := range append(names, "firn.v1.Other") {
		w, err := client.Watch(within(t), &healthpb.HealthCheckRequest{Service: name})
		if err != nil {
			t.Fatal(err)
		}
		watches[name] = w
	}
	see := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		all, err := client.List(within(t), &healthpb.HealthListRequest{})
		if err != nil || len(all.GetStatuses()) != len(names) {
			t.Errorf("List: %v, %v", all, err)
		}
		for _, name := range names {
			got, err := client.Check(within(t), &healthpb.HealthCheckRequest{Service: name})
			if err != nil || got.GetStatus() != want || all.GetStatuses()[name].GetStatus() != want {
				t.Errorf("%q: %v and %v, %v, want %v", name, got, all, err, want)
			}
			if got, err := watches[name].Recv(); err != nil || got.GetStatus() != want {
				t.Errorf("watching %q: %v, %v, want %v", name, got, err, want)
			}
		}
	}
	see(notServing)
	f.Fail(nil)
	see(serving)
	f.Fail(notReady)
	see(notServing)
	f.Fail(nil)
	see(serving)
	r.service.Drain()
	see(notServing)

	if got, err := watches["firn.v1.Other"].Recv(); err != nil || got.GetStatus() != unknown {
		t.Errorf("watching another: %v, %v", got, err)
	}
	_, err := client.Check(within(t), &healthpb.HealthCheckRequest{Service: "firn.v1.Other"})
	wants(t, "Check", err, refusal{code: codes.NotFound, says: `unknown service "firn.v1.Other"`})
	if err := r.shutdown(); err != nil { // watching does not hold it up
		t.Error(err)
	}
	for name, w := range watches {
		_, err := w.Recv()
		wants(t, "watching "+name, err, refusal{code: codes.Unavailable, says: "shutting down"})
	}
}

// Reflection tells everything that there is, itself in both versions.
func TestReflection(t *testing.T) {
	r := newRig(t, new(servertest.Issuer), servertest.Join(t), &auth.Policy{Tokens: keys{}})
	stream, err := reflectionpb.NewServerReflectionClient(r.conn).ServerReflectionInfo(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(
		&reflectionpb.ServerReflectionRequest{
			MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
		}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	want := []string{
		"firn.v1.Admin", "firn.v1.Firn", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
		"grpc.reflection.v1alpha.ServerReflection",
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("there are %v, want %v", names, want)
	}
	_ = stream.CloseSend()
}
