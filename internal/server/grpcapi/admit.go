package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
)

// callerKey is the key of a context's caller.
type callerKey struct{}

// callerOf is who makes a call; nil, who may do nothing, when nobody was admitted.
func callerOf(ctx context.Context) *auth.Caller {
	who, _ := ctx.Value(callerKey{}).(*auth.Caller)
	return who
}

// open tells whether a method needs no token.
func open(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.Health/") || strings.HasPrefix(method, "/grpc.reflection.")
}

// admit returns the context of a call of a caller that was let in.
func (s *Server) admit(ctx context.Context, method string) (context.Context, error) {
	if crowded(ctx) {
		return nil, server.ErrCrowded
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

// unary lets callers in, and puts the errors of all calls that have one answer.
func (s *Server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
	began := s.now()
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
func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	ctx := stream.Context()
	var untimed time.Time // it lasts for as long as its caller wants
	defer func() { err = s.outcome(ctx, info.FullMethod, untimed, err, recover()) }()
	within, err := s.admit(ctx, info.FullMethod)
	if err != nil {
		return err
	}
	if open(info.FullMethod) {
		done, ok := s.watching(ctx)
		if !ok {
			return server.ErrCrowded
		}
		defer done()
	}
	return next(srv, admitted{stream, within})
}

// admitted is a stream of a caller that was let in.
type admitted struct {
	grpc.ServerStream
	ctx context.Context
}

func (a admitted) Context() context.Context { return a.ctx }

// outcome counts a call, and is its error as its caller gets it. A panic becomes one: it would end the process, and with it
// what others asked for.
func (s *Server) outcome(ctx context.Context, method string, began time.Time, err error, panicked any) error {
	code := server.OK
	switch {
	case panicked != nil:
		code, err = s.refuse(ctx, method, &panicError{panicked, debug.Stack()})
	case err == nil || open(method) && !errors.Is(err, server.ErrCrowded): // theirs are gRPC's own
	default:
		code, err = s.refuse(ctx, method, err)
	}
	s.count(method, code, began)
	return err
}

// panicError is a panic of a call.
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
