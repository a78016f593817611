package calls

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

// inputError is a mistake of the caller.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// Input marks an error as the caller's mistake: its code is codes.BadRequest.
func Input(err error) error { return inputError{err} }

// CodeOf returns the code of an error that the service has returned.
func CodeOf(err error) codes.Code {
	var input inputError
	var busy *busyError
	var scattered *scatteredError
	var detached *detachedError
	var quota *quotaError
	var limit *auth.LimitError
	var exists *peer.ExistsError
	var refused *peer.RefusedError
	var prefix *cluster.PrefixError
	var skip *peer.SkipError
	var majority *MajorityError
	var unreadable *cluster.UnreadableError
	var clock *peer.ClockError
	var order *peer.OrderError
	var elsewhere *ElsewhereError
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case errors.As(err, &elsewhere):
		return elsewhere.Code
	case errors.As(err, &input):
		return codes.BadRequest
	case is(auth.ErrUnauthenticated):
		return codes.Unauthenticated
	case is(auth.ErrForbidden):
		return codes.Forbidden
	case errors.As(err, &limit):
		return codes.RateLimited
	case errors.As(err, &quota):
		return codes.Quota
	case errors.As(err, &exists):
		return codes.Exists
	case errors.As(err, &refused), errors.As(err, &prefix), errors.As(err, &skip), errors.As(err, &majority), is(quorum.ErrClient):
		return codes.Refused
	case is(errNoQuorum):
		return codes.NoQuorum
	case is(errInUse):
		return codes.InUse
	case is(peer.ErrAttachedAgain):
		return codes.AttachedAgain
	case is(peer.ErrNoSequencer), is(peer.ErrDestroyed):
		return codes.UnknownSequencer
	case is(firn.ErrLifetime):
		return codes.Lifetime
	case is(peer.ErrUnfit):
		return codes.Unfit
	case is(peer.ErrCopied):
		return codes.Copied
	case is(peer.ErrWaiting):
		return codes.Waiting
	case is(peer.ErrDetached), is(peer.ErrDrained), errors.As(err, &detached):
		return codes.Detached
	case errors.As(err, &unreadable):
		return codes.Unreadable
	case errors.As(err, &clock), errors.As(err, &order):
		return codes.Clock
	case is(peer.ErrNotReady), is(auth.ErrNotKept):
		return codes.NotReady
	case errors.As(err, &busy), errors.As(err, &scattered), is(ErrCrowded):
		return codes.Overloaded
	case is(store.ErrUnavailable), is(store.ErrAmbiguous), is(context.DeadlineExceeded):
		return codes.Unavailable
	default:
		return codes.Internal
	}
}

// RetryAfter returns how long to wait before a retry; zero: a retry does not help.
func RetryAfter(err error) time.Duration {
	var limit *auth.LimitError
	if errors.As(err, &limit) {
		return limit.RetryAfter
	}
	if elsewhere, ok := errors.AsType[*ElsewhereError](err); ok {
		return elsewhere.Retry
	}
	return CodeOf(err).Retry()
}
