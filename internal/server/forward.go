package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/retry"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
)

// Forwarder has other nodes make IDs. It is safe for concurrent use.
type Forwarder interface {
	// Fill fills ids with IDs of a sequencer, in the order in which they were made, from the node that serves at a URL, for the
	// caller with this token; empty: none. An *ElsewhereError is returned when that node refuses.
	Fill(ctx context.Context, url, token, sequencer string, ids []firn.ID) error
}

// ElsewhereError is the refusal of a node that was asked for another.
type ElsewhereError struct {
	Node    string // its member ID
	Code    Code
	Message string
	Retry   time.Duration // how long to wait before a retry; zero: a retry does not help
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the node %s, which was asked for this one: %s", e.Node, e.Message)
}

// ofCaller reports whether a refusal is about the caller or the sequencer, so that it says more than why this node made no IDs.
func (e *ElsewhereError) ofCaller() bool {
	switch e.Code {
	case RateLimited, Overloaded, Lifetime, BadRequest:
		return true
	}
	return false
}

type forwardedKey struct{}

// Forwarded returns the context of a call that another node has forwarded: it is not forwarded again.
func Forwarded(ctx context.Context) context.Context {
	return context.WithValue(ctx, forwardedKey{}, true)
}

// elsewhere is the issuer of a sequencer at another node.
type elsewhere struct {
	s     *Service
	name  string // of the sequencer
	held  cluster.Sequencer
	token string
	at    holder
}

// holder is a member that has node IDs of a sequencer.
type holder struct{ id, url string }

// elsewhere returns the issuer of another node that has node IDs of a sequencer, for a call that got no IDs here because of
// why; false: there is none, or the call must not be forwarded.
func (s *Service) elsewhere(ctx context.Context, who *auth.Caller, name string, why error) (*elsewhere, bool) {
	var detached *detachedError
	if s.options.Forwarder == nil || !errors.Is(why, member.ErrNotReady) && !errors.As(why, &detached) ||
		errors.Is(why, firn.ErrLifetime) || ctx.Err() != nil || ctx.Value(forwardedKey{}) != nil {
		return nil, false
	}
	held, ok := s.member.Value().Sequencer(name)
	if !ok {
		return nil, false
	}
	at, ok := s.peers.holder(ctx, s.member, name, held)
	return &elsewhere{s, name, held, who.Token(), at}, ok
}

// Next implements Issuer.
func (e *elsewhere) Next(ctx context.Context) (firn.ID, error) {
	var ids [1]firn.ID
	err := e.fill(ctx, ids[:])
	return ids[0], err
}

// FillAfter implements Issuer. The other node may make them under another node ID than those before, whose clock may be ahead.
func (e *elsewhere) FillAfter(ctx context.Context, after firn.ID, ids []firn.ID) error {
	made := func(id firn.ID) firn.ID {
		if e.Definition().Scattered {
			return firn.Gather(id)
		}
		return id
	}
	for {
		err := e.fill(ctx, ids)
		if err == nil && (after == 0 || made(ids[0]) > made(after)) {
			return nil
		}
		if err == nil {
			err = retry.Sleep(ctx, time.Millisecond)
		}
		if err != nil {
			clear(ids)
			return err
		}
	}
}

func (e *elsewhere) fill(ctx context.Context, ids []firn.ID) error {
	var err error
	for some := range slices.Chunk(ids, MaxCount) {
		if err = e.s.options.Forwarder.Fill(ctx, e.at.url, e.token, e.name, some); err != nil {
			break
		}
	}
	if refused, ok := errors.AsType[*ElsewhereError](err); ok {
		refused.Node = e.at.id
	}
	if err != nil && ctx.Err() == nil {
		e.s.peers.failed(e.at.id)
	}
	return err
}

// Ready implements Issuer.
func (e *elsewhere) Ready() error { return nil }

