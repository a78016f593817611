// Package httpapi serves a calls.Service over HTTP. Package apidoc describes the calls, and docs/errors.md the errors,
// which all have the form {"error":{"code":"...","message":"..."}}.
package httpapi

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/httpapi/apidoc"
)

// Handler serves what a calls.Service does. Make it with New. Its methods are safe for concurrent use.
type Handler struct {
	service  *calls.Service
	policy   *auth.Policy
	mux      *http.ServeMux
	methods  map[string][]string // that are served, by path
	browsers *http.CrossOriginProtection
	looking  chan struct{} // has one for each call that sends entries of the log
	usual    writing       // of IDs, where a call does not say
}

// Option adds to what a handler serves.
type Option func(*Handler)

const (
	livePath  = "/livez"
	readyPath = "/readyz"
	logPath   = "/api/v1/cluster/log"
)

// New returns a handler for callers under a policy.
func New(s *calls.Service, p *auth.Policy, options ...Option) *Handler {
	h := newProbes(s, p, nil)
	for _, of := range []string{"/api/v1", "/api/v1/sequencers/{name}"} { // the default sequencer, and any
		h.post(of+"/id", h.next)
		h.post(of+"/ids", h.fill)
		h.handle(of+"/ids/{id}", map[string]http.HandlerFunc{http.MethodGet: h.admit(h.decode)})
		h.handle(of+"/times/{time}", map[string]http.HandlerFunc{http.MethodGet: h.admit(h.span)})
	}
	const one = "/api/v1/sequencers/{name}"
	h.handle("/api/v1/sequencers", map[string]http.HandlerFunc{
		http.MethodGet:  h.admit(h.few(bare("for one sequencer GET /api/v1/sequencers/{name}", h.list))),
		http.MethodPost: h.admit(bare("describe the sequencer in the body", h.create)),
	})
	h.handle(one, map[string]http.HandlerFunc{
		http.MethodGet:    h.admit(h.few(bare(omit, answers(h, s.Sequencer)))),
		http.MethodDelete: h.admit(bare(omit, h.destroy)),
	})
	h.get(one+"/nodes", h.nodes)
	h.post(one+"/attach", bare(omit, answers(h, s.Attach)))
	h.post(one+"/detach", bare(omit, answers(h, s.Detach)))
	h.get("/api/v1/cluster", bare("for another position GET /api/v1/cluster/value?at=N", h.status))
	h.get("/api/v1/cluster/history", bare(omit, h.history))
	h.post("/api/v1/cluster/resume", bare(omit, h.resume))
	h.get("/api/v1/cluster/value", h.look(h.value))
	h.get(logPath, h.lasting(auth.Look, h.look(h.entries)))
	h.serveVerbs()
	h.get("/api/v1/quorum", bare(omit, h.quorum))
	h.post("/api/v1/quorum/replace", bare(omit, h.replaceMachine))
	h.post("/api/v1/quorum/remove", bare(omit, h.removeMachines))
	h.get("/api/v1/quorum/backup", bare(omit, h.lasting(auth.Admin, h.backup)))
	h.serveDocs()
	for _, o := range options {
		o(h)
	}
	return h
}

// NewProbes returns a handler that serves only /livez and /readyz, without a token, and what the options add.
func NewProbes(s *calls.Service, options ...Option) *Handler {
	return newProbes(s, new(auth.Policy), options)
}

func newProbes(s *calls.Service, p *auth.Policy, options []Option) *Handler {
	h := &Handler{
		service: s, policy: p,
		mux: http.NewServeMux(), methods: map[string][]string{}, browsers: http.NewCrossOriginProtection(),
		looking: make(chan struct{}, maxLooking),
	}
	h.open(livePath, func(w http.ResponseWriter, _ *http.Request) { writeOK(w) })
	h.open(readyPath, h.ready)
	h.mux.HandleFunc("/", nothingHere)
	for _, o := range options {
		o(h)
	}
	return h
}

// serveDocs serves the description of the calls, and a page to try them.
func (h *Handler) serveDocs() {
	h.open("/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		Page(w, r, h.service, apidoc.ServeDocument)
	})
	h.mux.HandleFunc("GET /docs", apidoc.ToPage)
	h.open(apidoc.Root, func(w http.ResponseWriter, r *http.Request) {
		Page(w, r, h.service, func(w http.ResponseWriter, r *http.Request) {
			if !apidoc.ServePage(w, r) {
				nothingHere(w, r)
			}
		})
	})
	h.mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, codes.NotFound, `there is nothing at "/"; GET /docs/ describes the calls and lets you try them`)
	})
}

// WithCluster adds the cluster ID to every answer of a handler, as the header Firn-Cluster. It is safe for concurrent
// use.
func WithCluster(s *calls.Service, next http.Handler) http.Handler {
	var latest atomic.Pointer[[]string] // for all answers, so that none needs memory for it
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := s.Cluster(); id != "" {
			header := latest.Load()
			if header == nil || (*header)[0] != id {
				header = &[]string{id}
				latest.Store(header)
			}
			w.Header()[clusterid.Header] = *header
		}
		next.ServeHTTP(w, r)
	})
}

func (h *Handler) draining() bool { return h.service.Serving().Err() != nil }

// ServeHTTP implements [http.Handler]. It reads only the bodies of calls
// that change something. While the service drains,
// clients are told to close their connections, and calls that follow the log end.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.draining() {
		w.Header().Set("Connection", "close")
	}
	h.mux.ServeHTTP(w, r)
}

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	q, err := parameters(r.URL.RawQuery, "sequencer=orders", "sequencer")
	if err != nil {
		badRequest(w, err)
		return
	}
	if name, ok := q["sequencer"]; ok {
		if err := h.service.ReadyFor(r.Context(), name); err != nil {
			h.refuse(w, r, err)
			return
		}
		writeOK(w)
		return
	}
	err = h.service.Ready()
	code := calls.CodeOf(err)
	switch {
	case err == nil:
		writeOK(w)
	case errors.Is(err, peer.ErrNotReady) && code != codes.Lifetime && code != codes.Clock: // the message says why
		w.Header().Set("Retry-After", "1")
		writeError(w, codes.NotReady, h.service.Unready(err))
	default:
		if code, ok := refused(w, r, h.service, err); ok {
			writeError(w, code, h.service.Unready(err))
		}
	}
}
