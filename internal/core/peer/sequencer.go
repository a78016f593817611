package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/spread"
)

// DefaultSequencer is the sequencer of calls that name no sequencer.
const DefaultSequencer = "default"

// Sequencer makes the IDs of one ID space under the node IDs that this member has in it: one, or as many as
// Options.NodeIDs says. Member.EnsureSequencer and Member.Attach return one. It stays attached until Detach: after the
// loss of its session or of a node ID, it gets another by itself. Its methods are safe for concurrent use.
type Sequencer struct {
	m          *Member
	name       string
	definition cluster.Definition
	layout     firn.Layout
	fences     fence.Config
	waits      firn.Waits // of all generators
	lanes      []*lane    // one for each node ID that it asks for

	mu     sync.Mutex // held while status is replaced
	status atomic.Pointer[status]
	// by how many lanes callers are beyond those of their processors, which had no IDs left for a tick
	ahead   atomic.Int64
	asker   atomic.Pointer[string] // who asked to attach or detach, until the log is told; nil: it has been
	noticed int                    // how many warnings about the end of the layout's time were logged; guarded by mu

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
		ordering: make(lock, 1),
	}
	if m.journal != nil {
		s.fences.Journal = s.note
	}
	st := &status{created: v.Created(), wanted: true, changed: make(chan struct{})}
	for i := range m.options.NodeIDs {
		s.lanes = append(s.lanes, &lane{Sequencer: s, index: i, wake: make(chan struct{}, 1)})
		st.lanes = append(st.lanes, laneStatus{why: errAttaching})
	}
	s.status.Store(st)
	return s
}

// run has the lanes do their work, until ctx ends or the sequencer is destroyed.
func (s *Sequencer) run(ctx context.Context) {
	var lanes sync.WaitGroup
	for _, l := range s.lanes {
		lanes.Go(func() { l.run(ctx) })
	}
	lanes.Wait()
}

// poke has the lanes look again.
func (s *Sequencer) poke() {
	for _, l := range s.lanes {
		l.poke()
	}
}

