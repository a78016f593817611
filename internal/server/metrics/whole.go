package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/member"
)

// tellers knows which members Prometheus can ask: nodes that serve, and not applications that embed a member. So what is
// true of a whole sequencer is exported once, by one of those that it is about.
type tellers struct {
	mu    sync.Mutex
	known map[string]teller // by member ID
}

type teller struct {
	tells bool
	asked time.Time
}

// askAgain is how long a member that serves nothing is believed to do so.
const askAgain = time.Minute

// first reports whether the member is the first that Prometheus can ask of those attached to a sequencer, by their node
// IDs; those that wait come last. One about which the store does not answer before ctx ends is taken for one that can.
func (t *tellers) first(ctx context.Context, m *member.Member, s cluster.Sequencer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	self := m.ID()
	for _, id := range s.Nodes() {
		if id == self || t.tells(ctx, m, id) {
			return id == self
		}
	}
	for _, id := range s.Waiting() {
		if id == self || t.tells(ctx, m, id) {
			return id == self
		}
	}
	return false
}

// tells reports whether Prometheus can ask a member. It asks the store once for one that serves.
func (t *tellers) tells(ctx context.Context, m *member.Member, id string) bool {
	is, ok := t.known[id]
	if ok && (is.tells || time.Since(is.asked) < askAgain) {
		return is.tells
	}
	p, err := m.PulseOf(ctx, id)
	if err != nil {
		return !ok || is.tells
	}
	t.known[id] = teller{len(p.Vitals.Addresses) > 0, time.Now()}
	return t.known[id].tells
}

// keep forgets those that are no members any more.
func (t *tellers) keep(v cluster.Value) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.known {
		if !v.IsMember(id) {
			delete(t.known, id)
		}
	}
}
