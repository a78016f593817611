package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/store"
)

// refusals are the errors after which etcd has applied nothing: it checks these things
// before it applies a transaction, or before it proposes one. The list is complete and
// short on purpose: any other error may come after the transaction was proposed. A
// server that says "database space exceeded", for example, has applied it.
var refusals = []error{
	rpctypes.ErrDuplicateKey,
	rpctypes.ErrTooManyOps,
	rpctypes.ErrRequestTooLarge,
	rpctypes.ErrCompacted,

	rpctypes.ErrAuthFailed,
	rpctypes.ErrAuthNotEnabled,
	rpctypes.ErrInvalidAuthMgmt,
	rpctypes.ErrInvalidAuthToken,
	rpctypes.ErrPermissionDenied,
	rpctypes.ErrPermissionNotGranted,
	rpctypes.ErrRoleEmpty,
	rpctypes.ErrRoleNotFound,
	rpctypes.ErrRoleNotGranted,
	rpctypes.ErrRootRoleNotExist,
	rpctypes.ErrRootUserNotExist,
	rpctypes.ErrUserEmpty,
	rpctypes.ErrUserNotFound,
}

// passing are refusals after which the same call may succeed.
var passing = []error{
	rpctypes.ErrTooManyRequests,
	rpctypes.ErrAuthOldRevision,
}

// isAny tells whether err is one of etcd's errors on the list, as the client wraps it or
// as it came over the wire.
func isAny(err error, list ...error) bool {
	var etcd rpctypes.EtcdError
	if !errors.As(rpctypes.Error(err), &etcd) {
		return false
	}
	return slices.ContainsFunc(list, func(known error) bool { return errors.Is(etcd, known) })
}

// writeError says what an error means to a transaction. Every error that is not certainly a
// failure is ambiguous, also the end of a context and a connection that could not be made.
func writeError(call string, err error) error {
	switch {
	case isAny(err, rpctypes.ErrLeaseNotFound):
		return wrap(call, store.ErrSessionEnded, err)
	case errors.Is(err, errClosed), isAny(err, refusals...), isAny(err, passing...):
		return callError(call, err) // nothing was applied
	default:
		return wrap(call, store.ErrAmbiguous, err)
	}
}

// callError says what an error means to any other call.
func callError(call string, err error) error {
	switch {
	case errors.Is(err, errClosed):
		return err
	case isAny(err, refusals...):
		return wrap(call, store.ErrRefused, err)
	default:
		return wrap(call, store.ErrUnavailable, err)
	}
}

// wrap keeps both: errors.Is finds the port's error and the cause.
func wrap(call string, meaning, cause error) error {
	return fmt.Errorf("%s: %w: %w", call, meaning, cause)
}

// inOneLine joins errors, of which there is at least one, as errors.Join does in several lines.
func inOneLine(errs []error) error {
	err := errs[0]
	for _, more := range errs[1:] {
		err = fmt.Errorf("%w, %w", err, more)
	}
	return err
}

// tellWhy makes a call that could not get a connection say why, as in "dial tcp
// 127.0.0.1:2379: connect: connection refused". Without it the client says that the
// deadline was exceeded.
func tellWhy(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, conn, options...)
	if err == nil {
		return nil
	}
	const before = "connection error: desc = "
	text := status.Convert(err).Message()
	at := strings.LastIndex(text, before)
	if at < 0 {
		return err
	}
	why, unquoted := strconv.Unquote(text[at+len(before):])
	why, unmade := strings.CutPrefix(why, "transport: ")
	if unquoted != nil || !unmade {
		return err
	}
	return errors.New(strings.TrimPrefix(why, "Error while dialing: "))
}
