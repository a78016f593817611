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
	maxCalls     = 100             // at a time over one connection, so as many unread answers
	shakeWithin  = 5 * time.Second // for both handshakes of a connection
	minPing      = 5 * time.Second // between pings of a caller; gRPC libraries do not send them more often by default
	pingAfter    = time.Minute     // of silence, then the server pings
	pongWithin   = 20 * time.Second
	maxIdle      = 15 * time.Minute // of a connection without calls
	maxAge       = 30 * time.Minute // of a connection, ±10 %, so that balancers can spread callers again
	finishWithin = time.Minute      // for calls on a connection that has reached maxAge
	callWindow   = maxRequest       // bytes of a call on the way to the server
	window       = 1 << 20          // bytes of all calls of a connection together
)

// Limits on what is sent to callers and not read by them.
const (
	streamSize = 32 << 10         // bytes that a stream needs besides its messages
	sendAhead  = 60 << 10         // bytes of a stream, plus one message; below 64 KiB, at which gRPC blocks
	sendMost   = 16               // messages of a stream
	sendWithin = 30 * time.Second // for room for the next message of a stream, which then ends
	takeWithin = time.Minute      // for reading an answer, then the connection ends
)

// workers is the number of goroutines that serve call after call: a new goroutine spends a quarter of the time of a
// small call on growing its stack. When all are busy, a call gets a new one.
const workers = 16

// limits are the options for these limits. The windows are fixed, as requests are small and gRPC needs time to tune
// them.
func limits() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxRequest),
		// gRPC supports this throughout 1.x, and nothing else keeps it from decompressing.
		grpc.RPCDecompressor(unzip{}), //nolint:staticcheck // see above
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
