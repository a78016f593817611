package httpapi

import (
	"net/http"
	"net/http/pprof"

	"github.com/firn-id/firn/internal/service/admit/auth"
)

// WithMetrics serves metrics at GET /metrics. Where tokens are required, any token will do that is not limited to
// certain sequencers, as the metrics are about all.
func WithMetrics(metrics http.Handler) Option {
	return func(h *Handler) {
		h.get("/metrics", func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
			err := who.May(auth.All, "")
			if err == nil {
				err = who.Spend(1)
			}
			if err != nil {
				h.refuse(w, r, err)
				return
			}
			w.Header()["X-Content-Type-Options"] = noSniff
			metrics.ServeHTTP(w, r)
		})
	}
}

// WithProfiles serves /debug/pprof/ of package net/http/pprof to administrators, except for the command line, which may
// contain a password.
func WithProfiles() Option {
	return func(h *Handler) {
		for path, serve := range map[string]http.HandlerFunc{
			"/debug/pprof/":        pprof.Index,
			"/debug/pprof/profile": pprof.Profile,
			"/debug/pprof/symbol":  pprof.Symbol,
			"/debug/pprof/trace":   pprof.Trace,
		} {
			h.get(path, func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
				if err := h.notFromAfar(r); err != nil { // a profile takes the node's time
					RefuseCrossOrigin(w, r, h.service, err)
					return
				}
				if err := who.May(auth.Look, ""); err != nil {
					h.refuse(w, r, err)
					return
				}
				h.lasting(auth.Look, func(w http.ResponseWriter, r *http.Request, _ *auth.Caller) {
					serve(w, r)
				})(w, r, who)
			})
		}
	}
}
