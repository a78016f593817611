package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// handle serves a path, by method. HEAD is served wherever GET is.
func (h *Handler) handle(path string, by map[string]http.HandlerFunc) {
	if get, ok := by[http.MethodGet]; ok {
		by[http.MethodHead] = get
	}
	h.methods[path] = slices.Sorted(maps.Keys(by))
	allow := strings.Join(h.methods[path], ", ")
	for method, next := range by {
		name := strings.Replace(method, http.MethodHead, http.MethodGet, 1) + " " + path // as metrics call it
		by[method] = h.counted(path, name, h.guard(next))
	}
	other := h.counted(path, "other", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		writeError(w, codes.MethodNotAllowed,
			fmt.Sprintf("the method %.40q is not allowed for %.80q; want %s", r.Method, r.URL.Path, allow))
	})
	h.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		next, ok := by[r.Method]
		if !ok {
			next = other
		}
		next(w, r)
	})
}

// guard refuses browsers that another site's page has sent here to change something.
func (h *Handler) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := errors.Join(h.browsers.Check(r), h.policy.AdmitHost(r.Host)); err != nil {
			RefuseCrossOrigin(w, r, h.service, err)
			return
		}
		next(w, r)
	}
}

// errFromAfar is returned by notFromAfar.
var errFromAfar = errors.New("another site's page may have sent your browser here, as it does not say that this is " +
	"not so; " +
	"use https or localhost, or another program than a browser")

// notFromAfar refuses a GET that another site's page may have had a browser send, where GET is not safe. Browsers say
// from where, but over plain HTTP to another machine only of other methods than GET. No page can change that they call
// themselves Mozilla.
func (h *Handler) notFromAfar(r *http.Request) error {
	unsafe := *r
	unsafe.Method = http.MethodPost
	if err := h.browsers.Check(&unsafe); err != nil {
		return err
	}
	says := r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
	if !says && r.Method != http.MethodPost && strings.HasPrefix(r.UserAgent(), "Mozilla/") {
		return errFromAfar
	}
	return nil
}

// open serves a path without a token.
func (h *Handler) open(path string, next http.HandlerFunc) {
	h.handle(path, map[string]http.HandlerFunc{http.MethodGet: next})
}

func (h *Handler) get(path string, next call) {
	h.handle(path, map[string]http.HandlerFunc{http.MethodGet: h.admit(h.few(next))})
}

func (h *Handler) post(path string, next call) {
	h.handle(path, map[string]http.HandlerFunc{http.MethodPost: h.admit(next)})
}

// call serves an admitted caller.
type call func(w http.ResponseWriter, r *http.Request, who *auth.Caller)

const (
	maxComputing  = 8               // answers to calls of one kind at a time, before their first bytes: IDs matter more
	computeWithin = 2 * time.Second // a call waits for that
)

// few computes few answers of a kind at a time. Others wait.
func (h *Handler) few(next call) call {
	computing := make(chan struct{}, maxComputing)
	return func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
		d := deliveryOf(w)
		if d == nil { // there is no budget
			next(w, r, who)
			return
		}
		select {
		case computing <- struct{}{}:
		default:
			if err := waitFor(r.Context(), computing); err != nil {
				h.refuse(w, r, err)
				return
			}
		}
		d.computed = func() { <-computing }
		next(w, r, who)
	}
}

// waitFor waits for a place.
func waitFor(ctx context.Context, places chan<- struct{}) error {
	late := time.NewTimer(computeWithin)
	defer late.Stop()
	select {
	case places <- struct{}{}:
		return nil
	case <-late.C:
		return calls.ErrCrowded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lasting ends a call whose answer goes on within a second after its caller has lost a right to the cluster.
func (h *Handler) lasting(right auth.Right, next call) call {
	return func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
		ctx, stop := auth.While(r.Context(), func() error {
			who, err := h.policy.Admit(Token(r))
			if err == nil {
				err = who.May(right, "")
			}
			return err
		})
		defer stop()
		next(w, r.WithContext(ctx), who)
	}
}

// admit admits callers, or refuses them.
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

// omit is what to do instead of giving a query.
const omit = "leave it out"

// bare refuses a query for a call that takes none, and says what to do instead.
func bare(instead string, next call) call {
	return func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
		if query := r.URL.RawQuery; query != "" {
			badRequest(w, fmt.Errorf("the query %.80q has no effect here; %s", query, instead))
			return
		}
		next(w, r, who)
	}
}

// answers calls a method of the service that takes the name of a sequencer, and answers with what it returns.
func answers[T any](h *Handler, f func(ctx context.Context, who *auth.Caller, sequencer string) (T, error)) call {
	return func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
		v, err := f(Origin(r).In(r.Context()), who, sequencerOf(r))
		h.answer(w, r, v, err)
	}
}

// Token is the token that a caller sends; empty: none.
func Token(r *http.Request) string {
	header := r.Header["Authorization"] // as net/http spells it: Get would first look at how it is spelled
	if len(header) == 0 {
		return ""
	}
	return auth.Bearer(header[0])
}

func nothingHere(w http.ResponseWriter, r *http.Request) {
	writeError(w, codes.NotFound,
		fmt.Sprintf("there is nothing at %.80q; try POST /api/v1/id, POST /api/v1/ids?count=N or GET /api/v1/ids/{id}",
			r.URL.Path))
}
