package httpapi

import (
	"net/http"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
)

// sequencerOf is the sequencer in a path; the default one, if the path names none.
func sequencerOf(r *http.Request) string {
	if name := r.PathValue("name"); name != "" {
		return name
	}
	return member.DefaultSequencer
}

func (h *Handler) next(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	w.Header()["Vary"] = varyAccept
	id, err := h.service.Next(r.Context(), who, sequencerOf(r))
	switch {
	case err != nil:
		h.refuse(w, r, err)
	case acceptsPacked(r.Header):
		writePackedID(w, id)
	default:
		writeID(w, id)
	}
}

func (h *Handler) fill(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	w.Header()["Vary"] = varyAccept
	var count int64
	q, err := parameters(r.URL.RawQuery, "count=N", "count")
	if err == nil {
		count, err = q.number("count", 1, server.MaxCount, 1)
	}
	if err != nil {
		badRequest(w, err)
		return
	}
	write := writeIDs
	if acceptsPacked(r.Header) {
		write = writePackedIDs
	}
	err = h.service.Many(r.Context(), who, r.RemoteAddr, sequencerOf(r), int(count), func(ids *server.Batch) error {
		write(w, ids)
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
