package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/member"
)

// find is who gives the IDs of a sequencer.
func (h *Handler) find(name string) Member {
	if s, ok := h.cluster.Find(name); ok {
		return s
	}
	return nobody{}
}

// nobody gives the IDs of a sequencer that this member was never attached to.
type nobody struct{ Member }

var errNobody = fmt.Errorf("%w: it is not attached to this sequencer", member.ErrNotReady)

func (nobody) Next(context.Context) (firn.ID, error) { return 0, errNobody }
func (nobody) Fill(context.Context, []firn.ID) error { return errNobody }

// detachedError is returned where the member is not attached to a sequencer, and is not to attach by itself.
type detachedError struct{ name string }

func (e *detachedError) Error() string {
	return fmt.Sprintf("this node is not attached to the sequencer %q, and does not attach by itself; POST /api/v1/sequencers/%[1]s/attach has it attach, or ask another node", e.name)
}

// attached is what to ask for an ID after there was none, and why there was none. The member attaches to the
// sequencer if it is not attached, and the outcome of that is waited for. What a member that is attached lacks, it
// gets by itself: that is not waited for.
func (h *Handler) attached(ctx context.Context, name string, why error) (Member, error) {
	if h.cluster == nil {
		return nil, why
	}
	s, ok := h.cluster.Find(name)
	if !ok && name == member.DefaultSequencer {
		return nil, why // the member attaches to it as soon as it has joined
	}
	if ok {
		switch s.State().Phase {
		case member.Detached, member.Destroyed:
		case member.Attaching:
			if h.attaches.running(name) {
				awaitAttached(ctx, s)
			}
			return s, nil
		default:
			return s, nil
		}
	}
	if err := cluster.CheckName(name); err != nil {
		return nil, inputError{err}
	}
	if h.NoAutoAttach {
		_, err := h.cluster.Lookup(ctx, name)
		if err == nil {
			err = &detachedError{name}
		}
		return nil, err
	}
	s, err := h.attachTo(ctx, name)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// attachTo attaches to a sequencer, and waits until the member has a node ID that it may use, or knows that it won't
// get one at once.
func (h *Handler) attachTo(ctx context.Context, name string) (*member.Sequencer, error) {
	defer h.attaches.begin(name)()
	s, err := h.cluster.Attach(ctx, name)
	if err != nil {
		return nil, err
	}
	awaitAttached(ctx, s)
	return s, nil
}

func awaitAttached(ctx context.Context, s *member.Sequencer) {
	for state := range s.Changes(ctx) {
		if state.Phase != member.Attaching {
			return
		}
	}
}

// attaches counts the calls, by sequencer, that have the member attach. While there are any, others wait for the
// outcome too.
type attaches struct {
	mu     sync.Mutex // guards byName
	byName map[string]int
}

// begin counts a call until the function that it returns is called.
func (a *attaches) begin(name string) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byName[name]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.byName[name]--; a.byName[name] == 0 {
			delete(a.byName, name)
		}
	}
}

func (a *attaches) running(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byName[name] > 0
}

func (h *Handler) attach(w http.ResponseWriter, r *http.Request) {
	name, err := named(r)
	if err != nil {
		badRequest(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.patience)
	defer cancel()
	s, err := h.attachTo(ctx, name)
	if err == nil {
		err = s.Ready()
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	header(w, jsonType)
	writeJSON(w, h.here(name))
}

func (h *Handler) detach(w http.ResponseWriter, r *http.Request) {
	name, err := named(r)
	if err != nil {
		badRequest(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.patience)
	defer cancel()
	s, ok := h.cluster.Find(name)
	if ok {
		err = s.Detach(ctx)
	} else {
		_, err = h.cluster.Lookup(ctx, name)
	}
	switch {
	case err == nil:
		header(w, jsonType)
		writeJSON(w, h.here(name))
	case errors.Is(err, member.ErrAttachedAgain):
		writeError(w, http.StatusConflict, "attached_again",
			fmt.Sprintf("%v; it attaches when it is asked for an ID of %q, unless it is told not to attach by itself", err, name))
	default:
		h.refuse(w, r, err)
	}
}

// named is the name of a sequencer in the path of a call that is to change something.
func named(r *http.Request) (string, error) {
	if err := noParameters(r.URL.RawQuery, "leave it out"); err != nil {
		return "", err
	}
	name := r.PathValue("name")
	return name, cluster.CheckName(name)
}