// Definition implements Issuer.
func (e *elsewhere) Definition() cluster.Definition { return e.held.Definition() }

// NodeIDs implements Issuer.
func (e *elsewhere) NodeIDs() []int64 { return e.held.Held(e.at.id) }

// forwarded counts the calls for IDs that other nodes were asked to answer.
type forwarded struct{ answered, failed atomic.Uint64 }

func (f *forwarded) note(err error) {
	if err != nil {
		f.failed.Add(1)
		return
	}
	f.answered.Add(1)
}

// Forwarded returns how many calls for IDs other nodes have answered for this one, and how many they have not.
func (s *Service) Forwarded() (answered, failed uint64) {
	return s.forwarded.answered.Load(), s.forwarded.failed.Load()
}

// peers knows where other members serve, by their pulses. The zero value knows none.
type peers struct {
	mu    sync.Mutex // guards what follows
	known map[string]peer
	last  map[string]string // by sequencer: the member that was asked last
}

type peer struct {
	addresses map[string]string
	asked     time.Time
	failed    time.Time // when it last gave no IDs
}

const (
	askAgain  = time.Minute     // how long a member's addresses are believed
	notAgain  = 2 * time.Second // how long a member is not asked for IDs after it gave none
	askWithin = time.Second     // how long the store may take to tell a member's addresses
)

// Addresses returns where a member serves, by protocol; none: it serves nothing, or is not known. An error is returned when the
// store does not answer, with what was known before.
func (s *Service) Addresses(ctx context.Context, id string) (map[string]string, error) {
	p, err := s.peers.of(ctx, s.member, id)
	return p.addresses, err
}

func (k *peers) of(ctx context.Context, m Member, id string) (peer, error) {
	k.mu.Lock()
	p, ok := k.known[id]
	k.mu.Unlock()
	if ok && time.Since(p.asked) < askAgain {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	pulse, err := m.PulseOf(ctx, id)
	k.mu.Lock()
	defer k.mu.Unlock()
	p = k.known[id]
	if err == nil {
		p.addresses = pulse.Vitals.Addresses
	}
	p.asked = time.Now()
	if k.known == nil {
		k.known = map[string]peer{}
	}
	v := m.Value()
	maps.DeleteFunc(k.known, func(id string, _ peer) bool { return !v.IsMember(id) })
	maps.DeleteFunc(k.last, func(name, _ string) bool { _, there := v.Sequencer(name); return !there })
	k.known[id] = p
	return p, err
}

// holder returns a member that has node IDs of a sequencer and serves HTTP: the one that was asked last, while it gives IDs, or
// else any.
func (k *peers) holder(ctx context.Context, m Member, name string, held cluster.Sequencer) (holder, bool) {
	k.mu.Lock()
	last := k.last[name]
	k.mu.Unlock()
	if at, ok := k.asks(ctx, m, last, held); ok {
		return at, true
	}
	var others []string
	for _, id := range held.Nodes() {
		others = append(others, id)
	}
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for _, id := range others {
		at, ok := k.asks(ctx, m, id, held)
		if !ok {
			continue
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.last == nil {
			k.last = map[string]string{}
		}
		k.last[name] = id
		return at, true
	}
	return holder{}, false
}

// asks returns where to ask a member for IDs of a sequencer; false: it has none, serves nothing, or gave none a moment ago.
func (k *peers) asks(ctx context.Context, m Member, id string, held cluster.Sequencer) (holder, bool) {
	if id == "" || id == m.ID() || len(held.Held(id)) == 0 {
		return holder{}, false
	}
	p, _ := k.of(ctx, m, id) // what was known is as good where the store does not answer
	return holder{id, p.addresses["http"]}, p.addresses["http"] != "" && time.Since(p.failed) >= notAgain
}

// failed notes that a member gave no IDs.
func (k *peers) failed(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p, ok := k.known[id]; ok {
		p.failed = time.Now()
		k.known[id] = p
	}
}
