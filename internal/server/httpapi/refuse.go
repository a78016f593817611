package httpapi

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
)

// Codes that only HTTP has, besides server.CrossOrigin.
const (
	methodNotAllowed server.Code = "method_not_allowed" // the path takes other methods: see the `Allow` header
	notFound         server.Code = "not_found"          // no such path
	tooLarge         server.Code = "too_large"          // the body has more than 64 KiB
	unknownPosition  server.Code = "unknown_position"   // the log no longer has, or does not yet have, this position or time; the message says which it has
)

// statuses are the HTTP statuses of the codes.
var statuses = map[server.Code]int{
	server.BadRequest:       http.StatusBadRequest,
	server.Unauthenticated:  http.StatusUnauthorized,
	server.Forbidden:        http.StatusForbidden,
	server.CrossOrigin:      http.StatusForbidden,
	server.UnknownSequencer: http.StatusNotFound,
	server.NoQuorum:         http.StatusNotFound,
	notFound:                http.StatusNotFound,
	unknownPosition:         http.StatusNotFound,
	methodNotAllowed:        http.StatusMethodNotAllowed,
	server.Exists:           http.StatusConflict,
	server.InUse:            http.StatusConflict,
	server.AttachedAgain:    http.StatusConflict,
	server.Refused:          http.StatusConflict,
	tooLarge:                http.StatusRequestEntityTooLarge,
	server.RateLimited:      http.StatusTooManyRequests,
	server.Quota:            http.StatusTooManyRequests,
	server.Internal:         http.StatusInternalServerError,
	server.Unreadable:       http.StatusInternalServerError,
	server.NotReady:         http.StatusServiceUnavailable,
	server.Clock:            http.StatusServiceUnavailable,
	server.Copied:           http.StatusServiceUnavailable,
	server.Waiting:          http.StatusServiceUnavailable,
	server.Detached:         http.StatusServiceUnavailable,
	server.Unfit:            http.StatusServiceUnavailable,
	server.Unavailable:      http.StatusServiceUnavailable,
	server.Overloaded:       http.StatusServiceUnavailable,
	server.Lifetime:         http.StatusServiceUnavailable,
}

// StatusOf is the HTTP status of a code; zero: callers never get it.
func StatusOf(code server.Code) int { return statuses[code] }

// refuse answers a call that fails.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	Refuse(w, r, h.service, err)
}

// Refuse answers a call that a service refuses, with a Failure.
func Refuse(w http.ResponseWriter, r *http.Request, s *server.Service, err error) {
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
func refused(w http.ResponseWriter, r *http.Request, s *server.Service, err error) (server.Code, bool) {
	if r.Context().Err() != nil && auth.Revoked(r.Context(), nil) == nil { // the client went away
		came(w, server.Gone)
		return "", false
	}
	code := s.Refuse(Origin(r), callOf(r), err)
	came(w, code)
	if code == server.Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if after := server.RetryAfter(err); after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	return code, true
}

// Origin is where a call comes from.
func Origin(r *http.Request) server.Origin {
	return server.Origin{Protocol: "http", Remote: r.RemoteAddr}
}

// callOf names a call in the log, by its pattern: its path may contain anything.
func callOf(r *http.Request) string { return r.Method + " " + r.Pattern }

// RefuseCrossOrigin answers a browser that another site's page has sent here.
func RefuseCrossOrigin(w http.ResponseWriter, r *http.Request, s *server.Service, err error) {
	s.Audited(server.Audit{Origin: Origin(r), Call: callOf(r), Outcome: server.CrossOrigin})
	writeError(w, server.CrossOrigin, err.Error())
}

// answer writes the result of a call.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	writeAnswer(w, http.StatusOK, v)
}
