package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// DefaultSequencer is the sequencer of calls that name no sequencer.
const DefaultSequencer = "default"

// Sequencer makes the IDs of one ID space under the node ID that this member has in it. Member.EnsureSequencer and
// Member.Attach return one. It stays attached until Detach: after the loss of its session or of its node ID, it gets
// another by itself. Its methods are safe for concurrent use.
type Sequencer struct {
	m          *Member
	name       string
	definition cluster.Definition
	layout     firn.Layout
	fences     fence.Config
	waits      firn.Waits // of all generators

	mu      sync.Mutex // held while status is replaced
	status  atomic.Pointer[status]
	asker   atomic.Pointer[string] // who asked to attach or detach, until the log is told; nil: it has been
	noticed int                    // how many warnings about the end of the layout's time were logged; guarded by mu
	wake    chan struct{}          // has the goroutine of run look again

	// of the goroutine of run, which does what package attachment decides
	looked  grant           // the grant at the last look
	guard   store.Condition // the condition of claims; without a key while unknown
	from    time.Time       // the earliest instant that IDs may have
	guarded int64           // the member's losses when both were read

	ordering lock        // guards what follows
	exceed   fence.Owner // the latest whose IDs may exceed those to come; the zero value: none is known
	ordered  bool        // no ID is known that exceeds those to come, or the log has a warning
}

func (m *Member) newSequencer(name string, v cluster.Sequencer) *Sequencer {
	s := &Sequencer{
		m: m, name: name, definition: v.Definition(), layout: v.Definition().IDLayout(),
		fences: fence.Config{
			Store: m.store, Prefix: fencePrefix(name),
			Owner: m.Name(), Clock: m.now,
			Window: m.options.window(v.Definition()), MaxWait: 2 * m.options.Window,
		},
		ordering: make(lock, 1), wake: make(chan struct{}, 1),
	}
	if m.journal != nil {
		s.fences.Journal = s.note
	}
	s.status.Store(&status{created: v.Created(), wanted: true, why: errAttaching, changed: make(chan struct{})})
	return s
}

// Next returns the next ID, scattered if the definition says so. It may wait milliseconds for the clock, until ctx
// ends. It never waits for the store: ErrNotReady is returned when the member can make no ID now.
func (s *Sequencer) Next(ctx context.Context) (id firn.ID, err error) {
	if g := s.status.Load().quick; g != nil {
		if id, err := g.TryNext(); err == nil {
			return s.scatter(id), nil
		}
	}
	err = s.take(func(g *firn.Generator) (err error) {
		id, err = g.Next(ctx)
		return err
	})
	if s.m.journal != nil && err == nil {
		s.noteGiven(id)
	}
	return s.scatter(id), err
}

// scatter returns the ID that a caller gets for one of a generator.
func (s *Sequencer) scatter(id firn.ID) firn.ID {
	if s.definition.Scattered {
		return firn.Scatter(id)
	}
	return id
}

// gather undoes scatter.
func (s *Sequencer) gather(id firn.ID) firn.ID {
	if s.definition.Scattered {
		return firn.Gather(id)
	}
	return id
}

// Fill fills ids with the next IDs, in ascending order or, if they are scattered, in the order in which
// they were made. It waits and fails as Next does; on an error it zeroes ids.
func (s *Sequencer) Fill(ctx context.Context, ids []firn.ID) error {
	return s.FillAfter(ctx, 0, 0, ids)
}

// MaxAhead is how far ahead of the clock IDs may move ID time: as far as clocks may differ.
const MaxAhead = clocks.Skew

