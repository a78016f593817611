package calls

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
)

// peers knows where other members serve, by their pulses. Make it with newPeers.
type peers struct {
	asking chan struct{} // holds one while the store is asked
	away   time.Time     // when the store last did not answer; guarded by asking

	mu     sync.Mutex // guards what follows
	known  map[string]another
	last   map[string]string      // by sequencer: the member that was asked last
	silent map[question]time.Time // when a member gave no IDs of a sequencer
}

func newPeers() *peers {
	return &peers{
		asking: make(chan struct{}, 1), known: map[string]another{}, last: map[string]string{},
		silent: map[question]time.Time{},
	}
}

type another struct {
	addresses map[string]string
	asked     time.Time
}

// fresh reports whether what is known is believed. A member that served nothing may just have begun.
func (p another) fresh() bool {
	if len(p.addresses) == 0 {
		return time.Since(p.asked) < askAgain/6
	}
	return time.Since(p.asked) < askAgain
}

type question struct{ name, id string }

const (
	askAgain  = time.Minute     // how long a member's addresses are believed
	askWithin = time.Second     // how long the store may take to tell a member's addresses
	notAgain  = 2 * time.Second // how long a member is not asked for IDs after it gave none

	// A member that has not answered for that long, and for the time that the IDs take, gave none. It is half of the
	// second for which balancers wait by default.
	hangs = 500 * time.Millisecond
)

// Addresses returns where a member serves, by protocol; none: it serves nothing, or is not known. An error is returned
// when the store does not answer, and nothing was known before.
func (s *Service) Addresses(ctx context.Context, id string) (map[string]string, error) {
	p, err := s.peers.of(ctx, s.member, id)
	return p.addresses, err
}

// of returns what is known of a member. The store is asked by one call at a time; others use what was known before, if
// anything.
func (k *peers) of(ctx context.Context, m *peer.Member, id string) (another, error) {
	p, ok := k.get(id)
	if ok && p.fresh() {
		return p, nil
	}
	select {
	case k.asking <- struct{}{}:
	default:
		if ok {
			return p, nil
		}
		select {
		case k.asking <- struct{}{}:
		case <-ctx.Done():
			return p, ctx.Err()
		}
	}
	defer func() { <-k.asking }()
	if p, ok = k.get(id); ok && p.fresh() { // since another call asked
		return p, nil
	}
	err := errAway
	var pulse peer.Pulse
	if time.Since(k.away) >= notAgain {
		within, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		if pulse, err = m.PulseOf(within, id); err != nil && ctx.Err() == nil {
			k.away = time.Now()
		}
	}
	switch {
	case err != nil && ok:
		return p, nil
	case err != nil:
		return p, err
	}
	p = another{pulse.Vitals.Addresses, time.Now()}
	k.set(id, p, m.Value())
	return p, nil
}

var errAway = errors.New("the store did not answer a moment ago")

func (k *peers) get(id string) (another, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.known[id]
	return p, ok
}

// set notes what is known of a member, and forgets those that are no members any more.
func (k *peers) set(id string, p another, v cluster.Value) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.known, func(id string, _ another) bool { return !v.IsMember(id) })
	maps.DeleteFunc(k.last, func(name, _ string) bool { _, there := v.Sequencer(name); return !there })
	k.known[id] = p
}

// holder returns a member that has node IDs of a sequencer and serves HTTP: the one that was asked last, while it gives
// IDs, or else any.
func (k *peers) holder(ctx context.Context, m *peer.Member, name string, held cluster.Sequencer) (holder, bool) {
	k.mu.Lock()
	last := k.last[name]
	k.mu.Unlock()
	if at, ok := k.asks(ctx, m, question{name, last}, held); ok {
		return at, true
	}
	var others []string
	for _, id := range held.Nodes() {
		others = append(others, id)
	}
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for _, id := range others {
		at, ok := k.asks(ctx, m, question{name, id}, held)
		if !ok {
			continue
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.last[name] = id
		return at, true
	}
	return holder{}, false
}

// asks returns where to ask a member for IDs of a sequencer; false: it has no node ID, nobody reaches it over a
// network, or it gave none a moment ago.
func (k *peers) asks(ctx context.Context, m *peer.Member, a question, held cluster.Sequencer) (holder, bool) {
	_, holds := held.Node(a.id)
	if a.id == "" || a.id == m.ID() || !held.Definition().Claimed() && !holds || k.isSilent(a) {
		return holder{}, false
	}
	p, _ := k.of(ctx, m, a.id) // what was known is as good where the store does not answer
	url := p.addresses["http"]
	return holder{a.id, url}, strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://")
}

func (k *peers) isSilent(a question) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.silent[a]) < notAgain
}

// failed notes that a member gave no IDs of a sequencer.
func (k *peers) failed(name, id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.silent, func(_ question, at time.Time) bool { return time.Since(at) >= notAgain })
	k.silent[question{name, id}] = time.Now()
}
