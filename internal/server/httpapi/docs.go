package httpapi

import (
	"net/http"

	"github.com/firn-id/firn/internal/server/httpapi/apidoc"
)

// serveDocs serves the description of the calls, and a page to try them.
func (h *Handler) serveDocs() {
	h.open("/openapi.json", apidoc.ServeDocument)
	h.open(apidoc.Root, func(w http.ResponseWriter, r *http.Request) {
		if !apidoc.ServePage(w, r) {
			notFound(w, r)
		}
	})
	h.mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, http.StatusNotFound, "not_found", `there is nothing at "/"; GET /docs/ is a page about the calls, to try them`)
	})
}
