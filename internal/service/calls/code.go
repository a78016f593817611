package calls

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

// Code is a kind of error that programs tell apart. Each protocol sends it in its own way.
type Code string

// The codes.
const (
	BadRequest       Code = "bad_request"       // a wrong count, ID, name or definition; the message says what would be right
	Unauthenticated  Code = "unauthenticated"   // the token, or the node's own secret, is missing or wrong
	Forbidden        Code = "forbidden"         // the token, or a call without a token, does not allow this
	UnknownSequencer Code = "unknown_sequencer" // no sequencer has this name, or it was destroyed
	Exists           Code = "exists"            // a sequencer of this name has another definition
	InUse            Code = "in_use"            // nobody can destroy the default sequencer
	AttachedAgain    Code = "attached_again"    // the member attached again during the call
	Refused          Code = "refused"           // the cluster's rules, or the key of this node, do not allow this change now; the message says why
	RateLimited      Code = "rate_limited"      // more IDs than the token allows; without a time to retry, it never allows so many in one call
	Quota            Code = "quota"             // the cluster has as many sequencers as the node or the token allows; destroy some, or raise --max-sequencers or the quota of the token
	Internal         Code = "internal"          // a bug, or the store refused a read; the node logs it
	Unreadable       Code = "unreadable"        // the log has an entry that this program can't read, and the node's time is used up; start a newer program, or see firn cluster skip
	NotReady         Code = "not_ready"         // the node can't give IDs now: it has not joined yet, has reached its horizon, or is stopping; try another server, or retry
	Clock            Code = "clock"             // this machine's clock disagrees with those of most other members, or its IDs would be smaller than existing ones; try another server
	Copied           Code = "copied"            // the node's process was copied, or set back to an earlier state, as by a snapshot of its machine, and starts over as a new member; try another server
	Waiting          Code = "waiting"           // all node IDs are taken, and the member waits for one; try another server
	Detached         Code = "detached"          // the member is not attached, and the caller's token, the sequencer's definition or --no-auto-attach does not let this call attach it, or an administrator has drained it; try another server
	Unfit            Code = "unfit"             // the member's window is too short for the tick, or the sequencer has none of the node IDs that the member may use; try another server
	Unavailable      Code = "unavailable"       // the store does not answer; it may have made a change or not
	Overloaded       Code = "overloaded"        // the call wants more IDs than the node can make in 10 s, or the node has too many calls at a time
	Lifetime         Code = "lifetime"          // the layout's time has run out, or has not begun
	NoQuorum         Code = "no_quorum"         // the node was started without --quorum
	CrossOrigin      Code = "cross_origin"      // a browser sent the call from another site's page
)

// inputError is a mistake of the caller.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// Input marks an error as the caller's mistake: its code is BadRequest.
func Input(err error) error { return inputError{err} }

// CodeOf returns the code of an error that the service has returned.
func CodeOf(err error) Code {
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
		return BadRequest
	case is(auth.ErrUnauthenticated):
		return Unauthenticated
	case is(auth.ErrForbidden):
		return Forbidden
	case errors.As(err, &limit):
		return RateLimited
	case errors.As(err, &quota):
		return Quota
	case errors.As(err, &exists):
		return Exists
	case errors.As(err, &refused), errors.As(err, &prefix), errors.As(err, &skip), errors.As(err, &majority), is(quorum.ErrClient):
		return Refused
	case is(errNoQuorum):
		return NoQuorum
	case is(errInUse):
		return InUse
	case is(peer.ErrAttachedAgain):
		return AttachedAgain
	case is(peer.ErrNoSequencer), is(peer.ErrDestroyed):
		return UnknownSequencer
	case is(firn.ErrLifetime):
		return Lifetime
	case is(peer.ErrUnfit):
		return Unfit
	case is(peer.ErrCopied):
		return Copied
	case is(peer.ErrWaiting):
		return Waiting
	case is(peer.ErrDetached), is(peer.ErrDrained), errors.As(err, &detached):
		return Detached
	case errors.As(err, &unreadable):
		return Unreadable
	case errors.As(err, &clock), errors.As(err, &order):
		return Clock
	case is(peer.ErrNotReady), is(auth.ErrNotKept):
		return NotReady
	case errors.As(err, &busy), errors.As(err, &scattered), is(ErrCrowded):
		return Overloaded
	case is(store.ErrUnavailable), is(store.ErrAmbiguous), is(context.DeadlineExceeded):
		return Unavailable
	default:
		return Internal
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
	switch CodeOf(err) {
	case NotReady, Clock, Copied, Waiting, Detached, Unfit, Unavailable, Overloaded, Lifetime:
		return time.Second
	default:
		return 0
	}
}
