package httpapi

import (
	"fmt"
	"net/http"
	"net/http/pprof"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
)

// maxWatching is how many calls for metrics are served at a time: IDs matter more.
const maxWatching = 4

var errWatching = fmt.Errorf("%w: %d ask for metrics already", server.ErrCrowded, maxWatching)

// WithMetrics serves GET /metrics, with metrics that somebody else collects. Whoever comes may have them; where tokens are wanted,
// whoever has one that is not for certain sequencers only, as they tell of all.
func WithMetrics(metrics http.Handler) Option {
	return func(h *Handler) {
		watching := make(chan struct{}, maxWatching)
		h.get("/metrics", func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
			err := who.May(auth.All, "")
			if err == nil {
				err = who.Spend(1)
			}
			if err != nil {
				h.refuse(w, r, err)
				return
			}
			select {
			case watching <- struct{}{}:
				defer func() { <-watching }()
				metrics.ServeHTTP(w, r)
			default:
				h.refuse(w, r, errWatching)
			}
		})
	}
}

// WithProfiles serves what package net/http/pprof does at /debug/pprof/, to administrators; but for the command line, which may
// hold a password.
func WithProfiles() Option {
	return func(h *Handler) {
		for path, serve := range map[string]http.HandlerFunc{
			"/debug/pprof/":        pprof.Index,
			"/debug/pprof/profile": pprof.Profile,
			"/debug/pprof/symbol":  pprof.Symbol,
			"/debug/pprof/trace":   pprof.Trace,
		} {
			h.get(path, func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
				if err := who.May(auth.Look, ""); err != nil {
					h.refuse(w, r, err)
					return
				}
				serve(w, r)
			})
		}
	}
}
