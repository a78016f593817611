package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/fence"
	"github.com/firn-id/firn/store"
)

// renewFences renews the fences of all sequencers together, and the pulse with them, every third of the window,
// until ctx ends. So more sequencers cost the store bytes, not round trips.
func (m *Member) renewFences(ctx context.Context) {
	third := m.options.Window / 3
	for failures := 0; ctx.Err() == nil; {
		wait := third
		if err := m.extend(ctx, 0); err == nil {
			failures = 0
		} else {
			m.troubles.note(ctx, "can't extend the node IDs at present, trying again", err)
			wait = min(backoff.After(failures), third/2)
			failures++
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-m.renew:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// renewSoon has the fences renewed and the pulse written at once.
func (m *Member) renewSoon() {
	select {
	case m.renew <- struct{}{}:
	default:
	}
}

// extend renews the fences of all sequencers once, and writes the pulse. Its error may pass.
//
// If the wall has stepped ahead by so much and ID time is to follow, it renews them to a window beyond that, those
// too that are not in use yet, and fails unless all are. Zero: the wall has not stepped.
//
// While most of the others are against the clock, it renews none: what is reserved is used up.
func (m *Member) extend(ctx context.Context, ahead time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, m.options.Window/3)
	defer cancel()
	if err := m.renewing.lock(ctx); err != nil {
		return err
	}
	defer m.renewing.unlock()
	var sequencers []*Sequencer
	var tenures []tenure
	var fences []*fence.Fence
	out, losses := m.judged().Out(), m.losses.Load()
	for _, s := range m.Sequencers() {
		st := s.status.Load()
		t := st.inUse()
		extended := st.state.Extended()
		if latest := st.latest(); ahead != 0 && latest.generator == nil {
			t, extended = latest, true
		}
		if t.fence != nil && extended && !out && !m.stale(t) {
			sequencers, tenures, fences = append(sequencers, s), append(tenures, t), append(fences, t.fence)
		}
	}
	_, l, _ := m.look()
	var pulse store.Txn
	if l != nil && !l.over() {
		pulse = m.pulse(l)
	}
	sent := time.Now()
	version, errs := fence.ExtendAlong(ctx, fences, ahead, pulse)
	var failed error
	for i, err := range errs {
		m.extensions.count(err)
		switch t := tenures[i]; {
		case errors.Is(err, fence.ErrLost):
			sequencers[i].poke()
		case err != nil:
			m.breaks(losses, err)
			failed = err
		case ahead != 0 && !t.fence.Horizon().After(m.now().Add(ahead)):
			failed = fmt.Errorf("node ID %d can't be used at %v yet", t.fence.Node(), m.wall())
		case t.generator != nil:
			t.generator.SetBound(t.fence.Horizon())
		}
	}
	switch {
	case failed != nil || pulse.Then == nil:
	case version != 0:
		l.pulse = version
		m.roundTrip.Store(int64(time.Since(sent)))
	default:
		err := m.writePulse(ctx, l)
		m.breaks(losses, err)
		if !errors.Is(err, store.ErrSessionEnded) && !errors.Is(err, store.ErrConflict) { // else a new session is on its way
			failed = err
		}
	}
	return failed
}
