package grpcapi

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/member"
)

// Domain is the domain of each google.rpc.ErrorInfo of firn. The reason is a server.Code.
const Domain = "firn"

// statusCodes are the gRPC codes. UNAVAILABLE is what libraries retry, preferably on another server. It is for errors where
// that can help, and not for an overloaded server.
var statusCodes = map[server.Code]codes.Code{
	server.BadRequest:       codes.InvalidArgument,
	server.Unauthenticated:  codes.Unauthenticated,
	server.Forbidden:        codes.PermissionDenied,
	server.UnknownSequencer: codes.NotFound,
	server.Exists:           codes.AlreadyExists,
	server.InUse:            codes.FailedPrecondition,
	server.AttachedAgain:    codes.FailedPrecondition,
	server.Refused:          codes.FailedPrecondition,
	server.RateLimited:      codes.ResourceExhausted,
	server.Quota:            codes.ResourceExhausted,
	server.Overloaded:       codes.ResourceExhausted,
	server.Internal:         codes.Internal,
	server.Unreadable:       codes.Internal,
	server.NotReady:         codes.Unavailable,
	server.Clock:            codes.Unavailable,
	server.Copied:           codes.Unavailable,
	server.Waiting:          codes.Unavailable,
	server.Detached:         codes.Unavailable,
	server.Unfit:            codes.Unavailable,
	server.Unavailable:      codes.Unavailable,
	server.Lifetime:         codes.Unavailable,
}

// StatusOf is the gRPC code of a code of the service; OK: there is none.
func StatusOf(code server.Code) codes.Code { return statusCodes[code] }

// errGone is returned when an answer can't be sent.
var errGone = errors.New("the caller went away")

// maxMessage limits the bytes of an error's message. It is sent in a header, for which some libraries allow 8 KiB.
const maxMessage = 2 << 10

// refuse returns the code and the status of a call that fails.
func (s *Server) refuse(ctx context.Context, method string, err error) (server.Code, error) {
	var panicked *panicError
	message := err.Error()
	switch bug := errors.As(err, &panicked); {
	case bug:
		message = "a bug in firn; the server has logged it"
	case ctx.Err() != nil:
		return server.Gone, status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, errGone):
		return server.Gone, status.Error(codes.Canceled, message)
	}
	code := s.service.Refuse(origin(ctx), method, err)
	if len(message) > maxMessage {
		message = message[:maxMessage] + "..."
	}
	answer := status.New(StatusOf(code), strings.ToValidUTF8(message, "�"))
	detailed, detailErr := answer.WithDetails(details(code, err)...)
	if detailErr != nil {
		return code, answer.Err()
	}
	return code, detailed.Err()
}

// origin is where a call comes from.
func origin(ctx context.Context) server.Origin {
	from := server.Origin{Protocol: "grpc"}
	if p, ok := peer.FromContext(ctx); ok {
		from.Remote = p.Addr.String()
	}
	return from
}

// details describe an error for programs.
func details(code server.Code, err error) []protoadapt.MessageV1 {
	all := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: string(code), Domain: Domain}}
	if after := server.RetryAfter(err); after > 0 {
		all = append(all, &errdetails.RetryInfo{RetryDelay: durationpb.New(after.Round(time.Millisecond))})
	}
	if exists, ok := errors.AsType[*member.ExistsError](err); ok {
		all = append(all, protoadapt.MessageV1Of(conflictMessage(exists)))
	}
	return all
}
