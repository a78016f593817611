package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
)

// sequencerOf is the sequencer in a path; the default one, if the path names none.
func sequencerOf(r *http.Request) string {
	if name := r.PathValue("name"); name != "" {
		return name
	}
	return peer.DefaultSequencer
}

// MadeBy is the header of an answer with IDs that another node has made: its member ID.
const MadeBy = "Firn-Made-By"

// madeBy says in an answer which member has made its IDs; empty: this node's.
func madeBy(w http.ResponseWriter, member string) {
	if member != "" {
		w.Header()[MadeBy] = []string{member}
	}
}

// Forwarded is the header of a call for IDs that comes from another node, which has none: this one asks no third.
const Forwarded = "Firn-Forwarded"

// After is the header of a call with the ID that those of the answer are to exceed, as the parameter "after" is: for
// other nodes and for clients, since older nodes ignore it, and refuse the parameter. Unless it comes from another
// node, it is ignored where no answer can exceed the ID: a client can't help which IDs it has seen.
const After = "Firn-After"

func contextOf(r *http.Request) context.Context {
	if _, ok := r.Header[Forwarded]; ok {
		return calls.Forwarded(r.Context())
	}
	return r.Context()
}

// following is the ID that those of an answer are to exceed; zero: none.
type following struct {
	id     firn.ID
	wished bool // it is ignored where it has to be refused
}

func afterOf(r *http.Request, q query) (f following, err error) {
	text, ok := q["after"]
	if header := r.Header[After]; len(header) > 0 && !ok {
		text, ok, f.wished = header[0], true, r.Header[Forwarded] == nil
	}
	if ok {
		f.id, err = calls.ReadAfter(text)
	}
	if f.wished {
		err = nil
	}
	return f, err
}

// many calls deliver with count IDs of the call's sequencer.
func (h *Handler) many(r *http.Request, who *auth.Caller, f following, count int,
	deliver func(*calls.Batch) error,
) error {
	take := func(after firn.ID) error {
		return h.service.ManyAfter(contextOf(r), who, r.RemoteAddr, sequencerOf(r), after, count, deliver)
	}
	err := take(f.id)
	if f.wished && calls.NeverAfter(err) {
		return take(0)
	}
	return err
}

func (h *Handler) next(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	w.Header()["Vary"] = varyAccept
	q, err := parameters(r.URL.RawQuery, "form=uuid, ids=string or after=ID", "form", "ids", "after")
	if err != nil {
		badRequest(w, fmt.Errorf("%w; for several IDs POST %.120ss?count=N", err, r.URL.Path))
		return
	}
	var follows following
	as, err := h.takingOf(r, who, q)
	if err == nil {
		follows, err = afterOf(r, q)
	}
	switch {
	case err != nil:
	case as.texts != nil || follows.id != 0:
		err = h.many(r, who, follows, 1, func(ids *calls.Batch) error {
			as, err := as.of(ids)
			if err == nil {
				madeBy(w, ids.By())
				writeID(w, ids.Last(), as)
			}
			return err
		})
	default:
		var id firn.ID
		var by string
		if id, by, err = h.service.Next(contextOf(r), who, sequencerOf(r)); err == nil {
			madeBy(w, by)
			writeID(w, id, as)
		}
	}
	if err != nil {
		h.refuse(w, r, err)
	}
}

func (h *Handler) fill(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	w.Header()["Vary"] = varyAccept
	var count int64
	var as writing
	q, err := parameters(r.URL.RawQuery, "count=N, and form=uuid, ids=string or after=ID", "count", "form", "ids",
		"after")
	if err == nil {
		count, err = q.number("count", 1, calls.MaxCount, 1)
	}
	if err != nil {
		badRequest(w, err)
		return
	}
	var follows following
	if as, err = h.takingOf(r, who, q); err == nil {
		follows, err = afterOf(r, q)
	}
	if err == nil {
		err = h.many(r, who, follows, int(count), func(ids *calls.Batch) error {
			as, err := as.of(ids)
			if err == nil {
				madeBy(w, ids.By())
				writeIDs(w, ids, as)
			}
			return err
		})
	}
	if err != nil {
		h.refuse(w, r, err)
	}
}

// textParts are parts whose ID is a string wherever it is.
type textParts struct {
	ID string `json:"id"`
	calls.Parts
}

func (h *Handler) decode(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	w.Header()["Vary"] = varyAccept
	var as writing
	d := calls.Decoding{Text: r.PathValue("id")}
	q, err := parameters(r.URL.RawQuery, "form=uuid, as=base58 or ids=string", "form", "as", "ids")
	if err == nil {
		as, err = h.writingOf(r, q)
	}
	if err == nil {
		d.As, err = q.form("as")
	}
	if err == nil {
		d.Form, err = q.form("form")
	}
	if err != nil {
		badRequest(w, err)
		return
	}
	if as.packed { // the parts are always JSON
		as = h.usual
	}
	parts, err := h.service.Decode(r.Context(), who, sequencerOf(r), d)
	switch {
	case err != nil:
		h.refuse(w, r, err)
	case as.text == nil:
		writeAnswer(w, http.StatusOK, parts)
	default:
		header(w, textsType)
		writeJSON(w, textParts{parts.IDStr, parts})
	}
}

// textSpan is a span whose IDs are strings wherever they are.
type textSpan struct {
	First string `json:"first"`
	Last  string `json:"last"`
	calls.Span
}

func (h *Handler) span(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	w.Header()["Vary"] = varyAccept
	var as writing
	var at time.Time
	q, err := parameters(r.URL.RawQuery, "ids=string", "ids")
	if err == nil {
		as, err = h.writingOf(r, q)
	}
	if err == nil {
		at, err = instant("time", r.PathValue("time"))
	}
	if err != nil {
		badRequest(w, err)
		return
	}
	if as.packed { // a span is always JSON
		as = h.usual
	}
	span, err := h.service.Span(r.Context(), who, sequencerOf(r), at)
	switch {
	case err != nil:
		h.refuse(w, r, err)
	case as.text == nil:
		writeAnswer(w, http.StatusOK, span)
	default:
		header(w, textsType)
		writeJSON(w, textSpan{span.FirstStr, span.LastStr, span})
	}
}
