package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// handle serves a path, by method. HEAD is where GET is. No browser gets through that another site's page has sent
// here to change something.
func (h *Handler) handle(path string, by map[string]http.HandlerFunc) {
	if get, ok := by[http.MethodGet]; ok {
		by[http.MethodHead] = get
	}
	h.methods[path] = slices.Sorted(maps.Keys(by))
	allow := strings.Join(h.methods[path], ", ")
	h.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		next, ok := by[r.Method]
		if !ok {
			w.Header().Set("Allow", allow)
			writeError(w, http.StatusMethodNotAllowed, "method_not_allowed",
				fmt.Sprintf("%.40q is no method for %.80q; want %s", r.Method, r.URL.Path, allow))
			return
		}
		if err := h.browsers.Check(r); err != nil {
			writeError(w, http.StatusForbidden, "cross_origin", err.Error())
			return
		}
		next(w, r)
	})
}

func (h *Handler) get(path string, next http.HandlerFunc) {
	h.handle(path, map[string]http.HandlerFunc{http.MethodGet: next})
}

func (h *Handler) post(path string, next http.HandlerFunc) {
	h.handle(path, map[string]http.HandlerFunc{http.MethodPost: next})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeError(w, http.StatusNotFound, "not_found",
		fmt.Sprintf("there is nothing at %.80q; try POST /api/v1/id, POST /api/v1/ids?count=N or GET /api/v1/ids/{id}", r.URL.Path))
}
