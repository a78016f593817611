// Package httpapi is the HTTP face of a member: it gives out IDs as plain JSON, takes IDs
// apart, and tells whether it is alive and ready.
//
//	POST /api/v1/id              {"id":1234,"id_str":"1234"}
//	POST /api/v1/ids?count=100   {"ids":[...],"ids_str":[...]}, ascending; count is 1 to 100000
//	GET  /api/v1/ids/{id}        the Parts of an ID
//	GET  /livez                  "ok" as long as the process serves
//	GET  /readyz                 "ok" when an ID would be given, and shall be asked for here
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
//	POST   /api/v1/sequencers/{name}/attach     this member attaches: where it then stands, as Here
//	POST   /api/v1/sequencers/{name}/detach     and lets go
//
// A member that is asked for an ID attaches by itself where it is not attached, see Handler.NoAutoAttach.
//
// It shows what the cluster has come to as well, to whoever can ask:
//
//	GET /api/v1/cluster                       the Status
//	GET /api/v1/cluster/value?at=7            the ValueAt a position; without at, the latest
//	GET /api/v1/cluster/log?from=7&follow=1   entries, one JSON object per line; see LogBeginsAfter
//
// Numbers above 2^53 lose digits in JavaScript: use the strings there. Whatever goes wrong is
// told as {"error":{"code":"...","message":"..."}}:
//
//	400 bad_request          the message names what was given and what would be right
//	403 cross_origin         a browser sent it from another site's page
//	404 not_found            there is no such path
//	404 unknown_sequencer    there is no sequencer of this name, or it was destroyed
//	404 unknown_position     the log does not go back, or has not come, that far
//	405 method_not_allowed   the Allow header says which are
//	409 exists               there is a sequencer of this name with another definition: a Conflict
//	409 in_use               the default sequencer can't be destroyed
//	409 attached_again       it was attached while it was to be detached
//	413 too_large            a body of more than 64 KiB
//	500 internal             a bug; it is logged
//	500 unreadable           the log holds what this program can't read; it is logged
//	503 not_ready            no ID can be given now; try another server, or again
//	503 waiting              all node IDs are taken, and the member stands in line; try another server
//	503 detached             the member is not attached, and does not attach by itself; try another server
//	503 unfit                the member's window or wished-for node IDs do not go with the sequencer; try another
//	503 unavailable          the store does not answer; what was to be changed may be changed or not
//	503 overloaded           more is asked for than the node ID can give in 10 s, or too many look at the log
//	503 lifetime             the layout's time is over, or has not begun
//
// A 503 carries Retry-After, in seconds.
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
)

// MaxCount is how many IDs one call can ask for.
const MaxCount = 100_000

// patience is how long a call waits for IDs that the node can't give yet.
const patience = 10 * time.Second

// Member is what gives out the IDs: a *member.Member, or what stands in for one.
type Member interface {
	Next(ctx context.Context) (firn.ID, error)
	Fill(ctx context.Context, ids []firn.ID) error
	Ready() error
	Layout() firn.Layout
}

// Handler serves a member. Make it with New. Its methods are safe for concurrent use.
type Handler struct {
	// NoAutoAttach has a call for an ID fail where the member is not attached to the sequencer. Otherwise it
	// attaches by itself. Set it before the handler serves.
	NoAutoAttach bool

	member   Member
	cluster  Cluster // may be nil
	log      *slog.Logger
	patience time.Duration
	mux      *http.ServeMux
	methods  map[string][]string // those that are served, by path
	browsers *http.CrossOriginProtection
	looking  chan struct{} // one for each call that looks at the log
	attaches attaches

	serving context.Context // ends with drain
	drain   context.CancelFunc
}

// New returns the handler of a member, which need not be ready yet, and of its cluster; without one,
// nil, there is nothing at the paths of sequencers and of the cluster. The logger is told about bugs only: neither
// refusals nor clients that went away are logged. Nil: nobody is told.
func New(m Member, c Cluster, log *slog.Logger) *Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{
		member: m, cluster: c, log: log, patience: patience,
		mux: http.NewServeMux(), methods: map[string][]string{}, browsers: http.NewCrossOriginProtection(),
		looking: make(chan struct{}, maxLooking), attaches: attaches{byName: map[string]int{}},
	}
	h.serving, h.drain = context.WithCancel(context.Background())
	h.post("/api/v1/id", h.next)
	h.post("/api/v1/ids", h.fill)
	h.get("/api/v1/ids/{id}", h.decode)
	h.get("/livez", alive)
	h.get("/readyz", h.ready)
	h.mux.HandleFunc("/", notFound)
	h.serveDocs()
	if c != nil {
		h.serveSequencers()
		h.get("/api/v1/cluster", h.status)
		h.get("/api/v1/cluster/value", h.look(h.value))
		h.get("/api/v1/cluster/log", h.look(h.entries))
	}
	return h
}

func (h *Handler) serveSequencers() {
	const one = "/api/v1/sequencers/{name}"
	h.handle("/api/v1/sequencers", map[string]http.HandlerFunc{http.MethodGet: h.list, http.MethodPost: h.create})
	h.handle(one, map[string]http.HandlerFunc{http.MethodGet: h.show, http.MethodDelete: h.destroy})
	h.post(one+"/id", h.nextOf)
	h.post(one+"/ids", h.fillOf)
	h.get(one+"/ids/{id}", h.decodeOf)
	h.post(one+"/attach", h.attach)
	h.post(one+"/detach", h.detach)
}

// Drain makes /readyz say that IDs should be asked for elsewhere, while they are still given
// here, and asks clients to close their connections. Calls that follow the log end. There is
// no way back.
func (h *Handler) Drain() { h.drain() }

func (h *Handler) draining() bool { return h.serving.Err() != nil }

// ServeHTTP implements [http.Handler]. It reads no body but that of POST /api/v1/sequencers.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.draining() {
		w.Header().Set("Connection", "close")
	}
	h.mux.ServeHTTP(w, r)
}

var errDraining = fmt.Errorf("%w: it is shutting down", member.ErrNotReady)

func alive(w http.ResponseWriter, _ *http.Request) { writeOK(w) }

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	err := h.member.Ready()
	if h.draining() {
		err = errDraining
	}
	switch {
	case err == nil:
		writeOK(w)
	case errors.Is(err, member.ErrNotReady): // whatever the reason is, and if only others can do something about it
		unavailable(w, "not_ready", err.Error())
	default:
		h.refuse(w, r, err)
	}
}
