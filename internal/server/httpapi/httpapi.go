// Package httpapi speaks HTTP for a server.Service: it gives out IDs as plain JSON, takes IDs
// apart, and tells whether it is alive and ready.
//
//	POST /api/v1/id              {"id":1234,"id_str":"1234"}
//	POST /api/v1/ids?count=100   {"ids":[...],"ids_str":[...]}, ascending; count is 1 to 100000
//	GET  /api/v1/ids/{id}        the Parts of an ID
//	GET  /livez                  "ok" as long as the process serves
//	GET  /readyz                 "ok" when an ID would be given, and shall be asked for here
//	GET  /metrics                the node's metrics for Prometheus, see WithMetrics
//	GET  /openapi.json           all of the calls, described in OpenAPI; see package apidoc
//	GET  /docs/                  a page to read that, and to try the calls
//
// These are for the default sequencer. There can be any number of others, by name:
//
//	GET    /api/v1/sequencers                   {"sequencers":[...]}, each a StatusSequencer
//	POST   /api/v1/sequencers                   creates one that a NewSequencer describes
//	GET    /api/v1/sequencers/{name}            the StatusSequencer
//	DELETE /api/v1/sequencers/{name}            destroys it: a Destroyed
//	POST   /api/v1/sequencers/{name}/id         as above
//	POST   /api/v1/sequencers/{name}/ids        as above
//	GET    /api/v1/sequencers/{name}/ids/{id}   as above; any member can tell
//	GET    /api/v1/sequencers/{name}/nodes      Nodes: how far ahead is written down for each; from=N, limit=N
//	POST   /api/v1/sequencers/{name}/attach     this member attaches: where it then stands, as Here
//	POST   /api/v1/sequencers/{name}/detach     and lets go
//
// A member that is asked for an ID attaches by itself where it is not attached, if the caller, the sequencer and
// server.Options allow that.
//
// It shows what the cluster has come to as well:
//
//	GET /api/v1/cluster                       the Status
//	GET /api/v1/cluster/value?at=7            the ValueAt a position; without at, the latest
//	POST /api/v1/cluster/resume               ends the wait after the store has lost data: a Resumed
//	GET /api/v1/cluster/log?from=7&follow=1   entries, one JSON object per line; see LogBeginsAfter
//
// Everything about sequencers and the cluster but IDs and what they say is administration, and to attach is a right of
// its own as well: see package auth for who may ask. Who has a token shows it as "Authorization: Bearer".
//
// Numbers above 2^53 lose digits in JavaScript: use the strings there. Whatever goes wrong is
// told as {"error":{"code":"...","message":"..."}}:
//
//	400 bad_request          the message names what was given and what would be right
//	401 unauthenticated      the token, or the node's own secret, is missing or wrong: Locked
//	403 forbidden            the token, or the lack of one, does not allow that
//	403 cross_origin         a browser sent it from another site's page
//	404 not_found            there is no such path
//	404 unknown_sequencer    there is no sequencer of this name, or it was destroyed
//	404 unknown_position     the log does not go back, or has not come, that far
//	405 method_not_allowed   the Allow header says which are
//	409 exists               there is a sequencer of this name with another definition: a Conflict
//	409 in_use               the default sequencer can't be destroyed
//	409 attached_again       it was attached while it was to be detached
//	413 too_large            a body of more than 64 KiB
//	429 rate_limited         more than the token allows; without Retry-After it never will
//	429 quota                there are as many sequencers as the node lets there be
//	500 internal             a bug; it is logged
//	500 unreadable           the log holds what this program can't read; it is logged
//	503 not_ready            no ID can be given now; try another server, or again
//	503 waiting              all node IDs are taken, and the member stands in line; try another server
//	503 detached             the member is not attached, and this call does not attach it; try another server
//	503 unfit                the member's window or wished-for node IDs do not go with the sequencer; try another
//	503 unavailable          the store does not answer; what was to be changed may be changed or not
//	503 overloaded           more is asked for than the node ID can give in 10 s, or by too many at a time
//	503 lifetime             the layout's time is over, or has not begun
//
// A 503 carries Retry-After, in seconds.
package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/conns"
	"github.com/firn-id/firn/member"
)

