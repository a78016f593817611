package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
)

// inputError is a mistake of who called.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// refuse answers a call that gets no ID, or can't do what it was to do.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var input inputError
	var busy *busyError
	var detached *detachedError
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case r.Context().Err() != nil: // the client went away: there is nobody to tell
	case errors.As(err, &input):
		badRequest(w, err)
	case is(member.ErrNoSequencer), is(member.ErrDestroyed):
		writeError(w, http.StatusNotFound, "unknown_sequencer", err.Error())
	case is(member.ErrUnfit):
		unavailable(w, "unfit", err.Error())
	case is(member.ErrWaiting):
		unavailable(w, "waiting", err.Error())
	case is(member.ErrDetached), errors.As(err, &detached):
		unavailable(w, "detached", err.Error())
	case is(member.ErrNotReady):
		unavailable(w, "not_ready", err.Error())
	case errors.As(err, &busy):
		unavailable(w, "overloaded", err.Error())
	case is(store.ErrUnavailable), is(store.ErrAmbiguous), is(context.DeadlineExceeded):
		unavailable(w, "unavailable", err.Error())
	case is(firn.ErrLifetime):
		unavailable(w, "lifetime", err.Error())
	default:
		h.log.Error("a call failed", "method", r.Method, "path", r.URL.Path, "err", err)
		writeError(w, http.StatusInternalServerError, "internal", err.Error())
	}
}
