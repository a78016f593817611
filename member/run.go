package member

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/fence"
	"github.com/firn-id/firn/store"
)

const (
	firstPause   = 100 * time.Millisecond // after a failure, and doubled from there
	longestPause = 5 * time.Second
	nagEvery     = time.Minute

	// leaveWithin bounds what is done for the store's sake after ctx has ended.
	leaveWithin = 5 * time.Second
)

// A LayoutError is returned when the members of a sequencer have agreed on another layout: their
// IDs and those of this member could be the same.
type LayoutError struct {
	Sequencer, Have, Want string
}

func (e *LayoutError) Error() string {
	return fmt.Sprintf("member: sequencer %q has the layout %s; this member wants %s, which would make duplicates", e.Sequencer, e.Have, e.Want)
}

// Run joins and keeps the member alive until ctx ends: then it stops making IDs, gives the node ID
// back, which takes a few seconds at the most, and returns nil. It is to be called once.
//
// It rides out everything that may pass: a store that is gone, a node ID that is lost, a clock that the
// others contradict. It returns an error when going on is pointless: a *LayoutError, firn.ErrLifetime, a
// store that refuses; and, unless Wait is set, when there is no node ID at the start: a *fence.NoNodeError
// or *fence.ClockBehindError.
func (m *Member) Run(ctx context.Context) error {
	defer m.leave(ctx)
	pause := firstPause
	for first := true; ctx.Err() == nil; {
		wait, err := m.tend(ctx)
		switch {
		case err == nil:
			pause, first = firstPause, false
		case m.final(err, first && m.latest == nil):
			return err
		default:
			m.nag(ctx, err)
			wait = pause/2 + rand.N(pause/2)
			pause = min(2*pause, longestPause, m.config.Window/6)
		}
		m.sleep(ctx, wait)
	}
	return nil
}

// tend does what is to be done now, and says in how long to look again at the latest. What it does follows
// from how things stand, not from what happened, so that nothing has to be remembered.
func (m *Member) tend(ctx context.Context) (time.Duration, error) {
	stepped := m.config.Clock.Ahead()
	if h := m.latest; h != nil && !h.lost && stepped == 0 {
		switch err := h.fence.Extend(ctx); {
		case err == nil:
			return m.untilNext(h), m.use(ctx, h)
		case !errors.Is(err, fence.ErrLost):
			return 0, err
		}
		h.lost = true
		m.log.Warn("lost the node ID, claiming another", "node", h.fence.Node(), "usable_until", h.fence.Horizon())
		m.say("its node ID was lost, and there is no other yet")
	}
	h, err := m.claim(ctx)
	if err != nil {
		return 0, err
	}
	m.latest = h
	return m.untilNext(h), m.use(ctx, h)
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
		if err := m.agreeOnLayout(ctx); err != nil {
			return nil, err
		}
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
	if old = m.current.Swap(nil); old != nil {
		m.stopped(old)
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

// agreeOnLayout makes sure that all members of the sequencer have one layout: the first writes it down.
func (m *Member) agreeOnLayout(ctx context.Context) error {
	key, want := "sequencers/"+m.config.Sequencer+"/layout", m.config.Layout.String()
	have, err := m.config.Store.Get(ctx, key)
	if err != nil {
		return err
	}
	if have.Version == 0 {
		_, err := m.config.Store.Commit(ctx, store.Txn{
			If:   []store.Condition{{Key: key}},
			Then: []store.Op{store.Put(key, []byte(want))},
		})
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		if have, err = m.config.Store.Get(ctx, key); err != nil {
			return err
		}
	}
	if string(have.Value) != want {
		return &LayoutError{Sequencer: m.config.Sequencer, Have: string(have.Value), Want: want}
	}
	return nil
}

// final tells whether Run is to give up after an error.
func (m *Member) final(err error, atStart bool) bool {
	var layout *LayoutError
	var noNode *fence.NoNodeError
	var behind *fence.ClockBehindError
	switch {
	case errors.As(err, &layout), errors.Is(err, firn.ErrLifetime):
		return true
	case errors.As(err, &noNode), errors.As(err, &behind):
		return atStart && !m.config.Wait
	default:
		return atStart && errors.Is(err, store.ErrRefused)
	}
}

// untilNext is how long the member may sleep.
func (m *Member) untilNext(h *hold) time.Duration {
	third := m.config.Window / 3
	if h.generator == nil {
		return min(third, max(h.fence.Floor().Sub(m.now()), time.Millisecond))
	}
	return third
}

// sleep ends early when the session does, or ctx.
func (m *Member) sleep(ctx context.Context, d time.Duration) {
	var done <-chan struct{}
	if m.session != nil && !ended(m.session) {
		done = m.session.Done()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-done:
	case <-timer.C:
	}
}

// nag logs an error, but the same one only once a minute.
func (m *Member) nag(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	kind := fmt.Sprintf("%T", err)
	for _, e := range []error{store.ErrAmbiguous, store.ErrUnavailable, store.ErrRefused, store.ErrSessionEnded} {
		if errors.Is(err, e) {
			kind = e.Error()
		}
	}
	if last, ok := m.nags[kind]; ok && time.Since(last) < nagEvery {
		return
	}
	m.nags[kind] = time.Now()
	m.log.Warn("can't hold a node ID at present, trying again", "err", err)
	if m.current.Load() == nil {
		m.say(err.Error())
	}
}

func ended(s store.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}
