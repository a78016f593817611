package httpapi

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
)

// statuses are those of the codes.
var statuses = map[server.Code]int{
	server.BadRequest:       http.StatusBadRequest,
	server.Unauthenticated:  http.StatusUnauthorized,
	server.Forbidden:        http.StatusForbidden,
	server.UnknownSequencer: http.StatusNotFound,
	server.Exists:           http.StatusConflict,
	server.InUse:            http.StatusConflict,
	server.AttachedAgain:    http.StatusConflict,
	server.RateLimited:      http.StatusTooManyRequests,
	server.Quota:            http.StatusTooManyRequests,
	server.Internal:         http.StatusInternalServerError,
	server.Unreadable:       http.StatusInternalServerError,
	server.NotReady:         http.StatusServiceUnavailable,
	server.Waiting:          http.StatusServiceUnavailable,
	server.Detached:         http.StatusServiceUnavailable,
	server.Unfit:            http.StatusServiceUnavailable,
	server.Unavailable:      http.StatusServiceUnavailable,
	server.Overloaded:       http.StatusServiceUnavailable,
	server.Lifetime:         http.StatusServiceUnavailable,
}

// StatusOf is the HTTP status that goes with a code of the service.
func StatusOf(code server.Code) int { return statuses[code] }

// refuse answers a call that gets no ID, or can't do what it was to do.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	Refuse(w, r, h.service, err)
}

// Refuse answers a call that a service refuses, with a Failure.
func Refuse(w http.ResponseWriter, r *http.Request, s *server.Service, err error) {
	if r.Context().Err() != nil { // the client went away: there is nobody to tell
		came(w, server.Gone)
		return
	}
	code := s.Refuse(Origin(r), callOf(r), err)
	if code == server.Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if after := server.RetryAfter(err); after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	var secret *auth.SecretError
	if errors.As(err, &secret) {
		came(w, code)
		writeAnswer(w, StatusOf(code), Locked{Failure{Error{code, err.Error()}}, secret.File})
		return
	}
	writeError(w, StatusOf(code), code, err.Error())
}

// Origin is where a call comes from.
func Origin(r *http.Request) server.Origin {
	return server.Origin{Protocol: "http", Remote: r.RemoteAddr}
}

// callOf is what a call is called in the log: its path may hold anything.
func callOf(r *http.Request) string { return r.Method + " " + r.Pattern }

// RefuseCrossOrigin answers a browser that another site's page has sent here.
func RefuseCrossOrigin(w http.ResponseWriter, r *http.Request, s *server.Service, err error) {
	s.Audited(server.Audit{Origin: Origin(r), Call: callOf(r), Outcome: server.CrossOrigin})
	writeError(w, http.StatusForbidden, server.CrossOrigin, err.Error())
}

// answer writes what a call came to.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	writeAnswer(w, http.StatusOK, v)
}
