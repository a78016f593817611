package grpcapi

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	grpccodes "google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// Domain is the domain of each google.rpc.ErrorInfo of firn. The reason is a codes.Code.
const Domain = "firn"

// errGone is returned when an answer can't be sent.
var errGone = errors.New("the caller went away")

// maxMessage limits the bytes of an error's message. It is sent in a header, for which some libraries allow 8 KiB.
const maxMessage = 2 << 10

// refuse returns the code and the status of a call that fails.
func (s *Server) refuse(ctx context.Context, method string, err error) (codes.Code, error) {
	var panicked *panicError
	message := err.Error()
	switch bug := errors.As(err, &panicked); {
	case bug:
		message = "a bug in firn; the server has logged it"
	case ctx.Err() != nil:
		return codes.Gone, status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, errGone):
		return codes.Gone, status.Error(grpccodes.Canceled, message)
	}
	code := s.service.Refuse(origin(ctx), method, err)
	if len(message) > maxMessage {
		message = message[:maxMessage] + "..."
	}
	answer := status.New(code.GRPC(), strings.ToValidUTF8(message, "�"))
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
func details(code codes.Code, err error) []protoadapt.MessageV1 {
	all := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: string(code), Domain: Domain}}
	if after := calls.RetryAfter(err); after > 0 {
		all = append(all, &errdetails.RetryInfo{RetryDelay: durationpb.New(after.Round(time.Millisecond))})
	}
	if exists, ok := errors.AsType[*peer.ExistsError](err); ok {
		all = append(all, protoadapt.MessageV1Of(conflictMessage(exists)))
	}
	return all
}
