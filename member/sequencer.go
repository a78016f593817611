package member

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/attachment"
	"github.com/firn-id/firn/internal/fence"
)

// DefaultSequencer is the name of the sequencer that serves those who name none.
const DefaultSequencer = "default"

// Sequencer makes the IDs of one ID space under the node ID that this member has in it. Get it from
// Member.EnsureSequencer or Member.Attach. Once attached it keeps its place by itself, through lost sessions and the others'
// comings and goings, until Detach. Its methods are safe for concurrent use.
type Sequencer struct {
	m          *Member
	name       string
	definition cluster.Definition
	layout     firn.Layout
	fences     fence.Config
	waits      firn.Waits    // of all generators
	wake       chan struct{} // has its goroutine look again

	mu     sync.Mutex // held while status is replaced
	status atomic.Pointer[status]

	driver
}

func (m *Member) newSequencer(name string, v cluster.Sequencer) *Sequencer {
	s := &Sequencer{
		m: m, name: name, definition: v.Definition(), layout: v.Definition().IDLayout(),
		fences: fence.Config{
			Store: m.store, Prefix: fencePrefix(name),
			Owner: m.options.Owner, Window: m.options.Window, Clock: m.now,
		},
		wake: make(chan struct{}, 1),
	}
	s.status.Store(&status{created: v.Created(), wanted: true, why: errAttaching, changed: make(chan struct{})})
	return s
}

// Next returns the next ID. It waits for the clock, by milliseconds, until ctx ends, but not for the
// store: ErrNotReady is returned when an ID can't be given.
func (s *Sequencer) Next(ctx context.Context) (firn.ID, error) {
	g := s.status.Load().generator
	for g != nil {
		id, err := g.Next(ctx)
		if err == nil {
			return id, nil
		}
		if g, err = s.next(g, err); err != nil {
			return 0, err
		}
	}
	return 0, s.notReady()
}

// Fill fills ids with the next IDs, in ascending order. It waits and fails as Next does; after
// an error ids is zeroed.
func (s *Sequencer) Fill(ctx context.Context, ids []firn.ID) error {
	g := s.status.Load().generator
	for g != nil {
		err := g.Fill(ctx, ids)
		if err == nil {
			return nil
		}
		if g, err = s.next(g, err); err != nil {
			return err
		}
	}
	clear(ids)
	return s.notReady()
}

// next is what to go on with after g has failed; nil: there is nothing.
func (s *Sequencer) next(g *firn.Generator, err error) (*firn.Generator, error) {
	switch {
	case errors.Is(err, firn.ErrStopped): // whoever stopped it holds mu until another can be in its place
		s.mu.Lock()
		defer s.mu.Unlock()
	case !errors.Is(err, firn.ErrBound):
		return nil, err
	}
	if now := s.status.Load().generator; now != g {
		return now, nil
	}
	return nil, s.notReady()
}

func (s *Sequencer) notReady() error { return fmt.Errorf("%w: %w", ErrNotReady, s.status.Load().why) }

// Ready returns nil when Next can be expected to give an ID, and else an ErrNotReady that says why not: within it is
// firn.ErrLifetime when the clock shows a time for which the layout has no IDs.
func (s *Sequencer) Ready() error {
	t := s.status.Load().inUse()
	if t.fence == nil {
		return s.notReady()
	}
	now := s.m.now()
	if err := s.lifetime(now); err != nil {
		return err
	}
	if now.Add(s.layout.Tick).After(t.fence.Horizon()) {
		return s.notReady()
	}
	return nil
}

// Attach has the member get a node ID of the sequencer again after Detach, and waits until the outcome of that is
// known. Attached already, it does nothing.
//
// ErrNotReady is returned when there is no node ID to use yet: within it, ErrWaiting when all are taken, and the member
// stands in line; it takes over by itself. ErrDestroyed is returned within an ErrNotReady when there is no such
// sequencer any more. When ctx ends first, its error is returned, and the member goes on trying.
func (s *Sequencer) Attach(ctx context.Context) error {
	if _, err := s.attached(ctx); err != nil {
		return err
	}
	return s.Ready()
}

// attached has the member see to it that it is attached, and returns it once the outcome of that is known.
func (s *Sequencer) attached(ctx context.Context) (*Sequencer, error) {
	s.updateIf(func(st *status) bool {
		if st.wanted || st.granted.kind == attachment.Destroyed {
			return false
		}
		st.wanted, st.granted, st.settled, st.why = true, grant{}, false, errAttaching
		return true
	})
	s.m.poke()
	for {
		st := s.status.Load()
		if st.settled {
			return s, nil
		}
		select {
		case <-st.changed:
		case <-s.m.done:
			return nil, s.m.ended()
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", s.m.nags.because(ctx.Err()), s.notReady())
		}
	}
}

// Detach ends the making of IDs here, gives the node ID back, and returns when others may have it. From then on Next
// fails with ErrDetached. Attach is the way back; both can be repeated without limit. Detached already, it does
// nothing.
//
// ErrDestroyed is returned within an ErrNotReady when there is no such sequencer any more. When ctx ends first, its
// error is returned, and the member goes on to detach. ErrAttachedAgain is returned when Attach is called meanwhile.
func (s *Sequencer) Detach(ctx context.Context) error {
	s.updateIf(func(st *status) bool {
		was := st.wanted
		st.wanted = false
		return s.tellLocked(st, grant{}, nil) || was
	})
	s.m.poke()
	for {
		v, incarnation, news := s.m.look()
		q, there := s.in(v)
		st := s.status.Load()
		switch {
		case !there && st.created > 0 && v.Position() >= st.created:
			return fmt.Errorf("%w: %w", ErrNotReady, ErrDestroyed)
		case st.wanted:
			return ErrAttachedAgain
		case st.state.Empty() && (incarnation == nil || !q.Attached(incarnation.id)):
			return nil
		}
		select {
		case <-news:
		case <-st.changed:
		case <-s.m.done:
			return s.m.ended()
		case <-ctx.Done():
			return fmt.Errorf("member: detaching from %q is not done yet, and goes on: %w", s.name, s.m.nags.because(ctx.Err()))
		}
	}
}

// Name returns the sequencer's name.
func (s *Sequencer) Name() string { return s.name }

// Definition returns the definition in force.
func (s *Sequencer) Definition() cluster.Definition { return s.definition }

// Layout returns the layout of the IDs.
func (s *Sequencer) Layout() firn.Layout { return s.layout }

// Parts takes an ID of the sequencer apart. An error is returned when its layout has no such ID.
func (s *Sequencer) Parts(id firn.ID) (firn.Parts, error) { return s.layout.Decompose(id) }

// NodeID returns the node ID that is in use, and whether there is one.
func (s *Sequencer) NodeID() (int64, bool) {
	t := s.status.Load().inUse()
	if t.fence == nil {
		return 0, false
	}
	return t.fence.Node(), true
}

// fencePrefix is what the keys of a sequencer's fences begin with.
func fencePrefix(name string) string { return "sequencers/" + name + "/workers/" }
