// Package grpcapi serves a calls.Service over gRPC: the services Firn and Admin of package firnv1, which api/firn/v1
// describes, the standard health service, and reflection. The last two need no token, as they are for balancers, and
// what they tell is public.
package grpcapi

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/calls"
)

// Server serves a calls.Service. Make it with New. Its methods are safe for concurrent use.
type Server struct {
	service  *calls.Service
	policy   *auth.Policy
	grpc     *grpc.Server
	calls    map[string]calls.Call // by method
	answers  sync.Map              // see codec
	open     *conns.Quota          // calls
	refusing atomic.Int64          // calls beyond that
	watches  *conns.Quota          // of the open calls, those that need no token and may never end

	ending  context.Context // ends when streams of IDs must end: with Drain or Shutdown
	end     context.CancelFunc
	stopped context.Context // ends with Shutdown
	stop    context.CancelFunc
}

// New returns a server for callers under a policy. The options, such as grpc.Creds for TLS, are added to its own.
func New(s *calls.Service, p *auth.Policy, options ...grpc.ServerOption) *Server {
	v := &Server{service: s, policy: p}
	v.limit(s.MaxCalls())
	v.ending, v.end = context.WithCancel(s.Serving())
	v.stopped, v.stop = context.WithCancel(context.Background())
	own := append(limits(), grpc.Creds(Timely(insecure.NewCredentials())), grpc.InTapHandle(v.arrives),
		grpc.UnaryInterceptor(v.unary), grpc.StreamInterceptor(v.stream),
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto"), &v.answers}))
	v.grpc = grpc.NewServer(append(own, options...)...)
	firnv1.RegisterFirnServer(v.grpc, &giver{Server: v})
	firnv1.RegisterAdminServer(v.grpc, &admin{service: s})
	healthpb.RegisterHealthServer(v.grpc, newHealth(s, v.stopped))
	reflection.Register(v.grpc)
	v.calls = v.counters()
	return v
}

// Serve serves the connections of a listener, which it closes at the end. It returns nil after Shutdown, and else an
// error. Several listeners can be served at a time.
func (s *Server) Serve(l net.Listener) error {
	err := s.grpc.Serve(listener{l})
	select {
	case <-s.stopped.Done():
		return nil
	default:
		return err
	}
}

// Shutdown stops listening, ends streams, and lets other calls finish. If ctx ends first, Shutdown cuts off the rest
// and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.end()
	s.stop()
	cut := make(chan struct{})
	inTime := context.AfterFunc(ctx, func() {
		close(cut)
		s.grpc.Stop()
	})
	s.grpc.GracefulStop()
	if !inTime() {
		<-cut
		return ctx.Err()
	}
	return nil
}
