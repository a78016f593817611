package etcdserver

import (
	"context"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
)

// limit refuses calls that may not be made. Those that come through the socket of its path may be anything.
type limit struct {
	path string
	may  func(method string, message any) bool
}

// options have a server ask it about each call, and about each message of a stream.
func (l limit) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, message any, info *grpc.UnaryServerInfo,
			handle grpc.UnaryHandler,
		) (any, error) {
			if !l.admits(ctx, info.FullMethod, message) {
				return nil, rpctypes.ErrGRPCPermissionDenied
			}
			return handle(ctx, message)
		}),
		grpc.ChainStreamInterceptor(func(server any, s grpc.ServerStream, info *grpc.StreamServerInfo,
			handle grpc.StreamHandler,
		) error {
			if !l.admits(s.Context(), info.FullMethod, nil) {
				return rpctypes.ErrGRPCPermissionDenied
			}
			return handle(server, limitedStream{s, l, info.FullMethod})
		}),
	}
}

func (l limit) admits(ctx context.Context, method string, message any) bool {
	from, ok := peer.FromContext(ctx)
	if ok && from.LocalAddr != nil && from.LocalAddr.String() == l.path {
		return true
	}
	return l.may != nil && l.may(method, message)
}

// limitedStream ends with the first message that may not be sent.
type limitedStream struct {
	grpc.ServerStream
	limit  limit
	method string
}

func (s limitedStream) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	if !s.limit.admits(s.Context(), s.method, message) {
		return rpctypes.ErrGRPCPermissionDenied
	}
	return nil
}
