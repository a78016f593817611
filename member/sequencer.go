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

// DefaultSequencer is the sequencer of calls that name no sequencer.
const DefaultSequencer = "default"

// Sequencer makes the IDs of one ID space under the node ID that this member has in it. Member.EnsureSequencer
// and Member.Attach return one. It stays attached until Detach: after the loss of its session or node ID, it gets
// another by itself. Its methods are safe for concurrent use.
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
			Owner: m.options.Owner, Clock: m.now,
			Window: m.options.window(v.Definition()), MaxWait: 2 * m.options.Window,
		},
		wake: make(chan struct{}, 1),
	}
	s.status.Store(&status{created: v.Created(), wanted: true, why: errAttaching, changed: make(chan struct{})})
	return s
}

// Next returns the next ID. It may wait milliseconds for the clock, until ctx ends. It never waits for the store:
// ErrNotReady is returned when the member can make no ID now.
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

// Fill fills ids with the next IDs, in ascending order. It waits and fails as Next does; on an error it zeroes
// ids.
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

// next returns the generator to use after g has failed, and nil when there is none.
func (s *Sequencer) next(g *firn.Generator, err error) (*firn.Generator, error) {
	switch {
	case errors.Is(err, firn.ErrStopped): // mu is held from the stop of a generator until its replacement
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

func (s *Sequencer) notReady() error {
	why := s.status.Load().why
	if err := s.m.judged().err(); err != nil && why == errAtHorizon {
		why = err
	}
	return fmt.Errorf("%w: %w", ErrNotReady, why)
}

// Ready returns nil when Next can be expected to return an ID. Otherwise it returns an ErrNotReady that says why not; it
// wraps firn.ErrLifetime when the clock shows a time for which the layout has no IDs.
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

// Attach attaches the sequencer again after Detach, and waits for the outcome. It does nothing when the sequencer
// is attached.
//
// ErrNotReady is returned when the member may not use a node ID yet. It wraps ErrWaiting when all are taken and
// the member waits in line for one, and ErrDestroyed when the sequencer was destroyed. When ctx ends first, its
// error is returned, and the member goes on trying.
func (s *Sequencer) Attach(ctx context.Context) error {
	if _, err := s.attached(ctx); err != nil {
		return err
	}
	return s.Ready()
}

// attached makes sure that the sequencer is attached, and returns it once the outcome is known.
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
			return nil, fmt.Errorf("%w: %w", s.m.troubles.because(ctx.Err()), s.notReady())
		}
	}
}

// Detach stops making IDs here, releases the node ID, and returns when others can have it. From then on Next
// returns ErrDetached, until Attach. It does nothing when the sequencer is detached.
//
// An ErrNotReady that wraps ErrDestroyed is returned when the sequencer was destroyed, and ErrAttachedAgain when
// Attach is called meanwhile. When ctx ends first, its error is returned, and the member goes on detaching.
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
			return fmt.Errorf("detaching from %q is not done yet, and goes on: %w", s.name, s.m.troubles.because(ctx.Err()))
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

// fencePrefix returns the prefix of the keys of a sequencer's fences.
func fencePrefix(name string) string { return "sequencers/" + name + "/workers/" }
