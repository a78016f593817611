package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/service/codes"
)

// LeafIDs says from where the IDs come that callers of Leaf get. The zero value is for services that do not answer such
// calls.
type LeafIDs struct {
	Served    bool
	Snowflake string // the sequencer of all calls for snowflakes, as Leaf ignores their keys; empty: their key names it
}

// WithLeaf answers the calls of Leaf (github.com/Meituan-Dianping/Leaf, LeafController.java), so that its callers stay
// as they are: /api/snowflake/get/{key} and /api/segment/get/{key}, with GET or POST, are the digits of an ID.
func WithLeaf(ids LeafIDs) Option {
	return func(h *Handler) {
		for kind, only := range map[string]string{"snowflake": ids.Snowflake, "segment": ""} {
			answer := h.leaf(only)
			h.handle("/api/"+kind+"/get/{key}",
				map[string]http.HandlerFunc{http.MethodGet: answer, http.MethodPost: answer})
		}
	}
}

// leaf answers with an ID of a sequencer; empty: of the one that the key names.
func (h *Handler) leaf(only string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h.notFromAfar(r); err != nil { // a GET that takes an ID is not safe
			RefuseCrossOrigin(w, r, h.service, err)
			return
		}
		name := only
		if name == "" {
			name = r.PathValue("key")
		}
		var id firn.ID
		var by string
		who, err := h.policy.Admit(Token(r))
		if err == nil {
			id, by, err = h.service.Next(r.Context(), who, name)
		}
		if err != nil {
			h.refuseLeaf(w, r, err)
			return
		}
		contentType := textType
		if asJSON(r.Header.Get("Accept")) { // digits are JSON, too
			contentType = jsonType
		}
		w.Header()["Vary"] = varyAccept
		madeBy(w, by)
		header(w, contentType)
		_, _ = w.Write(decimal(nil, id)) // if it fails the caller has gone away
	}
}

// asJSON tells whether JSON is what a caller accepts first. Leaf then labels its digits as JSON, as do clients of Java
// that read a number rather than text expect.
func asJSON(accept string) bool {
	first, _, _ := strings.Cut(accept, ",")
	name, _, _ := strings.Cut(first, ";")
	return strings.EqualFold(strings.TrimSpace(name), "application/json")
}

// LeafFailure is the body of the errors of Leaf, which are those of Spring.
type LeafFailure struct {
	Timestamp int64      `json:"timestamp"` // in Unix milliseconds
	Status    int        `json:"status"`
	Error     string     `json:"error"` // the status in words
	Code      codes.Code `json:"code"`  // not in Leaf
	Message   string     `json:"message"`
	Path      string     `json:"path"`
}

// refuseLeaf is refuse for callers of Leaf. They know the status 500 alone: so a key that is no sequencer has it, as in
// Leaf. What another node may answer stays 503, which balancers know, and what no caller of Leaf has met keeps its
// status.
func (h *Handler) refuseLeaf(w http.ResponseWriter, r *http.Request, err error) {
	code, ok := refused(w, r, h.service, err)
	if !ok {
		return
	}
	status := code.HTTP()
	if status == http.StatusNotFound || status == http.StatusBadRequest {
		status = http.StatusInternalServerError
	}
	writeAnswer(w, status,
		LeafFailure{time.Now().UnixMilli(), status, http.StatusText(status), code, err.Error(), r.URL.Path})
}
