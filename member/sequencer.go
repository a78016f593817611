package member

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/fence"
)

// DefaultSequencer is the name of the sequencer that serves those who name none.
const DefaultSequencer = "default"

// Sequencer makes the IDs of one ID space under the node ID that this member has in it. Get it from
// Member.Sequencer. Its methods are safe for concurrent use.
type Sequencer struct {
	m          *Member
	name       string
	definition cluster.Definition
	layout     firn.Layout
	fences     fence.Config
	end        context.CancelFunc
	done       chan struct{} // closed when its goroutine has ended
	news       chan struct{} // the grant is another
	settled    chan struct{} // closed when it is clear how the first attempt at a node ID ended

	current atomic.Pointer[hold] // what Next uses; nil while there is nothing to use

	switching sync.RWMutex // held for writing while current is exchanged
	used      time.Time    // guarded by switching: the end of the last tick of any generator before

	why atomic.Pointer[error] // why current is nil or no longer moves

	mu      sync.Mutex // guards granted
	granted grant

	holder // belongs to its goroutine
}

// Sequencer creates a sequencer, or finds that it is there, attaches to it, and waits until the outcome of
// that is known: this member has a node ID and may use it, or Ready says why not yet. From then on it keeps
// its place by itself, through lost sessions and the others' comings and goings. Called again with the same
// definition it returns the same Sequencer.
//
// An *ExistsError is returned when there is one with another definition, and other errors when the definition is
// not valid, ctx has ended, or the member has.
func (m *Member) Sequencer(ctx context.Context, name string, d cluster.Definition) (*Sequencer, error) {
	if err := cluster.CheckName(name); err != nil {
		return nil, fmt.Errorf("member: %w", err)
	}
	if err := m.options.ValidateFor(d); err != nil {
		return nil, err
	}
	if err := m.create(ctx, name, d); err != nil {
		return nil, err
	}
	s, err := m.attach(name, d)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.settled:
		return s, nil
	case <-m.done:
		return nil, m.ended()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", m.nags.because(ctx.Err()), s.notReady())
	}
}

// create makes sure that the sequencer is there with this definition.
func (m *Member) create(ctx context.Context, name string, d cluster.Definition) error {
	for {
		v, _, err := m.awaitJoined(ctx)
		if err != nil {
			return err
		}
		s, ok := v.Sequencer(name)
		switch {
		case ok && s.Definition().Equal(d):
			return nil
		case ok:
			return &ExistsError{Name: name, InForce: s.Definition(), Wanted: d}
		}
		o, err := m.do(ctx, func(string) cluster.Command {
			return cluster.CreateSequencer{Sequencer: name, Definition: d}
		})
		if err != nil {
			return err
		}
		if s, ok := o.value.Sequencer(name); ok && !s.Definition().Equal(d) {
			return &ExistsError{Name: name, InForce: s.Definition(), Wanted: d}
		} else if ok {
			return nil
		}
	}
}

// attach has the player see to it that the member is attached.
func (m *Member) attach(name string, d cluster.Definition) (*Sequencer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leaving {
		return nil, errHasLeft
	}
	if s := m.sequencers[name]; s != nil {
		if s.definition.Equal(d) {
			return s, nil
		}
		s.end() // it was destroyed, and the name created anew
	}
	ctx, end := context.WithCancel(context.Background())
	s := &Sequencer{
		m: m, name: name, definition: d, layout: d.IDLayout(),
		fences: fence.Config{
			Store: m.store, Prefix: "sequencers/" + name + "/workers/",
			Owner: m.options.Owner, Window: m.options.Window,
		},
		end: end, done: make(chan struct{}), news: make(chan struct{}, 1), settled: make(chan struct{}),
	}
	s.say(errAttaching)
	m.sequencers[name] = s
	go s.run(ctx)
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return s, nil
}

// Next returns the next ID. It waits for the clock, by milliseconds, until ctx ends, but not for the
// store: ErrNotReady is returned when an ID can't be given.
func (s *Sequencer) Next(ctx context.Context) (firn.ID, error) {
	var id firn.ID
	err := s.with(func(g *firn.Generator) (err error) {
		id, err = g.Next(ctx)
		return err
	})
	return id, err
}

// Fill fills ids with the next IDs, in ascending order. It waits and fails as Next does; after
// an error ids is zeroed.
func (s *Sequencer) Fill(ctx context.Context, ids []firn.ID) error {
	err := s.with(func(g *firn.Generator) error { return g.Fill(ctx, ids) })
	if err != nil {
		clear(ids)
	}
	return err
}

// with calls f with the current generator, and again with the next one if that was stopped
// because another took its place.
func (s *Sequencer) with(f func(*firn.Generator) error) error {
	for {
		h := s.current.Load()
		if h == nil {
			return s.notReady()
		}
		err := f(h.generator)
		switch {
		case errors.Is(err, firn.ErrStopped):
			s.switching.RLock() // whoever stopped it puts another in its place
			s.switching.RUnlock()
		case errors.Is(err, firn.ErrBound):
			if s.current.Load() == h {
				return s.notReady()
			}
		default:
			return err
		}
	}
}

func (s *Sequencer) notReady() error { return fmt.Errorf("%w: %w", ErrNotReady, *s.why.Load()) }

// Ready returns nil when Next can be expected to give an ID, and else an ErrNotReady that says why not.
func (s *Sequencer) Ready() error {
	h := s.current.Load()
	if h == nil || s.m.now().Add(s.layout.Tick).After(h.fence.Horizon()) {
		return s.notReady()
	}
	return nil
}

// Name returns the sequencer's name.
func (s *Sequencer) Name() string { return s.name }

// Definition returns the definition in force.
func (s *Sequencer) Definition() cluster.Definition { return s.definition }

// Layout returns the layout of the IDs.
func (s *Sequencer) Layout() firn.Layout { return s.layout }

// NodeID returns the node ID that is in use, and whether there is one.
func (s *Sequencer) NodeID() (int64, bool) {
	h := s.current.Load()
	if h == nil {
		return 0, false
	}
	return h.fence.Node(), true
}

// now is ID time.
func (m *Member) now() time.Time { return time.Unix(0, m.options.Clock.Now()) }

func (s *Sequencer) say(why error) { s.why.Store(&why) }