// Handler serves what a server.Service does. Make it with New. Its methods are safe for concurrent use.
type Handler struct {
	service  *server.Service
	policy   *auth.Policy
	mux      *http.ServeMux
	methods  map[string][]string // those that are served, by path
	browsers *http.CrossOriginProtection
	looking  chan struct{} // one for each call that looks at the log
}

// Option adds to what a handler serves.
type Option func(*Handler)

// New returns a handler for callers under a policy.
func New(s *server.Service, e *auth.Policy, options ...Option) *Handler {
	h := newProbes(s, e, nil)
	h.post("/api/v1/id", h.next)
	h.post("/api/v1/ids", h.fill)
	h.get("/api/v1/ids/{id}", h.decode)
	h.serveDocs()
	h.serveSequencers()
	h.get("/api/v1/cluster", h.status)
	h.post("/api/v1/cluster/resume", bare(h.resume))
	h.get("/api/v1/cluster/value", h.look(h.value))
	h.get(logPath, h.look(h.entries))
	for _, o := range options {
		o(h)
	}
	return h
}

const (
	livePath  = "/livez"
	readyPath = "/readyz"
	logPath   = "/api/v1/cluster/log"
)

// NewProbes returns a handler that serves /livez and /readyz, and what options add, to whoever comes, and nothing else.
func NewProbes(s *server.Service, options ...Option) *Handler {
	return newProbes(s, new(auth.Policy), options)
}

func newProbes(s *server.Service, e *auth.Policy, options []Option) *Handler {
	h := &Handler{
		service: s, policy: e,
		mux: http.NewServeMux(), methods: map[string][]string{}, browsers: http.NewCrossOriginProtection(),
		looking: make(chan struct{}, maxLooking),
	}
	h.open(livePath, alive)
	h.open(readyPath, h.ready)
	h.mux.HandleFunc("/", notFound)
	for _, o := range options {
		o(h)
	}
	return h
}

func (h *Handler) serveSequencers() {
	const one = "/api/v1/sequencers/{name}"
	h.handle("/api/v1/sequencers", map[string]http.HandlerFunc{http.MethodGet: h.admit(h.list), http.MethodPost: h.admit(h.create)})
	h.handle(one, map[string]http.HandlerFunc{http.MethodGet: h.admit(bare(h.show)), http.MethodDelete: h.admit(bare(h.destroy))})
	h.post(one+"/id", h.next)
	h.post(one+"/ids", h.fill)
	h.get(one+"/ids/{id}", h.decode)
	h.get(one+"/nodes", h.nodes)
	h.post(one+"/attach", bare(h.attach))
	h.post(one+"/detach", bare(h.detach))
}

func (h *Handler) draining() bool { return h.service.Serving().Err() != nil }

// probesOnly is the key of a context whose connection may only ask whether the node is alive and ready.
type probesOnly struct{}

// ConnContext is for an http.Server that serves a Handler: calls are refused as overloaded on a connection that got no
// place from a conns.Limiter.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if conns.ProbesOnly(c) {
		return context.WithValue(ctx, probesOnly{}, true)
	}
	return ctx
}

// ServeHTTP implements [http.Handler]. It reads no body but that of POST /api/v1/sequencers. While the service drains,
// clients are asked to close their connections, and calls that follow the log end.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	crowded := r.Context().Value(probesOnly{}) != nil
	if crowded || h.draining() {
		w.Header().Set("Connection", "close")
	}
	if crowded && r.URL.Path != livePath && r.URL.Path != readyPath {
		h.refuse(w, r, server.ErrCrowded)
		return
	}
	h.mux.ServeHTTP(w, r)
}

func alive(w http.ResponseWriter, _ *http.Request) { writeOK(w) }

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	err := h.service.Ready()
	switch {
	case err == nil:
		writeOK(w)
	case errors.Is(err, member.ErrNotReady) && server.CodeOf(err) != server.Lifetime: // whatever the reason is, and if only others can do something about it
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusServiceUnavailable, server.NotReady, err.Error())
	default:
		h.refuse(w, r, err)
	}
}
