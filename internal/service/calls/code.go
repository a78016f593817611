package calls

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/store"
)

// Input marks an error as the caller's mistake: its code is codes.BadRequest.
func Input(err error) error { return reason.With(string(codes.BadRequest), err) }

// CodeOf returns the code of an error that the service has returned: its reason, if it has one.
func CodeOf(err error) codes.Code {
	is := func(target error) bool { return errors.Is(err, target) }
	why := reason.Of(err)
	switch {
	case why != "":
		return codes.Code(why)
	case is(firn.ErrLifetime):
		return codes.Lifetime
	case is(peer.ErrNotReady):
		return codes.NotReady
	case is(store.ErrUnavailable), is(store.ErrAmbiguous), is(context.DeadlineExceeded):
		return codes.Unavailable
	default:
		return codes.Internal
	}
}

// RetryAfter returns how long to wait before a retry; zero: a retry does not help.
func RetryAfter(err error) time.Duration {
	if limit, ok := errors.AsType[*auth.LimitError](err); ok {
		return limit.RetryAfter
	}
	if elsewhere, ok := errors.AsType[*ElsewhereError](err); ok {
		return elsewhere.Retry
	}
	return CodeOf(err).Retry()
}
