package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// callerKey is the key of a context's caller.
type callerKey struct{}

// callerOf is the caller of a call; nil, who may do nothing, if none was admitted.
func callerOf(ctx context.Context) *auth.Caller {
	who, _ := ctx.Value(callerKey{}).(*auth.Caller)
	return who
}

// open tells whether a method needs no token.
func open(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.Health/") || strings.HasPrefix(method, "/grpc.reflection.")
}

// admit admits the caller of a call, and returns the context of the call.
func (s *Server) admit(ctx context.Context, method string) (context.Context, error) {
	if crowded(ctx) {
		return nil, calls.ErrCrowded
	}
	if zipped(ctx) {
		if open(method) { // its errors are not worded
			return nil, status.Error(grpccodes.InvalidArgument, errCompressed.Error())
		}
		return nil, calls.Input(errCompressed)
	}
	if open(method) {
		return ctx, nil
	}
	who, err := s.policy.Admit(token(ctx))
	if err != nil {
		return nil, err
	}
	return context.WithValue(ctx, callerKey{}, who), nil
}

// unary admits the callers of calls with one answer, and words their errors.
func (s *Server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo,
	next grpc.UnaryHandler,
) (answer any, err error) {
	began := time.Now()
	_ = grpc.SetTrailer(ctx, s.ofCluster()) // it fails outside of calls only
	defer func() { err = s.outcome(ctx, info.FullMethod, began, err, recover()) }()
	within, err := s.admit(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if answer, err = next(within, request); err == nil {
		s.keepCounted(ctx, answer)
	}
	return answer, err
}

// stream does the same for calls with many answers.
func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	next grpc.StreamHandler,
) (err error) {
	ctx, of := stream.Context(), s.ofCluster()
	stream.SetTrailer(of)
	_ = stream.SetHeader(of) // nothing was sent yet

	// how long it takes is up to the caller
	defer func() { err = s.outcome(ctx, info.FullMethod, time.Time{}, err, recover()) }()
	within, err := s.admit(ctx, info.FullMethod)
	if err != nil {
		return err
	}
	if open(info.FullMethod) {
		done, ok := s.watching(ctx)
		if !ok {
			return calls.ErrCrowded
		}
		defer done()
	}
	return next(srv, admitted{stream, within})
}

// ofCluster is the metadata that names the cluster; nil while it is not known. A stream sends it first, too, as it may
// never end.
func (s *Server) ofCluster() metadata.MD {
	id := s.service.Cluster()
	if id == "" {
		return nil
	}
	return metadata.MD{clusterid.Trailer: {id}}
}

// admitted is a stream of an admitted caller.
type admitted struct {
	grpc.ServerStream
	ctx context.Context
}

func (a admitted) Context() context.Context { return a.ctx }

// outcome counts a call, and returns its error as the caller gets it. A panic becomes an error: otherwise it would end
// the process, and all other calls. Began is zero for calls that are not timed.
func (s *Server) outcome(ctx context.Context, method string, began time.Time, err error, panicked any) error {
	code := codes.OK
	switch {
	case panicked != nil:
		code, err = s.refuse(ctx, method, &panicError{panicked, debug.Stack()})
	case err == nil || open(method) && !errors.Is(err, calls.ErrCrowded): // theirs are gRPC's own
	default:
		code, err = s.refuse(ctx, method, err)
	}
	s.count(method, code, began)
	return err
}

// panicError is a panic in a call.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// token is the token that a caller sends; empty: none.
func token(ctx context.Context) string {
	for _, header := range metadata.ValueFromIncomingContext(ctx, "authorization") {
		return auth.Bearer(header) // the first counts
	}
	return ""
}
