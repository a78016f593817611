package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
)

// Replacement says which machine takes the place of which.
type Replacement struct {
	Lost    string `json:"lost"`
	Instead string `json:"instead"`
}

// Removal says which machines leave the quorum.
type Removal struct {
	Machines []string `json:"machines"`
}

func (h *Handler) quorum(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	status, err := h.service.QuorumStatus(r.Context(), who)
	h.answer(w, r, status, err)
}

func (h *Handler) replaceMachine(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body Replacement
	if readBody(w, r, &body, "lost or instead") {
		status, err := h.service.ReplaceMachine(Origin(r).In(r.Context()), who, body.Lost, body.Instead)
		h.answer(w, r, status, err)
	}
}

func (h *Handler) removeMachines(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body Removal
	if readBody(w, r, &body, "machines") {
		status, err := h.service.RemoveMachines(Origin(r).In(r.Context()), who, body.Machines)
		h.answer(w, r, status, err)
	}
}

// readBody reads a JSON object that may have these fields. If the body is not one, it answers so and returns false.
func readBody(w http.ResponseWriter, r *http.Request, into any, fields string) bool {
	return readLong(w, r, into, fields, maxBody)
}

// readLong is readBody for one of at most so many bytes.
func readLong(w http.ResponseWriter, r *http.Request, into any, fields string, most int64) bool {
	data, err := io.ReadAll(http.MaxBytesReader(within(w), r.Body, most))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		writeError(w, codes.TooLarge, fmt.Sprintf("the body has more than %d bytes", most))
		return false
	}
	switch {
	case err != nil:
	case len(bytes.TrimSpace(data)) == 0:
		err = fmt.Errorf("it is empty; want a JSON object with %s", fields)
	default:
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err = d.Decode(into); err == nil && d.More() {
			err = errors.New("more than one JSON object")
		}
	}
	if err != nil {
		badRequest(w, fmt.Errorf("the body: %w", readable(err, fields)))
		return false
	}
	return true
}

// backup streams a backup. If it fails after it has begun, the connection is aborted: nobody can take a part for the
// whole.
func (h *Handler) backup(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	if r.Method == http.MethodHead {
		if err := who.May(auth.Admin, ""); err != nil {
			h.refuse(w, r, err)
			return
		}
		header(w, bytesType)
		return
	}
	s := &stream{w: w}
	err := auth.Revoked(r.Context(), h.service.Backup(Origin(r).In(r.Context()), who, s))
	switch {
	case err == nil:
	case !s.begun:
		h.refuse(w, r, err)
	case s.err != nil: // the caller has gone away
		came(w, codes.Gone)
		panic(http.ErrAbortHandler)
	default:
		came(w, h.service.Refuse(Origin(r), callOf(r), err))
		panic(http.ErrAbortHandler)
	}
}

// stream is an answer of bytes.
type stream struct {
	w     http.ResponseWriter
	begun bool
	err   error // of writing
}

func (s *stream) Write(b []byte) (n int, err error) {
	if !s.begun {
		header(s.w, bytesType)
		s.begun = true
	}
	n, s.err = s.w.Write(b)
	return n, s.err
}
