package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
)

// Forwarder has other nodes make IDs. It is safe for concurrent use.
type Forwarder interface {
	// Fill fills ids with IDs of a sequencer, in the order in which they were made, from the node that serves at a URL,
	// for the caller with this token; empty: none. They exceed after, unless that is zero or that node is older than
	// that call. An *ElsewhereError is returned when that node refuses.
	Fill(ctx context.Context, url, token, sequencer string, after firn.ID, ids []firn.ID) error
}

// ElsewhereError is the refusal of a node that was asked for another.
type ElsewhereError struct {
	Node    string // its member ID
	Code    codes.Code
	Message string
	Retry   time.Duration // how long to wait before a retry; zero: a retry does not help

	after bool // it was asked for IDs that exceed another one, which may lie too far ahead of its clock
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("node %s, asked by this node: %s", e.Node, e.Message)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (e *ElsewhereError) Reason() string { return string(e.Code) }

// ofCaller reports whether a refusal is about the caller or the sequencer, so that it says more than why this node made
// no IDs.
func (e *ElsewhereError) ofCaller() bool {
	switch e.Code {
	case codes.RateLimited, codes.Overloaded, codes.Lifetime, codes.BadRequest:
		return true
	case codes.Clock:
		return e.after
	}
	return false
}

// ofNode reports whether a refusal says that the node gives nobody IDs of the sequencer, and not just this caller.
func (e *ElsewhereError) ofNode() bool {
	return !e.ofCaller() && e.Code != codes.Unauthenticated && e.Code != codes.Forbidden
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

// elsewhere returns the issuer at another node that has node IDs of a sequencer. Why is the error that the call got
// here. It returns false if no such node is known, and for a call that must not be forwarded.
func (s *Service) elsewhere(ctx context.Context, who *auth.Caller, name string, why error) (*elsewhere, bool) {
	if s.options.Forwarder == nil || !lacksNodeID(ctx, why) || ctx.Err() != nil {
		return nil, false
	}
	held, ok := s.member.Value().Sequencer(name)
	if !ok {
		return nil, false
	}
	at, ok := s.peers.holder(ctx, s.member, name, held)
	return &elsewhere{s, name, held, who.Token(), at}, ok
}

// rival returns the issuer at the node to which this one leaves a sequencer in strict order, see peer.Counter.Rival. It
// returns false when there is no such node, and for a call that another node has forwarded.
func (s *Service) rival(ctx context.Context, who *auth.Caller, name string) (*elsewhere, bool) {
	if s.options.Forwarder == nil {
		return nil, false
	}
	c, ok := s.member.Counter(name)
	if !ok || ctx.Value(forwardedKey{}) != nil {
		return nil, false
	}
	id := c.Rival()
	if id == "" {
		return nil, false
	}
	held, ok := s.member.Value().Sequencer(name)
	if !ok {
		return nil, false
	}
	at, ok := s.peers.asks(ctx, s.member, question{name, id}, held)
	return &elsewhere{s, name, held, who.Token(), at}, ok
}

// lacksNodeID reports whether a caller's call got no IDs because this node has no node ID of the sequencer, or can have
// none, so that another node may have some for it. A call that another node has forwarded goes no further.
func lacksNodeID(ctx context.Context, why error) bool {
	var detached *detachedError
	lacks := errors.Is(why, peer.ErrNotReady) || errors.Is(why, peer.ErrUnfit) || errors.As(why, &detached)
	return lacks && !errors.Is(why, firn.ErrLifetime) && ctx.Value(forwardedKey{}) == nil
}

// Next implements Issuer.
func (e *elsewhere) Next(ctx context.Context) (firn.ID, error) {
	var ids [1]firn.ID
	err := e.fill(ctx, 0, ids[:])
	return ids[0], err
}

// FillAfter implements Issuer. The other node judges by the caller's token how far ahead it may move ID time. One that
// is older than such calls is asked until its clock is there.
func (e *elsewhere) FillAfter(ctx context.Context, after firn.ID, _ time.Duration, ids []firn.ID) error {
	made := func(id firn.ID) firn.ID {
		if e.Definition().Scattered {
			return firn.Gather(id)
		}
		return id
	}
	for {
		err := e.fill(ctx, after, ids)
		if err == nil && (after == 0 || made(ids[0]) > made(after)) {
			return nil
		}
		if err == nil {
			err = retry.Sleep(ctx, e.between(made(ids[0]), made(after)))
		}
		if err != nil {
			clear(ids)
			return err
		}
	}
}

// between returns the time between two IDs, at least a millisecond.
func (e *elsewhere) between(early, late firn.ID) time.Duration {
	l := e.Definition().IDLayout()
	from, err := l.Time(early)
	to, other := l.Time(late)
	if err != nil || other != nil {
		return time.Millisecond
	}
	return max(to.Sub(from), time.Millisecond)
}

func (e *elsewhere) fill(ctx context.Context, after firn.ID, ids []firn.ID) error {
	began := time.Now()
	var err error
	for some := range slices.Chunk(ids, MaxCount) {
		if err = e.fillSome(ctx, after, some); err != nil {
			break
		}
	}
	if err == nil {
		return nil
	}
	refused, ok := errors.AsType[*ElsewhereError](err)
	if ok {
		refused.Node, refused.after = e.at.id, after != 0
	}
	ended := ctx.Err() != nil && time.Since(began) < hangs // the caller went away, or had little time
	if !ended && (!ok || refused.ofNode()) {
		e.s.peers.failed(e.name, e.at.id)
		e.s.options.Audit.Write(slog.LevelWarn, "", "asked another node for IDs, and got none",
			"sequencer", e.name, "node", e.at.id, "address", e.at.url, "err", err)
	}
	return err
}

// fillSome asks for at most MaxCount IDs. A node that does not answer in time gives none: its machine may be cut off,
// and callers who wait for longer than this may have no time left to ask a third node.
func (e *elsewhere) fillSome(ctx context.Context, after firn.ID, ids []firn.ID) error {
	makes := float64(len(ids)) / e.Definition().IDLayout().Rate() // seconds
	ctx, cancel := context.WithTimeout(ctx, hangs+time.Duration(makes*float64(time.Second)))
	defer cancel()
	return e.s.options.Forwarder.Fill(ctx, e.at.url, e.token, e.name, after, ids)
}

// Ready implements Issuer.
func (e *elsewhere) Ready() error { return nil }

// Definition implements Issuer.
func (e *elsewhere) Definition() cluster.Definition { return e.held.Definition() }

// forwarded counts the calls for IDs that other nodes were asked to answer.
type forwarded struct {
	now              atomic.Int64 // that go on
	answered, failed atomic.Uint64
}

// begin counts a call until end is called; false: there are so many already that a node which does not answer would
// take what this one has for its own calls.
func (f *forwarded) begin(most int) bool {
	if f.now.Add(1) <= int64(max(most/2, 1)) {
		return true
	}
	f.now.Add(-1)
	return false
}

// end ends a call for which begin was true. Err says why the other node gave no IDs; nil: it gave some.
func (f *forwarded) end(err error) {
	f.now.Add(-1)
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
