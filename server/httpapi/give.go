package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
)

func (h *Handler) next(w http.ResponseWriter, r *http.Request) {
	h.giveOne(w, r, h.member, member.DefaultSequencer)
}

func (h *Handler) nextOf(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	h.giveOne(w, r, h.find(name), name)
}

func (h *Handler) giveOne(w http.ResponseWriter, r *http.Request, from Member, name string) {
	if query := r.URL.RawQuery; query != "" {
		badRequest(w, noParameters(query, "for several IDs POST "+r.URL.Path+"s?count=N"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.patience)
	defer cancel()
	id, err := from.Next(ctx)
	if errors.Is(err, member.ErrNotReady) {
		if from, err = h.attached(ctx, name, err); err == nil {
			id, err = from.Next(ctx)
		}
	}
	if err != nil {
		h.refuse(w, r, h.busy(from, err))
		return
	}
	writeID(w, id)
}

func (h *Handler) fill(w http.ResponseWriter, r *http.Request) {
	h.giveMany(w, r, h.member, member.DefaultSequencer)
}

func (h *Handler) fillOf(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	h.giveMany(w, r, h.find(name), name)
}

func (h *Handler) giveMany(w http.ResponseWriter, r *http.Request, from Member, name string) {
	count, err := parseCount(r.URL.RawQuery)
	if err != nil {
		badRequest(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.patience)
	defer cancel()
	ids := make([]firn.ID, count)
	err = from.Fill(ctx, ids)
	if errors.Is(err, member.ErrNotReady) {
		if from, err = h.attached(ctx, name, err); err == nil {
			err = from.Fill(ctx, ids)
		}
	}
	if err != nil {
		h.refuse(w, r, h.busy(from, err))
		return
	}
	writeIDs(w, ids)
}

func (h *Handler) decode(w http.ResponseWriter, r *http.Request) {
	h.writePartsOf(w, r, h.member.Layout())
}

func (h *Handler) decodeOf(w http.ResponseWriter, r *http.Request) {
	_, q, err := h.lookup(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.writePartsOf(w, r, q.Definition().IDLayout())
}

func (h *Handler) writePartsOf(w http.ResponseWriter, r *http.Request, layout firn.Layout) {
	parts, err := parseParts(layout, r.PathValue("id"))
	if err != nil {
		badRequest(w, err)
		return
	}
	writeParts(w, parts)
}

// busyError is returned when a node did not come to give as many IDs as were asked for.
type busyError struct {
	within time.Duration
	rate   float64 // IDs per second
}

func (e *busyError) Error() string {
	return fmt.Sprintf("no answer within %v: a node of this layout makes at most %.0f IDs a second; ask for fewer, or more servers", e.within, e.rate)
}

// busy is the error of who gives IDs, or of what was to be done before: then from is nil.
func (h *Handler) busy(from Member, err error) error {
	if from == nil || errors.Is(err, member.ErrNotReady) || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &busyError{h.patience, from.Layout().Rate()}
}
