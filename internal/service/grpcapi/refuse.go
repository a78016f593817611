package grpcapi

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
)

// Domain is the domain of each google.rpc.ErrorInfo of firn. The reason is a calls.Code.
const Domain = "firn"

// statusCodes are the gRPC codes. UNAVAILABLE is what libraries retry, preferably on another server. It is for errors where
// that can help, and not for an overloaded server.
var statusCodes = map[calls.Code]codes.Code{
	calls.BadRequest:       codes.InvalidArgument,
	calls.Unauthenticated:  codes.Unauthenticated,
	calls.Forbidden:        codes.PermissionDenied,
	calls.UnknownSequencer: codes.NotFound,
	calls.Exists:           codes.AlreadyExists,
	calls.InUse:            codes.FailedPrecondition,
	calls.AttachedAgain:    codes.FailedPrecondition,
	calls.Refused:          codes.FailedPrecondition,
	calls.RateLimited:      codes.ResourceExhausted,
	calls.Quota:            codes.ResourceExhausted,
	calls.Overloaded:       codes.ResourceExhausted,
	calls.Internal:         codes.Internal,
	calls.Unreadable:       codes.Internal,
	calls.NotReady:         codes.Unavailable,
	calls.Clock:            codes.Unavailable,
	calls.Copied:           codes.Unavailable,
	calls.Waiting:          codes.Unavailable,
	calls.Detached:         codes.Unavailable,
	calls.Unfit:            codes.Unavailable,
	calls.Unavailable:      codes.Unavailable,
	calls.Lifetime:         codes.Unavailable,
}

// StatusOf is the gRPC code of a code of the service; OK: there is none.
func StatusOf(code calls.Code) codes.Code { return statusCodes[code] }

// errGone is returned when an answer can't be sent.
var errGone = errors.New("the caller went away")

// maxMessage limits the bytes of an error's message. It is sent in a header, for which some libraries allow 8 KiB.
const maxMessage = 2 << 10

// refuse returns the code and the status of a call that fails.
func (s *Server) refuse(ctx context.Context, method string, err error) (calls.Code, error) {
	var panicked *panicError
	message := err.Error()
	switch bug := errors.As(err, &panicked); {
	case bug:
		message = "a bug in firn; the server has logged it"
	case ctx.Err() != nil:
		return calls.Gone, status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, errGone):
		return calls.Gone, status.Error(codes.Canceled, message)
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
func origin(ctx context.Context) calls.Origin {
	from := calls.Origin{Protocol: "grpc"}
	if p, ok := grpcpeer.FromContext(ctx); ok {
		from.Remote = p.Addr.String()
	}
	return from
}

// details describe an error for programs.
func details(code calls.Code, err error) []protoadapt.MessageV1 {
	all := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: string(code), Domain: Domain}}
	if after := calls.RetryAfter(err); after > 0 {
		all = append(all, &errdetails.RetryInfo{RetryDelay: durationpb.New(after.Round(time.Millisecond))})
	}
	if exists, ok := errors.AsType[*peer.ExistsError](err); ok {
		all = append(all, protoadapt.MessageV1Of(conflictMessage(exists)))
	}
	return all
}
