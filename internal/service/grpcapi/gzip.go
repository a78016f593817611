package grpcapi

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
)

// errCompressed is returned to callers who compress. Requests and answers are short, and IDs hardly get shorter:
// compression costs the node many times the work, and memory outside of its budget. gRPC offers it because a package
// that sends traces registers it.
var errCompressed = errors.New("the call is compressed, and requests and answers are too short for that; call " +
	"without " +
	"compression")

// unzip refuses compressed messages before gRPC decompresses them.
type unzip struct{}

func (unzip) Type() string                 { return "gzip" }
func (unzip) Do(io.Reader) ([]byte, error) { return nil, errCompressed }

// zipped reports whether gRPC would compress the answer of a call, as its request says that it may be compressed.
func zipped(ctx context.Context) bool {
	s, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	if !ok {
		return false
	}
	by := s.RecvCompress()
	return by != "" && by != encoding.Identity
}
