package grpcapi

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Limits on what callers may do to the server.
const (
	maxRequest   = 64 << 10        // bytes of a message
	maxHeader    = 16 << 10        // bytes of a call's metadata
	maxCalls     = 100             // at a time over one connection: that is how many answers can wait to be taken
	shakeWithin  = 5 * time.Second // from the connection's begin to the end of both handshakes
	minPing      = 5 * time.Second // between two pings of a caller: no gRPC library sends them as often by itself
	pingAfter    = time.Minute     // of silence, to see whether the caller is still there
	pongWithin   = 20 * time.Second
	maxIdle      = 15 * time.Minute // of a connection without calls
	maxAge       = 30 * time.Minute // of a connection, so that balancers can spread callers anew; 10 % more or less
	finishWithin = time.Minute      // of calls, once their connection has grown old
	callWindow   = maxRequest       // bytes of a call that are on the way to the server
	window       = 1 << 20          // bytes of all calls of a connection together
)

// Limits on what is sent to callers and not taken by them.
const (
	streamSize = 32 << 10         // bytes that a stream takes beside
	sendAhead  = 32 << 10         // bytes of a stream, and one message more
	sendMost   = 16               // messages of a stream
	sendWithin = 30 * time.Second // until there is room for the next message of a stream: then it ends
	takeWithin = time.Minute      // until an answer is taken: then the connection ends
)

// workers are goroutines that serve one call after the other: a new one for each spends a quarter of a small call's
// time on growing its stack. When all are taken, the next call gets a new one.
const workers = 16

// limits are the options that say so. The windows are fixed: what gRPC does to find the best takes time, and requests are
// small.
func limits() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.MaxConcurrentStreams(maxCalls),
		grpc.ConnectionTimeout(shakeWithin),
		grpc.NumStreamWorkers(workers),
		grpc.ReadBufferSize(4 << 10),
		grpc.StaticStreamWindowSize(callWindow),
		grpc.StaticConnWindowSize(window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: maxIdle, MaxConnectionAge: maxAge, MaxConnectionAgeGrace: finishWithin,
			Time: pingAfter, Timeout: pongWithin,
		}),
	}
}
