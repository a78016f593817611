package member

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/internal/fence"
	"github.com/firn-id/firn/internal/retry"
	"github.com/firn-id/firn/store"
)

// renewFences renews the fences of all sequencers together, and the pulse with them, every third of the window,
// until ctx ends. So more sequencers cost the store bytes, not round trips.
func (m *Member) renewFences(ctx context.Context) {
	third := m.options.Window / 3
	for failures := 0; ; {
		wait := third
		if err := m.extend(ctx); err == nil {
			failures = 0
		} else {
			m.troubles.note(ctx, "can't extend the node IDs at present, trying again", err)
			wait = min(backoff.After(failures), third/2)
			failures++
		}
		if retry.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// extend renews the fences of all sequencers once. Its error may pass.
func (m *Member) extend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.options.Window/3)
	defer cancel()
	var sequencers []*Sequencer
	var tenures []tenure
	var fences []*fence.Fence
	ahead, losses := m.options.Clock.Ahead() != 0, m.losses.Load()
	for _, s := range m.Sequencers() {
		st := s.status.Load()
		t := st.inUse()
		switch {
		case t.fence == nil, !st.state.Extended(), m.stale(t):
		case ahead: // the member must believe the step first
			s.poke()
		default:
			sequencers, tenures, fences = append(sequencers, s), append(tenures, t), append(fences, t.fence)
		}
	}
	_, l, _ := m.look()
	var pulse store.Txn
	if l != nil && !l.over() {
		pulse = m.pulse(l)
	}
	sent := time.Now()
	version, errs := fence.ExtendAlong(ctx, fences, pulse)
	var failed error
	for i, err := range errs {
		m.extensions.count(err)
		switch t := tenures[i]; {
		case err == nil:
			t.generator.SetBound(t.fence.Horizon())
		case errors.Is(err, fence.ErrLost):
			sequencers[i].poke()
		default:
			m.breaks(losses, err)
			failed = err
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

// askWithin bounds how long the member asks the store for others' clocks.
const askWithin = 5 * time.Second

// believe follows the clock to where it has stepped ahead, unless the owners of other node IDs contradict it in
// any sequencer: then nothing changes, and the error says by how much. After a believed step the member must
// claim every node ID again, at the new time. first, which noticed the step, knows that; the other sequencers are
// told.
func (m *Member) believe(ctx context.Context, first *Sequencer) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	m.stepping.Lock()
	defer m.stepping.Unlock()
	clock := m.options.Clock
	ahead := clock.Ahead()
	if ahead == 0 {
		return nil // another sequencer has already followed the step
	}
	if time.Since(m.contradicted) < backoff.First {
		return m.contradiction
	}
	for _, s := range m.Sequencers() {
		config := s.fences
		config.Before = s.before()
		if err := fence.CheckClock(ctx, config, m.now().Add(ahead)); err != nil {
			m.contradicted, m.contradiction = time.Now(), err
			return err
		}
	}
	clock.Follow()
	m.era.Add(1)
	for _, s := range m.Sequencers() {
		if s != first {
			s.poke()
		}
	}
	return nil
}
