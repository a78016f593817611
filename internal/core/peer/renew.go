package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// pulseMost is the longest time between two pulses: by older ones clocks can't be compared within clocks.Skew.
const pulseMost = 10 * time.Second

// every is how often the member writes its pulse: every third of its window, and often enough to compare clocks.
func (o Options) every() time.Duration { return min(o.Window/3, pulseMost) }

// renewFences renews the fences of all sequencers of one window together, every third of it, and those of the member's
// own window with the pulse, as often as that is written. So more sequencers cost the store bytes, not round trips. It
// ends with ctx, or when no sequencer has the window.
func (m *Member) renewFences(ctx context.Context, window time.Duration) {
	var soon <-chan struct{}
	every := window / 3
	if window == m.options.Window {
		soon, every = m.keeper.soon, m.options.every()
	}
	for failures := 0; !m.renewed(ctx, window); {
		wait := every
		if err := m.extend(ctx, window, 0); err == nil {
			failures = 0
		} else {
			m.troubles.note(ctx, "can't extend the node IDs at present, trying again", err)
			wait = min(backoff.After(failures), every/2)
			failures++
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-soon:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// renew has the fences of a window renewed from now on.
func (p *player) renew(ctx context.Context, window time.Duration) {
	if p.keeper.begins(window) {
		p.running.Go(func() { p.renewFences(ctx, window) })
	}
}

// renewed reports whether the fences of a window need not be renewed any more.
func (m *Member) renewed(ctx context.Context, window time.Duration) bool {
	return m.keeper.ends(window, func() bool {
		return ctx.Err() == nil && (window == m.options.Window ||
			slices.ContainsFunc(m.registry.all(), func(s *Sequencer) bool { return s.fences.Window == window }))
	})
}

// extend renews the fences of all sequencers of a window once, and writes the pulse if that is the member's own. Its
// error may pass.
//
// If the wall has stepped ahead by so much and ID time is to follow, it renews those of every window to that far
// beyond, and fails unless all are. Zero: the wall has not stepped.
//
// While most of the others are against the clock, it renews none: what is reserved is used up.
func (m *Member) extend(ctx context.Context, window, ahead time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, window/3)
	defer cancel()
	own := window == m.options.Window
	if own {
		if err := m.keeper.writing.lock(ctx); err != nil {
			return err
		}
		defer m.keeper.writing.unlock()
	}
	losses := m.losses.Load()
	renewals, fences := m.renewals(window, ahead)
	_, l, _ := m.look()
	var pulse store.Txn
	var stamp string
	if own && l != nil && !l.over() {
		if err := m.keepName(ctx, l); err != nil {
			m.troubles.note(ctx, "can't see whether another node has this one's name", err)
		}
		pulse, stamp = m.pulse(l, fences)
	}
	sent := time.Now()
	version, errs := fence.Round{Fences: fences, Ahead: ahead, More: pulse}.Commit(ctx)
	var failed error
	for i, err := range errs {
		if err := m.answered(renewals[i], l, losses, ahead, err); err != nil {
			failed = err
		}
	}
	switch {
	case failed != nil || pulse.Then == nil:
	case version != 0:
		l.wrote(version, stamp)
		m.keeper.wrote(sent)
	default:
		err := m.writePulse(ctx, l)
		m.breaks(losses, err)
		// else a new session is on its way
		if !errors.Is(err, store.ErrSessionEnded) && !errors.Is(err, store.ErrConflict) {
			failed = err
		}
	}
	return failed
}

// A renewal is of the fence of a tenure.
type renewal struct {
	tenure
	sequencer *Sequencer
}

// renewals returns what extend renews, and the fences of that.
func (m *Member) renewals(window, ahead time.Duration) (all []renewal, fences []*fence.Fence) {
	out := m.judged().Out()
	for _, s := range m.Sequencers() {
		if s.fences.Window != window && ahead == 0 {
			continue
		}
		st := s.status.Load()
		t, extended := st.inUse(), st.state.Extended()
		if latest := st.latest(); latest.generator == nil { // its floor has not come
			t, extended = latest, true
		}
		if t.fence != nil && extended && !out && !m.stale(t) {
			all, fences = append(all, renewal{t, s}), append(fences, t.fence)
		}
	}
	return all, fences
}

// answered does what follows from the store's answer to a renewal. It returns an error that may pass.
func (m *Member) answered(r renewal, l *incarnation, losses int64, ahead time.Duration, err error) error {
	m.keeper.extensions.count(err)
	switch {
	case errors.Is(err, fence.ErrCopied):
		m.startAnew(l, err)
	case errors.Is(err, fence.ErrLost):
		r.sequencer.poke()
	case err != nil:
		m.breaks(losses, err)
		return err
	case ahead != 0 && !r.fence.Horizon().After(m.now().Add(ahead)):
		return fmt.Errorf("node ID %d can't be used at %v yet", r.fence.Node(), m.Wall())
	default:
		if g := r.sequencer.generatorOf(r.fence); g != nil { // which may be new
			g.SetBound(r.fence.Bound())
		}
	}
	return nil
}
