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
)

// Run joins and keeps the member alive until ctx ends: then it stops making IDs, gives the node ID
// back, which takes a few seconds at the most, and returns nil. It is to be called once.
//
// It rides out everything that may pass: a store that is gone, a node ID that is lost, a clock that the
// others contradict. It returns an error when going on is pointless: a *LayoutError or firn.ErrLifetime; at the
// start also store.ErrRefused, and, unless Wait is set, when there is no node ID, a *fence.NoNodeError or
// *fence.ClockBehindError.
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
