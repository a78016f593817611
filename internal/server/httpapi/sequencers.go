package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
)

// SequencerList is the answer that has all sequencers, by name.
type SequencerList struct {
	Sequencers []server.StatusSequencer `json:"sequencers"`
}

// Conflict is the answer, with status 409, to who creates a sequencer when there is one with another definition.
type Conflict struct {
	Failure
	Definition  cluster.Definition   `json:"definition"` // that is in force
	Differences []cluster.Difference `json:"differences"`
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	if err := noParameters(r.URL.RawQuery, "for one sequencer GET /api/v1/sequencers/{name}"); err != nil {
		badRequest(w, err)
		return
	}
	all, err := h.service.Sequencers(r.Context(), who)
	h.answer(w, r, SequencerList{all}, err)
}

func (h *Handler) show(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	one, err := h.service.Sequencer(r.Context(), who, sequencerOf(r))
	h.answer(w, r, one, err)
}

func (h *Handler) nodes(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	from, limit, err := parseNodes(r.URL.RawQuery)
	if err != nil {
		badRequest(w, err)
		return
	}
	nodes, err := h.service.Horizons(r.Context(), who, sequencerOf(r), from, limit)
	h.answer(w, r, nodes, err)
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	err := noParameters(r.URL.RawQuery, "the sequencer is described in the body")
	var n NewSequencer
	if err == nil {
		n, err = readNew(w, r)
	}
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		writeError(w, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body has more than %d bytes", maxBody))
		return
	case err != nil:
		badRequest(w, err)
		return
	}
	answer, created, err := h.service.Create(Origin(r).In(r.Context()), who, n.Name, n.Definition)
	var exists *member.ExistsError
	if errors.As(err, &exists) {
		came(w, server.Exists)
		writeAnswer(w, http.StatusConflict, Conflict{
			Failure{Error{server.Exists, err.Error()}}, exists.InForce, exists.InForce.Differences(exists.Wanted),
		})
		return
	}
	if created {
		w.Header().Set("Location", "/api/v1/sequencers/"+n.Name)
		writeAnswer(w, http.StatusCreated, answer)
		return
	}
	h.answer(w, r, answer, err)
}

func (h *Handler) destroy(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	answer, err := h.service.Destroy(Origin(r).In(r.Context()), who, sequencerOf(r))
	if err == nil && answer.Message != "" && r.Context().Err() == nil {
		writeAnswer(w, http.StatusAccepted, answer)
		return
	}
	h.answer(w, r, answer, err)
}

func (h *Handler) attach(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	here, err := h.service.Attach(Origin(r).In(r.Context()), who, sequencerOf(r))
	h.answer(w, r, here, err)
}

func (h *Handler) detach(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	here, err := h.service.Detach(Origin(r).In(r.Context()), who, sequencerOf(r))
	h.answer(w, r, here, err)
}

func (h *Handler) resume(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	resumed, err := h.service.Resume(Origin(r).In(r.Context()), who)
	h.answer(w, r, resumed, err)
}

func (h *Handler) status(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	if err := noParameters(r.URL.RawQuery, "for another position GET /api/v1/cluster/value?at=N"); err != nil {
		badRequest(w, err)
		return
	}
	status, err := h.service.Status(r.Context(), who)
	h.answer(w, r, status, err)
}
