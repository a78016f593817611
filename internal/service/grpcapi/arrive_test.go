package grpcapi_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/test/servertest"
)

// Calls that need no token take half of the places for calls, and those of one address never all. Calls whose request
// never comes count, though no interceptor hears of them. Health is told whatever there is.
func TestTooManyCalls(t *testing.T) {
	r := newRig(t, new(servertest.Issuer), servertest.Join(t), &auth.Policy{Tokens: keys{}})
	r.server.LimitCalls(16) // 14 from one address, and of these 7 without a token
	health := healthpb.NewHealthClient(r.conn)
	watch := func() error {
		w, err := health.Watch(within(t), &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = w.Recv()
		}
		return err
	}
	crowded := refusal{code: codes.ResourceExhausted, reason: "overloaded", says: "too many calls", retry: time.Second}
	for range 6 {
		if err := watch(); err != nil {
			t.Fatal(err)
		}
	}
	reflect, err := reflectionpb.NewServerReflectionClient(r.conn).ServerReflectionInfo(within(t))
	if err == nil {
		err = reflect.Send(
			&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	}
	if err == nil {
		_, err = reflect.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "the eighth without a token", watch(), crowded)

	ctx, end := context.WithCancel(within(t))
	announce := func() grpc.ClientStream {
		s, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, firnv1.Firn_Next_FullMethodName)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for range 7 {
		announce()
	}
	next := func() error {
		_, err := r.ids.Next(within(t), &firnv1.NextRequest{})
		return err
	}
	wants(t, "the 15th", next(), crowded)
	if err := announce().RecvMsg(new(firnv1.NextResponse)); status.Code(err) == codes.OK {
		t.Error("a 15th whose request never comes is answered")
	}
	if _, err := health.Check(within(t), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
	end()
	for deadline := time.Now().Add(patience); ; {
		err := next()
		if status.Code(err) == codes.Unauthenticated { // it shows no token, and it is looked at
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is room again, and a call gets %v", err)
		}
	}
}
