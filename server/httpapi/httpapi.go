// Package httpapi is the HTTP face of a member: it gives out IDs as plain JSON, takes IDs
// apart, and tells whether it is alive and ready.
//
//	POST /api/v1/id              {"id":1234,"id_str":"1234"}
//	POST /api/v1/ids?count=100   {"ids":[...],"ids_str":[...]}, ascending; count is 1 to 100000
//	GET  /api/v1/ids/{id}        the Parts of an ID
//	GET  /livez                  "ok" as long as the process serves
//	GET  /readyz                 "ok" when an ID would be given, and shall be asked for here
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
//	404 unknown_position     the log does not go back, or has not come, that far
//	405 method_not_allowed   the Allow header says which are
//	500 internal             a bug; it is logged
//	500 unreadable           the log holds what this program can't read; it is logged
//	503 not_ready            no ID can be given now; try another server, or again
//	503 unavailable          the log can't be read now
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
	"strings"
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
	member   Member
	cluster  Cluster // may be nil
	log      *slog.Logger
	patience time.Duration
	mux      *http.ServeMux
	browsers *http.CrossOriginProtection
	looking  chan struct{} // one for each call that looks at the log

	serving context.Context // ends with drain
	drain   context.CancelFunc
}

// New returns the handler of a member, which need not be ready yet, and of its cluster; without one,
// nil, there is nothing at the paths that show it. The logger is told about bugs only: neither refusals nor
// clients that went away are logged. Nil: nobody is told.
func New(m Member, c Cluster, log *slog.Logger) *Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{
		member: m, cluster: c, log: log, patience: patience,
		mux: http.NewServeMux(), browsers: http.NewCrossOriginProtection(),
		looking: make(chan struct{}, maxLooking),
	}
	h.serving, h.drain = context.WithCancel(context.Background())
	if c != nil {
		h.mux.HandleFunc("/api/v1/cluster", get(h.status))
		h.mux.HandleFunc("/api/v1/cluster/value", get(h.look(h.value)))
		h.mux.HandleFunc("/api/v1/cluster/log", get(h.look(h.entries)))
	}
	h.mux.HandleFunc("/api/v1/id", h.post(h.next))
	h.mux.HandleFunc("/api/v1/ids", h.post(h.fill))
	h.mux.HandleFunc("/api/v1/ids/{id}", get(h.decode))
	h.mux.HandleFunc("/livez", get(alive))
	h.mux.HandleFunc("/readyz", get(h.ready))
	h.mux.HandleFunc("/", notFound)
	return h
}

// Drain makes /readyz say that IDs should be asked for elsewhere, while they are still given
// here, and asks clients to close their connections. Calls that follow the log end. There is
// no way back.
func (h *Handler) Drain() { h.drain() }

func (h *Handler) draining() bool { return h.serving.Err() != nil }

// ServeHTTP implements [http.Handler]. A body that is sent to it is not read.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.draining() {
		w.Header().Set("Connection", "close")
	}
	h.mux.ServeHTTP(w, r)
}

func (h *Handler) next(w http.ResponseWriter, r *http.Request) {
	if err := noParameters(r.URL.RawQuery, "for several IDs POST /api/v1/ids?count=N"); err != nil {
		badRequest(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.patience)
	defer cancel()
	id, err := h.member.Next(ctx)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	writeID(w, id)
}

func (h *Handler) fill(w http.ResponseWriter, r *http.Request) {
	count, err := parseCount(r.URL.RawQuery)
	if err != nil {
		badRequest(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.patience)
	defer cancel()
	ids := make([]firn.ID, count)
	if err := h.member.Fill(ctx, ids); err != nil {
		h.refuse(w, r, err)
		return
	}
	writeIDs(w, ids)
}

func (h *Handler) decode(w http.ResponseWriter, r *http.Request) {
	parts, err := parseParts(h.member.Layout(), r.PathValue("id"))
	if err != nil {
		badRequest(w, err)
		return
	}
	writeParts(w, parts)
}

var errDraining = fmt.Errorf("%w: it is shutting down", member.ErrNotReady)

func alive(w http.ResponseWriter, _ *http.Request) { writeOK(w) }

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	err := h.member.Ready()
	if h.draining() {
		err = errDraining
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	writeOK(w)
}

// refuse answers a call that gets no ID.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case r.Context().Err() != nil: // the client went away: there is nobody to tell
	case errors.Is(err, member.ErrNotReady):
		unavailable(w, "not_ready", err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		unavailable(w, "overloaded", fmt.Sprintf("no answer within %v: a node of this layout makes at most %.0f IDs a second; ask for fewer, or more servers",
			h.patience, h.member.Layout().Rate()))
	case errors.Is(err, firn.ErrLifetime):
		unavailable(w, "lifetime", err.Error())
	default:
		h.log.Error("a call failed", "method", r.Method, "path", r.URL.Path, "err", err)
		writeError(w, http.StatusInternalServerError, "internal", err.Error())
	}
}

// post lets only POST through, and no browser that is sent here by another site's page.
func (h *Handler) post(next http.HandlerFunc) http.HandlerFunc {
	return only(next, func(r *http.Request) error { return h.browsers.Check(r) }, http.MethodPost)
}

func get(next http.HandlerFunc) http.HandlerFunc {
	return only(next, func(*http.Request) error { return nil }, http.MethodGet, http.MethodHead)
}

func only(next http.HandlerFunc, check func(*http.Request) error, methods ...string) http.HandlerFunc {
	allow := strings.Join(methods, ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		for _, m := range methods {
			if r.Method != m {
				continue
			}
			if err := check(r); err != nil {
				writeError(w, http.StatusForbidden, "cross_origin", err.Error())
				return
			}
			next(w, r)
			return
		}
		w.Header().Set("Allow", allow)
		writeError(w, http.StatusMethodNotAllowed, "method_not_allowed",
			fmt.Sprintf("%.40q is no method for %.80q; want %s", r.Method, r.URL.Path, allow))
	}
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeError(w, http.StatusNotFound, "not_found",
		fmt.Sprintf("there is nothing at %.80q; try POST /api/v1/id, POST /api/v1/ids?count=N or GET /api/v1/ids/{id}", r.URL.Path))
}
