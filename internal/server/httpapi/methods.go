package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/server/auth"
)

// handle serves a path, by method. HEAD is where GET is. No browser gets through that another site's page has sent
// here to change something.
func (h *Handler) handle(path string, by map[string]http.HandlerFunc) {
	if get, ok := by[http.MethodGet]; ok {
		by[http.MethodHead] = get
	}
	h.methods[path] = slices.Sorted(maps.Keys(by))
	allow := strings.Join(h.methods[path], ", ")
	for method, next := range by {
		by[method] = h.counted(path, nameOf(method, path), h.guard(next))
	}
	other := h.counted(path, "other", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		writeError(w, http.StatusMethodNotAllowed, "method_not_allowed",
			fmt.Sprintf("%.40q is no method for %.80q; want %s", r.Method, r.URL.Path, allow))
	})
	h.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		next, ok := by[r.Method]
		if !ok {
			next = other
		}
		next(w, r)
	})
}

// nameOf is what a call is called by those who count.
func nameOf(method, path string) string {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return method + " " + path
}

// guard lets no browser through that another site's page has sent here.
func (h *Handler) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := errors.Join(h.browsers.Check(r), h.policy.AdmitHost(r.Host)); err != nil {
			RefuseCrossOrigin(w, r, h.service, err)
			return
		}
		next(w, r)
	}
}

// open is for whoever comes, without a token.
func (h *Handler) open(path string, next http.HandlerFunc) {
	h.handle(path, map[string]http.HandlerFunc{http.MethodGet: next})
}

func (h *Handler) get(path string, next call) {
	h.handle(path, map[string]http.HandlerFunc{http.MethodGet: h.admit(next)})
}

func (h *Handler) post(path string, next call) {
	h.handle(path, map[string]http.HandlerFunc{http.MethodPost: h.admit(next)})
}

// call is what serves a caller that was let in.
type call func(w http.ResponseWriter, r *http.Request, who *auth.Caller)

// admit lets callers in.
func (h *Handler) admit(next call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := h.policy.Admit(Token(r))
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		next(w, r, who)
	}
}

// bare refuses a query where there is nothing to choose.
func bare(next call) call {
	return func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
		if err := noParameters(r.URL.RawQuery, "leave it out"); err != nil {
			badRequest(w, err)
			return
		}
		next(w, r, who)
	}
}

// Token is the token that a caller sends; empty: none.
func Token(r *http.Request) string { return auth.Bearer(r.Header.Get("Authorization")) }

func notFound(w http.ResponseWriter, r *http.Request) {
	writeError(w, http.StatusNotFound, "not_found",
		fmt.Sprintf("there is nothing at %.80q; try POST /api/v1/id, POST /api/v1/ids?count=N or GET /api/v1/ids/{id}", r.URL.Path))
}
