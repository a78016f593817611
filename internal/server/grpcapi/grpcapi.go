// Package grpcapi speaks gRPC for a server.Service: the services Firn and Admin of package firnv1, which describe
// themselves in api/firn/v1, the standard health service, and reflection.
//
// Who may call what is decided by a auth.Policy; a token is shown as metadata, "authorization: Bearer". Health and
// reflection need none: they say nothing that is not public, or that a balancer must not know.
package grpcapi

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/conns"
)

// Server serves what a server.Service does. Make it with New. Its methods are safe for concurrent use.
type Server struct {
	service  *server.Service
	policy   *auth.Policy
	grpc     *grpc.Server
	calls    map[string]server.Call // by method
	answers  sync.Map               // see codec
	open     *conns.Quota           // of calls
	refusing atomic.Int64           // calls that are beside those
	watches  *conns.Quota           // of the open calls, those that may last for ever and need no token

	ending  context.Context // ends when no stream of IDs shall go on: while draining
	end     context.CancelFunc
	stopped context.Context // ends with Shutdown
	stop    context.CancelFunc
}

// New returns a server for callers under a policy. The options are in addition to its own, such as
// grpc.Creds for TLS.
func New(s *server.Service, e *auth.Policy, options ...grpc.ServerOption) *Server {
	v := &Server{service: s, policy: e}
	v.limit(s.MaxCalls())
	v.ending, v.end = context.WithCancel(s.Serving())
	v.stopped, v.stop = context.WithCancel(context.Background())
	own := append(limits(), grpc.InTapHandle(v.arrives), grpc.UnaryInterceptor(v.unary), grpc.StreamInterceptor(v.stream),
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto"), &v.answers}))
	v.grpc = grpc.NewServer(append(own, options...)...)
	firnv1.RegisterFirnServer(v.grpc, &giver{Server: v})
	firnv1.RegisterAdminServer(v.grpc, &admin{service: s})
	healthpb.RegisterHealthServer(v.grpc, newHealth(s, v.stopped))
	reflection.Register(v.grpc)
	v.calls = v.counters()
	return v
}

// Serve serves whoever comes to a listener, which it closes. It returns nil after Shutdown, and else why it can't go on.
// Several listeners can be served at a time.
func (s *Server) Serve(l net.Listener) error {
	err := s.grpc.Serve(listener{l})
	select {
	case <-s.stopped.Done():
		return nil
	default:
		return err
	}
}

// Shutdown listens no more, ends what would go on for ever, and lets other calls finish. When ctx ends first, the rest is
// cut off, and its error is returned.
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
