package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/member"
)

// Created is the answer to who creates a sequencer: with status 201, or 200 when it was there already.
type Created struct {
	StatusSequencer
	Warnings []string `json:"warnings,omitempty"` // what its creator should know
}

// Conflict is the answer, with status 409, to who creates a sequencer when there is one with another definition.
type Conflict struct {
	Failure
	Definition  cluster.Definition   `json:"definition"` // that is in force
	Differences []cluster.Difference `json:"differences"`
}

// Destroyed is the answer to who destroys a sequencer: with status 200, or 202 when its IDs may still appear.
type Destroyed struct {
	Name      string     `json:"name"`
	Destroyed bool       `json:"destroyed"`         // true
	Until     *time.Time `json:"until,omitempty"`   // until when IDs may still be made elsewhere; absent when that is not known
	Message   string     `json:"message,omitempty"` // about it
}

func (h *Handler) create(w http.ResponseWriter, r *http.Request) {
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
	ctx, cancel := context.WithTimeout(r.Context(), h.patience)
	defer cancel()
	created, err := h.cluster.Create(ctx, n.Name, n.Definition)
	q, known := h.cluster.Value().Sequencer(n.Name)
	if err == nil && !known {
		err = fmt.Errorf("%w: %q; it was destroyed a moment after it was created", member.ErrNoSequencer, n.Name)
	}
	if err != nil {
		h.refuseNew(w, r, err)
		return
	}
	answer := Created{StatusSequencer: h.describe(n.Name, q)}
	if warning, err := n.Definition.Check(time.Now()); err == nil && warning != "" {
		answer.Warnings = []string{warning}
	}
	header(w, jsonType)
	if created {
		w.Header().Set("Location", "/api/v1/sequencers/"+n.Name)
		w.WriteHeader(http.StatusCreated)
	}
	writeJSON(w, answer)
}

// refuseNew answers a call that can't create a sequencer.
func (h *Handler) refuseNew(w http.ResponseWriter, r *http.Request, err error) {
	var exists *member.ExistsError
	var early *member.EarlyError
	switch {
	case errors.As(err, &exists):
		header(w, jsonType)
		w.WriteHeader(http.StatusConflict)
		writeJSON(w, Conflict{Failure{Error{"exists", err.Error()}}, exists.InForce, exists.InForce.Differences(exists.Wanted)})
	case errors.As(err, &early), errors.Is(err, firn.ErrLifetime):
		badRequest(w, err)
	default:
		h.refuse(w, r, err)
	}
}

func (h *Handler) destroy(w http.ResponseWriter, r *http.Request) {
	name, err := named(r)
	if err != nil {
		badRequest(w, err)
		return
	}
	if name == member.DefaultSequencer {
		writeError(w, http.StatusConflict, "in_use", fmt.Sprintf("the sequencer %q can't be destroyed: POST /api/v1/id gives its IDs", name))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.patience)
	defer cancel()
	err = h.cluster.Destroy(ctx, name)
	var used *member.UsedUntilError
	if err != nil && !errors.As(err, &used) || r.Context().Err() != nil {
		h.refuse(w, r, err)
		return
	}
	answer := Destroyed{Name: name, Destroyed: true}
	header(w, jsonType)
	if used != nil {
		answer.Message = used.Error()
		if until := used.Until.UTC(); !until.IsZero() {
			answer.Until = &until
		}
		w.WriteHeader(http.StatusAccepted)
	}
	writeJSON(w, answer)
}