// Next returns the next ID, scattered if the definition says so. It may wait milliseconds for the clock, until ctx
// ends. It never waits for the store: ErrNotReady is returned when the member can make no ID now.
func (s *Sequencer) Next(ctx context.Context) (id firn.ID, err error) {
	if generators := s.status.Load().quick; len(generators) > 0 {
		if id, err := generators[s.pick(len(generators))].TryNext(); err == nil {
			return s.scatter(id), nil
		}
	}
	err = s.take(0, func(g *firn.Generator, wait bool) (err error) {
		if wait {
			id, err = g.Next(ctx)
		} else {
			id, err = g.TryNext()
		}
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

// Fill fills ids with the next IDs of one node ID, in ascending order or, if they are scattered, in the order in which
// they were made. It waits and fails as Next does; on an error it zeroes ids.
func (s *Sequencer) Fill(ctx context.Context, ids []firn.ID) error {
	return s.FillAfter(ctx, 0, 0, ids)
}

// MaxAhead is how far ahead of the clock IDs may move ID time: as far as clocks may differ.
const MaxAhead = clocks.Skew

// FillAfter is Fill with IDs that all exceed another one, whichever member made that: ID time moves ahead of the clock
// to there, by at most most and a third of the window, and never to the horizon. A *firn.AheadError is returned when it
// would have to move further.
// FillAfter takes the IDs under the node ID of the other while that is in use. Of scattered IDs those exceed another
// that exceed it once firn.Gather is applied to both. Zero: any IDs.
func (s *Sequencer) FillAfter(ctx context.Context, after firn.ID, most time.Duration, ids []firn.ID) error {
	after = s.gather(after)
	most = min(most, s.m.options.window(s.definition)/3) // or the horizon would stop others until it is extended
	err := s.take(after, func(g *firn.Generator, wait bool) error {
		if after != 0 {
			if err := g.Advance(after, most); err != nil {
				return err
			}
		}
		n := 0
		if !wait {
			var err error
			if n, err = g.TryFill(ids); err != nil {
				return err
			}
		}
		return g.Fill(ctx, ids[n:])
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

// take has a generator make IDs: that of the caller's lane if it has some now, or else another one's that has, or else
// that of the first lane that only has to wait for the clock. A caller that has taken an ID goes on with its lane.
func (s *Sequencer) take(after firn.ID, from func(g *firn.Generator, wait bool) error) error {
	for {
		st := s.status.Load()
		generators := st.generators
		own := s.own(generators, after)
		stopped, waits, far := false, (*firn.Generator)(nil), error(nil)
		for i := range generators {
			g := generators[(own+i)%len(generators)]
			switch err := from(g, after != 0); {
			case err == nil:
				if after == 0 && i > 0 { // so others need not ask in vain
					s.ahead.Store((s.ahead.Load() + int64(i)) % int64(len(generators)))
				}
				return nil
			case errors.Is(err, firn.ErrNotYet):
				waits = cmp.Or(waits, g)
			case errors.Is(err, firn.ErrStopped):
				stopped = true
			case isTooFar(err):
				far = err
			case !errors.Is(err, firn.ErrBound):
				return err
			}
		}
		if waits != nil {
			err := from(waits, true)
			if stopped = errors.Is(err, firn.ErrStopped); !stopped && !errors.Is(err, firn.ErrBound) {
				return err
			}
		}
		if stopped { // the update that has stopped it replaces the status, if no other one has before
			<-st.changed
			continue
		}
		if far != nil && s.Ready() == nil {
			return far
		}
		if slices.Equal(generators, s.status.Load().generators) {
			return s.notReady()
		}
	}
}

func isTooFar(err error) bool {
	_, ok := errors.AsType[*firn.AheadError](err)
	return ok
}

// Ahead returns how far IDs are ahead of the clock, see firn.Generator.Ahead: of several node IDs those that are the
// furthest.
func (s *Sequencer) Ahead() (most time.Duration) {
	for _, g := range s.status.Load().generators {
		most = max(most, g.Ahead())
	}
	return most
}

// own returns the index of the generator of which a caller takes IDs.
func (s *Sequencer) own(generators []*firn.Generator, after firn.ID) int {
	if after != 0 {
		if node, err := s.layout.NodeID(after); err == nil {
			if i := slices.IndexFunc(generators, func(g *firn.Generator) bool { return g.NodeID() == node }); i >= 0 {
				return i
			}
		}
	}
	return s.pick(len(generators))
}

// pick returns which of so many generators a caller should try first.
func (s *Sequencer) pick(n int) int {
	if n < 2 {
		return 0
	}
	i := spread.Pick(n) + int(s.ahead.Load())
	if i >= n {
		i %= n
	}
	return i
}

func (s *Sequencer) notReady() error {
	why := s.status.Load().lane().why
	if err := s.m.judged().err(); err != nil && why == errAtHorizon {
		why = err
	}
	return fmt.Errorf("%w: %w", ErrNotReady, why)
}

// Ready returns nil when Next can be expected to return an ID. Otherwise it returns an ErrNotReady that says why not;
// it wraps firn.ErrLifetime when the clock shows a time for which the layout has no IDs.
func (s *Sequencer) Ready() error {
	st, now := s.status.Load(), s.m.now()
	if len(st.generators) == 0 {
		return s.notReady()
	}
	if err := s.lifetime(now); err != nil {
		return err
	}
	for t := range st.inUse {
		if !now.Add(t.generator.Ahead() + s.layout.Tick).After(t.fence.Horizon()) {
			return nil
		}
	}
	return s.notReady()
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
		for i := range st.lanes {
			l := &st.lanes[i]
			l.granted, l.settled, l.why = grant{}, false, errAttaching
		}
		return true
	})
	s.m.poke()
	for {
		st := s.status.Load()
		if st.settled() {
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
		return s.tellLocked(st, func(int) (grant, error) { return grant{}, nil }) || was
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
		case st.empty() && (incarnation == nil || !q.Attached(incarnation.id)):
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

// NodeIDs returns the node IDs that are in use.
func (s *Sequencer) NodeIDs() []int64 {
	var nodes []int64
	for _, g := range s.status.Load().generators {
		nodes = append(nodes, g.NodeID())
	}
	return nodes
}

// fencePrefix returns the prefix of the keys of a sequencer's fences.
func fencePrefix(name string) string { return "sequencers/" + name + "/workers/" }
