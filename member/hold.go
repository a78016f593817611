package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/fence"
)

// leaveWithin bounds what is done to give a node ID back.
const leaveWithin = 5 * time.Second

// hold is a node ID with its generator.
type hold struct {
	fence     *fence.Fence
	generator *firn.Generator // nil until it is current
	lost      bool            // belongs to the goroutine of Run
}

// claim gets a node ID, under a session that is alive. If the wall clock has stepped ahead it does so by the
// wall: should the other owners agree with that, or there be none, it is believed.
func (m *Member) claim(ctx context.Context) (*hold, error) {
	if m.session == nil || ended(m.session) {
		s, err := m.config.Store.OpenSession(ctx, m.config.TTL)
		if err != nil {
			return nil, err
		}
		m.session = s
	}
	if err := m.agreeOnLayout(ctx); err != nil {
		return nil, err
	}
	config, byTheWall := m.fences, true
	config.Clock = func() time.Time {
		if byTheWall {
			return m.now().Add(m.config.Clock.Ahead())
		}
		return m.now()
	}
	if m.latest != nil {
		config.Before = m.latest.fence
	}
	nodes := m.config.nodes()
	f, err := fence.Claim(ctx, config, m.session, nodes.First, nodes.Last)
	byTheWall = false
	if noNode := (*fence.NoNodeError)(nil); errors.As(err, &noNode) && m.latest != nil && !m.latest.lost {
		// The clock has stepped, nobody contradicts it, and there is no other node ID than the one
		// that is held: it is given back, to be claimed again.
		m.switching.Lock()
		m.current.Store(nil)
		if m.latest.generator != nil {
			m.stopped(m.latest)
		}
		m.switching.Unlock()
		m.release(ctx, m.latest)
		m.latest.lost = true
	}
	if err != nil {
		return nil, err
	}
	m.config.Clock.Follow()
	m.log.Info("claimed a node ID", "node", f.Node(), "horizon", f.Horizon())
	return &hold{fence: f}, nil
}

// use puts the generator of h in the place of the current one once the clock is past its floor; or, when it is
// there already, moves its bound to what the store has confirmed.
func (m *Member) use(ctx context.Context, h *hold) error {
	if h.generator != nil {
		h.generator.SetBound(h.fence.Horizon())
		return nil
	}
	if floor := h.fence.Floor(); m.now().Before(floor) {
		m.say(fmt.Sprintf("node ID %d was used until %v; waiting for the clock to get there", h.fence.Node(), floor.UTC()))
		m.log.Info("waiting for the clock to pass what the node ID was used for", "node", h.fence.Node(), "until", floor)
		return nil
	}
	old, err := m.exchange(h)
	if err != nil {
		m.say(err.Error())
		return err
	}
	m.say("the horizon is reached, and the store has not confirmed a later one")
	if old != nil {
		m.release(ctx, old)
	}
	return nil
}

// exchange stops the current generator and puts that of h in its place, which goes on after the last tick
// that any before it used.
func (m *Member) exchange(h *hold) (old *hold, err error) {
	m.switching.Lock()
	defer m.switching.Unlock()
	if old = m.current.Load(); old != nil {
		m.stopped(old) // who comes now waits at m.switching, and finds the new one
	}
	floor := h.fence.Floor()
	if m.used.After(floor) {
		floor = m.used
	}
	options := []firn.Option{
		firn.WithClock(m.config.Clock), firn.FailAtBound(),
		firn.WithFloor(floor), firn.WithBound(h.fence.Horizon()),
	}
	if m.config.RandomStart {
		options = append(options, firn.WithRandomStart())
	}
	if h.generator, err = firn.NewGenerator(m.config.Layout, h.fence.Node(), options...); err != nil {
		m.current.Store(nil)
		return old, err
	}
	m.current.Store(h)
	return old, nil
}

// stopped stops the generator of h and returns the end of its use. m.switching is held.
func (m *Member) stopped(h *hold) time.Time {
	used := h.generator.Stop()
	if used.After(m.used) {
		m.used = used
	}
	return used
}

// leave gives back what the member has; ctx has ended, or the member gives up.
func (m *Member) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	m.say("it has left")
	m.switching.Lock()
	current := m.current.Swap(nil)
	if current != nil {
		m.stopped(current)
	}
	m.switching.Unlock()
	for _, h := range []*hold{current, m.latest} {
		if h != nil {
			m.release(ctx, h)
		}
	}
	if m.session != nil {
		if err := m.session.Close(ctx); err != nil {
			m.log.Warn("the session was not closed; it ends by itself", "ttl", m.session.TTL(), "err", err)
		}
	}
}

// release gives the node ID of h back, whose generator, if it has one, is stopped.
func (m *Member) release(ctx context.Context, h *hold) {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	err := h.fence.Release(ctx, func() time.Time {
		if h.generator == nil {
			return time.Time{}
		}
		return h.generator.Stop()
	})
	if err != nil {
		m.log.Warn("the node ID was not given back; it is free once its session has ended", "node", h.fence.Node(), "err", err)
	}
}
