package httpapi

import (
	"net/http"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
)

// sequencerOf is the sequencer that a path names; the default one, if it names none.
func sequencerOf(r *http.Request) string {
	if name := r.PathValue("name"); name != "" {
		return name
	}
	return member.DefaultSequencer
}

func (h *Handler) next(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	if query := r.URL.RawQuery; query != "" {
		badRequest(w, noParameters(query, "for several IDs POST "+r.URL.Path+"s?count=N"))
		return
	}
	id, err := h.service.Next(r.Context(), who, sequencerOf(r))
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	writeID(w, id)
}

func (h *Handler) fill(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	count, err := parseCount(r.URL.RawQuery)
	if err != nil {
		badRequest(w, err)
		return
	}
	err = h.service.Many(r.Context(), who, r.RemoteAddr, sequencerOf(r), count, func(ids *server.Batch) error {
		writeIDs(w, ids)
		return nil
	})
	if err != nil {
		h.refuse(w, r, err)
	}
}

func (h *Handler) decode(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	id, err := firn.Parse(r.PathValue("id"))
	if err != nil {
		badRequest(w, err)
		return
	}
	parts, err := h.service.Decode(r.Context(), who, sequencerOf(r), id)
	h.answer(w, r, parts, err)
}