// FillAfter is Fill with IDs that all exceed another one, whichever member made that: ID time moves ahead of the clock
// to there, by at most most and a third of the window, and never to the horizon. A *firn.AheadError is returned when it
// would have to move further. Of scattered IDs those exceed another that exceed it once firn.Gather is applied to both.
// Zero: any IDs.
func (s *Sequencer) FillAfter(ctx context.Context, after firn.ID, most time.Duration, ids []firn.ID) error {
	after = s.gather(after)
	most = min(most, s.m.options.window(s.definition)/3) // or the horizon would stop others until it is extended
	err := s.take(func(g *firn.Generator) error {
		if after != 0 {
			if err := g.Advance(after, most); err != nil {
				return err
			}
		}
		return g.Fill(ctx, ids)
	})
	if err != nil {
		clear(ids)
		return err
	}
	if s.m.journal != nil {
		s.noteGiven(ids...)
	}
	if s.definition.Scattered {
		for i := range ids {
			ids[i] = firn.Scatter(ids[i])
		}
	}
	return nil
}

// take has the generator make IDs.
func (s *Sequencer) take(from func(*firn.Generator) error) error {
	for {
		st := s.status.Load()
		if st.generator != nil {
			switch err := from(st.generator); {
			case errors.Is(err, firn.ErrStopped):
				// The update that has stopped it replaces the status, if none has before.
				<-st.changed
				continue
			case errors.Is(err, firn.ErrBound), isTooFar(err) && s.Ready() != nil:
			default:
				return err
			}
		}
		if s.status.Load().generator == st.generator {
			return s.notReady()
		}
	}
}

func isTooFar(err error) bool {
	_, ok := errors.AsType[*firn.AheadError](err)
	return ok
}

// Ahead returns how far IDs are ahead of the clock, see firn.Generator.Ahead.
func (s *Sequencer) Ahead() time.Duration {
	if g := s.status.Load().generator; g != nil {
		return g.Ahead()
	}
	return 0
}

func (s *Sequencer) notReady() error {
	why := s.status.Load().why
	if err := s.m.judged().err(); err != nil && why == errAtHorizon {
		why = err
	}
	return fmt.Errorf("%w: %w", ErrNotReady, why)
}

// Ready returns nil when Next can be expected to return an ID. Otherwise it returns an ErrNotReady that says why not;
// it wraps firn.ErrLifetime when the clock shows a time for which the layout has no IDs.
func (s *Sequencer) Ready() error {
	st, now := s.status.Load(), s.m.now()
	if st.generator == nil {
		return s.notReady()
	}
	if err := s.lifetime(now); err != nil {
		return err
	}
	if t := st.inUse(); t.fence == nil || now.Add(t.generator.Ahead()+s.layout.Tick).After(t.fence.Horizon()) {
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
		if st.wanted || st.destroyed() {
			return false
		}
		st.wanted = true
		s.askedBy(ctx)
		st.granted, st.settled, st.why = grant{}, false, errAttaching
		return true
	})
	s.m.poke()
	for {
		st := s.status.Load()
		if st.settled {
			s.asker.Store(nil) // the log need not be told where it was so already
			return s, nil
		}
		select {
		case <-st.changed:
		case <-s.m.done:
			return nil, s.m.ended()
		case <-ctx.Done():
			why := s.notReady()
			return nil, reason.With(reason.Of(why), fmt.Errorf("%w: %w", s.m.troubles.because(ctx.Err()), why))
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
		if st.wanted = false; was {
			s.askedBy(ctx)
		}
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
			return fmt.Errorf("detaching from %q is not done yet, and goes on: %w", s.name,
				s.m.troubles.because(ctx.Err()))
		}
	}
}

// askedBy notes who asks to attach or detach.
func (s *Sequencer) askedBy(ctx context.Context) {
	who := asker(ctx)
	s.asker.Store(&who)
}

// Name returns the sequencer's name.
func (s *Sequencer) Name() string { return s.name }

// Definition returns the definition in force.
func (s *Sequencer) Definition() cluster.Definition { return s.definition }

// Layout returns the layout of the IDs, before they are scattered.
func (s *Sequencer) Layout() firn.Layout { return s.layout }

// Parts takes an ID of the sequencer apart. An error is returned when its layout has no such ID.
func (s *Sequencer) Parts(id firn.ID) (firn.Parts, error) { return s.layout.Decompose(s.gather(id)) }

// fencePrefix returns the prefix of the keys of a sequencer's fences.
func fencePrefix(name string) string { return "sequencers/" + name + "/workers/" }
