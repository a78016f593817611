package httpapi

import (
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// SequencerList has all sequencers, by name.
type SequencerList struct {
	Sequencers []calls.StatusSequencer `json:"sequencers"`
}

// Conflict is the body of the error, with status 409, of creating a sequencer whose name has another definition.
type Conflict struct {
	Failure
	Definition  cluster.Definition   `json:"definition"` // in force
	Differences []cluster.Difference `json:"differences"`
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	all, err := h.service.Sequencers(r.Context(), who)
	h.answer(w, r, SequencerList{all}, err)
}

func (h *Handler) nodes(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var from, limit int64
	q, err := parameters(r.URL.RawQuery, "from=N, limit=N or both", "from", "limit")
	if err == nil {
		limit, err = q.number("limit", 1, calls.MaxOwners, calls.MaxOwners)
	}
	if err == nil {
		from, err = q.number("from", 0, math.MaxInt64, 0)
	}
	if err != nil {
		badRequest(w, err)
		return
	}
	nodes, err := h.service.Owners(r.Context(), who, sequencerOf(r), from, int(limit))
	h.answer(w, r, nodes, err)
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	n, err := readNew(w, r)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		writeError(w, codes.TooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody))
		return
	case err != nil:
		badRequest(w, err)
		return
	}
	answer, created, err := h.service.Create(Origin(r).In(r.Context()), who, n.Name, n.Definition, n.Reserve)
	var exists *peer.ExistsError
	switch {
	case errors.As(err, &exists):
		came(w, codes.Exists)
		writeAnswer(w, http.StatusConflict, Conflict{
			Failure{Error{codes.Exists, err.Error()}}, exists.InForce, exists.InForce.Differences(exists.Wanted),
		})
	case created:
		w.Header().Set("Location", "/api/v1/sequencers/"+n.Name)
		writeAnswer(w, http.StatusCreated, answer)
	default:
		h.answer(w, r, answer, err)
	}
}

func (h *Handler) destroy(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	answer, err := h.service.Destroy(Origin(r).In(r.Context()), who, sequencerOf(r))
	if err == nil && answer.Message != "" && r.Context().Err() == nil {
		writeAnswer(w, http.StatusAccepted, answer)
		return
	}
	h.answer(w, r, answer, err)
}

func (h *Handler) resume(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	resumed, err := h.service.Resume(Origin(r).In(r.Context()), who)
	h.answer(w, r, resumed, err)
}

func (h *Handler) status(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	status, err := h.service.Status(r.Context(), who)
	h.answer(w, r, status, err)
}

func (h *Handler) history(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	history, err := h.service.History(r.Context(), who)
	h.answer(w, r, history, err)
}
