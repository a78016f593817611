package httpapi

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

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
		writeAnswer(w, code.HTTP(), Locked{Failure{Error{code, err.Error()}}, secret.File})
		return
	}
	writeError(w, code, err.Error())
}

// refused notes that a service refuses a call, and sets the headers that say so. It returns the code of the error;
// false: nobody is there to tell.
func refused(w http.ResponseWriter, r *http.Request, s *calls.Service, err error) (codes.Code, bool) {
	if r.Context().Err() != nil && auth.Revoked(r.Context(), nil) == nil { // the client went away
		came(w, codes.Gone)
		return "", false
	}
	code := s.Refuse(Origin(r), callOf(r), err)
	came(w, code)
	if code == codes.Unauthenticated {
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
	s.Audited(calls.Audit{Origin: Origin(r), Call: callOf(r), Outcome: codes.CrossOrigin})
	writeError(w, codes.CrossOrigin, err.Error())
}

// answer writes the result of a call.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	writeAnswer(w, http.StatusOK, v)
}
