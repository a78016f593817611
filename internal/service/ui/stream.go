package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

// The events of the stream:
//
//	view   a patch, the first with everything, what never changes, and whether who looks may change things;
//	       at most two a second, and only for changes
//	beat   once a second: the time, and how many IDs were given
//	end    why the stream ends: an httpapi.Failure
const (
	viewEvent = "view"
	beatEvent = "beat"
	endEvent  = "end"
)

// beat is what the page gets once a second.
type beat struct {
	UnixMS int64       `json:"unix_ms"`
	Given  []NodeGiven `json:"given"` // exact in JavaScript for 70 years of four million IDs a second
}

var errViewers = fmt.Errorf("%w: %d pages are shown already", calls.ErrCrowded, maxViewers)

// stream sends a page what to show until the page goes away, its token is revoked, or the server stops.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	who, err := h.admit(r)
	if err == nil && h.service.Serving().Err() != nil {
		err = calls.ErrDraining
	}
	if err == nil {
		err = who.Spend(1)
	}
	if err != nil {
		httpapi.Refuse(w, r, h.service, err)
		return
	}
	select {
	case h.viewers <- struct{}{}:
		defer func() { <-h.viewers }()
	default:
		httpapi.Refuse(w, r, h.service, errViewers)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // for an nginx in between
	if r.Method == http.MethodHead {
		return
	}
	e := events{w: w, control: http.NewResponseController(w)}
	if err := h.follow(r, &e); err != nil {
		e.send(endEvent, httpapi.Failure{Error: httpapi.Error{Code: calls.CodeOf(err), Message: err.Error()}})
	}
}

// admit admits callers who may look at the cluster.
func (h *Handler) admit(r *http.Request) (*auth.Caller, error) {
	who, err := h.policy.Admit(httpapi.Token(r))
	if err == nil {
		err = who.May(auth.Look, "")
	}
	return who, err
}

// follow sends changes. It returns why it stops, unless the page has gone away.
func (h *Handler) follow(r *http.Request, e *events) error {
	ticks := time.NewTicker(changesEvery)
	defer ticks.Stop()
	shown := new(scene)
	var beaten time.Time
	for now := time.Now(); ; {
		who, err := h.admit(r) // the token may have been revoked
		if err != nil {
			return err
		}
		next, err := h.scenes.look(who, now)
		if err != nil {
			return err
		}
		if next != shown {
			changes := shown.tree.patch(next.tree)
			if shown.tree == nil {
				changes["reset"] = true // the page forgets what it shows
				changes["layouts"] = layouts
				changes["may"] = who.May(auth.Admin, "") == nil
			}
			if len(changes) > 0 {
				e.send(viewEvent, changes)
			}
			shown = next
		}
		if now.Sub(beaten) >= beatEvery-changesEvery/2 {
			beaten = now
			e.send(beatEvent, beat{now.UnixMilli(), h.given()})
		}
		if e.err != nil {
			return nil // the page has gone away
		}
		select {
		case now = <-ticks.C:
		case <-r.Context().Done():
			return nil
		case <-h.service.Serving().Done():
			return calls.ErrDraining
		}
	}
}

// events writes events until one can't be written.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (e *events) send(event string, data any) {
	if e.err != nil {
		return
	}
	line, err := json.Marshal(data)
	if err != nil {
		e.err = err
		return
	}
	if _, e.err = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", event, line); e.err == nil {
		e.err = e.control.Flush()
	}
}
