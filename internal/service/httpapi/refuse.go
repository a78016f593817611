package httpapi

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
)

// Codes that only HTTP has, besides calls.CrossOrigin.
const (
	methodNotAllowed calls.Code = "method_not_allowed" // the path takes other methods: see the `Allow` header
	notFound         calls.Code = "not_found"          // no such path
	tooLarge         calls.Code = "too_large"          // the body has more than 64 KiB
	unknownPosition  calls.Code = "unknown_position"   // the log no longer has, or does not yet have, this position or time; the message says which it has
)

// statuses are the HTTP statuses of the codes.
var statuses = map[calls.Code]int{
	calls.BadRequest:       http.StatusBadRequest,
	calls.Unauthenticated:  http.StatusUnauthorized,
	calls.Forbidden:        http.StatusForbidden,
	calls.CrossOrigin:      http.StatusForbidden,
	calls.UnknownSequencer: http.StatusNotFound,
	calls.NoQuorum:         http.StatusNotFound,
	notFound:               http.StatusNotFound,
	unknownPosition:        http.StatusNotFound,
	methodNotAllowed:       http.StatusMethodNotAllowed,
	calls.Exists:           http.StatusConflict,
	calls.InUse:            http.StatusConflict,
	calls.AttachedAgain:    http.StatusConflict,
	calls.Refused:          http.StatusConflict,
	tooLarge:               http.StatusRequestEntityTooLarge,
	calls.RateLimited:      http.StatusTooManyRequests,
	calls.Quota:            http.StatusTooManyRequests,
	calls.Internal:         http.StatusInternalServerError,
	calls.Unreadable:       http.StatusInternalServerError,
	calls.NotReady:         http.StatusServiceUnavailable,
	calls.Clock:            http.StatusServiceUnavailable,
	calls.Copied:           http.StatusServiceUnavailable,
	calls.Waiting:          http.StatusServiceUnavailable,
	calls.Detached:         http.StatusServiceUnavailable,
	calls.Unfit:            http.StatusServiceUnavailable,
	calls.Unavailable:      http.StatusServiceUnavailable,
	calls.Overloaded:       http.StatusServiceUnavailable,
	calls.Lifetime:         http.StatusServiceUnavailable,
}

// StatusOf is the HTTP status of a code; zero: callers never get it.
func StatusOf(code calls.Code) int { return statuses[code] }

// refuse answers a call that fails.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	Refuse(w, r, h.service, err)
}

// Refuse answers a call that a service refuses, with a Failure.
func Refuse(w http.ResponseWriter, r *http.Request, s *calls.Service, err error) {
	code, ok := refused(w, r, s, err)
	if !ok {
		return
	}
	if secret, ok := errors.AsType[*auth.SecretError](err); ok {
		writeAnswer(w, StatusOf(code), Locked{Failure{Error{code, err.Error()}}, secret.File})
		return
	}
	writeError(w, code, err.Error())
}

// refused notes that a service refuses a call, and sets the headers that say so. It returns the code of the error; false:
// nobody is there to tell.
func refused(w http.ResponseWriter, r *http.Request, s *calls.Service, err error) (calls.Code, bool) {
	if r.Context().Err() != nil && auth.Revoked(r.Context(), nil) == nil { // the client went away
		came(w, calls.Gone)
		return "", false
	}
	code := s.Refuse(Origin(r), callOf(r), err)
	came(w, code)
	if code == calls.Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if after := calls.RetryAfter(err); after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	return code, true
}

// Origin is where a call comes from.
func Origin(r *http.Request) calls.Origin {
	return calls.Origin{Protocol: "http", Remote: r.RemoteAddr}
}

// callOf names a call in the log, by its pattern: its path may contain anything.
func callOf(r *http.Request) string { return r.Method + " " + r.Pattern }

// RefuseCrossOrigin answers a browser that another site's page has sent here.
func RefuseCrossOrigin(w http.ResponseWriter, r *http.Request, s *calls.Service, err error) {
	s.Audited(calls.Audit{Origin: Origin(r), Call: callOf(r), Outcome: calls.CrossOrigin})
	writeError(w, calls.CrossOrigin, err.Error())
}

// answer writes the result of a call.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	writeAnswer(w, http.StatusOK, v)
}
