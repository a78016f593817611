package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/fence"
)

// hold is a node ID with its generator.
type hold struct {
	fence     *fence.Fence
	life      *life           // under whose session it is
	generator *firn.Generator // nil until it is current
	lost      bool            // belongs to the sequencer's goroutine
}

// holder is what belongs to the goroutine that keeps a sequencer's node ID.
type holder struct {
	latest   *hold // the newest node ID; it becomes current once the clock is past its floor
	stepped  bool  // another node ID was asked for since the clock stepped ahead
	declines int   // in a row, because of floors ahead of the clock
}

// run keeps the node ID until ctx ends.
func (s *Sequencer) run(ctx context.Context) {
	defer close(s.done)
	defer s.release(ctx)
	for failures := 0; ctx.Err() == nil; {
		wait, err := s.tend(ctx)
		if err == nil {
			failures = 0
		} else {
			s.m.nags.nag(ctx, "can't hold the node ID at present, trying again", err)
			if s.current.Load() == nil {
				s.say(err)
			}
			wait = min(jitter(backoff(failures)), s.m.options.Window/6)
			failures++
		}
		s.settle(err)
		select {
		case <-ctx.Done():
		case <-s.news:
		case <-time.After(wait):
		}
	}
}

// close ends it, and waits until it has.
func (s *Sequencer) close() {
	s.end()
	<-s.done
}

// settle notes that the first attempt at a node ID has come to an end.
func (s *Sequencer) settle(err error) {
	select {
	case <-s.settled:
		return
	default:
	}
	var behind *fence.ClockBehindError
	var aheadOf *fence.ClockAheadError
	switch phase := s.grant().phase; {
	case phase == granted && s.latest != nil && !s.latest.lost, phase == inLine, phase == destroyed,
		errors.As(err, &behind) && s.declines >= enoughDeclines, errors.As(err, &aheadOf), errors.Is(err, firn.ErrLifetime):
		close(s.settled)
	}
}

// tend does what is to be done now, and says in how long to look again at the latest. What it does follows
// from how things stand, not from what happened, so that nothing has to be remembered.
func (s *Sequencer) tend(ctx context.Context) (time.Duration, error) {
	g, h := s.grant(), s.latest
	switch g.phase {
	case rejoining:
		return idle, nil // what is written down is used up meanwhile
	case inLine:
		if h != nil && h.life == g.life { // of a former life there is nothing to give back, but time to use up
			s.drop(ctx)
		}
		return idle, nil
	case destroyed:
		s.drop(ctx)
		return idle, nil
	}
	ahead := s.m.options.Clock.Ahead()
	if ahead == 0 {
		s.stepped = false
	} else if h != nil && !s.stepped {
		// A clock that has stepped ahead is to be believed under another node ID, if at all.
		same, err := s.decline(ctx, g)
		if err != nil {
			return 0, err
		}
		s.stepped = true
		if !same && s.grant() == g {
			return idle, nil // the news is on its way
		}
		return 0, nil
	}
	if h != nil && !h.lost && ahead == 0 && h.life == g.life && h.fence.Node() == g.node {
		switch err := h.fence.Extend(ctx); {
		case err == nil:
			return s.untilNext(h), s.use(ctx, h)
		case !errors.Is(err, fence.ErrLost):
			return 0, err
		}
		h.lost = true
		s.m.log.Warn("lost the node ID, claiming it again", "sequencer", s.name, "node", h.fence.Node(), "usable_until", h.fence.Horizon())
		s.say(errors.New("its node ID was lost, and there is no other yet"))
	}
	h, err := s.claim(ctx, g)
	if err != nil {
		return 0, err
	}
	s.latest, s.declines = h, 0
	return s.untilNext(h), s.use(ctx, h)
}

// untilNext is how long there is nothing to do.
func (s *Sequencer) untilNext(h *hold) time.Duration {
	third := s.m.options.Window / 3
	if h.generator == nil {
		return min(third, max(h.fence.Floor().Sub(s.m.now()), time.Millisecond))
	}
	return third
}

// decline asks for another node ID, and tells whether the same one came back: there is no other.
func (s *Sequencer) decline(ctx context.Context, g grant) (same bool, err error) {
	o, err := s.m.do(ctx, func(member string) cluster.Command {
		return cluster.Decline{Sequencer: s.name, Member: member, Node: g.node}
	})
	if err == nil && o.missed {
		err = errMissed
	}
	if err != nil {
		return false, err
	}
	v, _ := s.in(o.value)
	node, ok := v.Node(g.life.id)
	return ok && node == g.node, nil
}

var errMissed = errors.New("member: it is not known what came of a decline")

// enoughDeclines is after how many node IDs whose floors are ahead of the clock it is clear that the clock
// is what is wrong.
const enoughDeclines = 8

// claim takes the node ID that the value gives, under the session of the same life. If the wall clock has stepped
// ahead it does so by the wall: should the other owners agree with that, or there be none, it is believed.
func (s *Sequencer) claim(ctx context.Context, g grant) (*hold, error) {
	clock := s.m.options.Clock
	config, byTheWall := s.fences, true
	config.Clock = func() time.Time {
		if byTheWall {
			return s.m.now().Add(clock.Ahead())
		}
		return s.m.now()
	}
	if s.latest != nil {
		config.Before = s.latest.fence
	}
	f, err := fence.Claim(ctx, config, g.life.session, g.node)
	byTheWall = false
	var held *fence.HeldError
	var behind *fence.ClockBehindError
	switch {
	case err == nil:
		clock.Follow()
		s.m.log.Info("claimed a node ID", "sequencer", s.name, "node", f.Node(), "horizon", f.Horizon())
		return &hold{fence: f, life: g.life}, nil
	case errors.As(err, &held) && s.latest != nil && !s.latest.lost && (s.latest.fence.Node() == g.node || !s.usable(s.latest)):
		// It is its own: the clock has stepped, nobody contradicts it, and there is no other node ID. Or it is one
		// that can't be used any more, and that somebody may be waiting for.
		s.drop(ctx)
	case errors.As(err, &behind):
		if s.declines++; s.declines > enoughDeclines {
			return nil, err
		}
		same, failed := s.decline(ctx, g)
		if same {
			s.declines = enoughDeclines
		}
		return nil, errors.Join(err, failed)
	}
	return nil, err
}

// usable tells whether there is time left that is written down.
func (s *Sequencer) usable(h *hold) bool { return s.m.now().Before(h.fence.Horizon()) }

// use puts the generator of h in the place of the current one once the clock is past its floor; or, when it is
// there already, moves its bound to what the store has confirmed.
func (s *Sequencer) use(ctx context.Context, h *hold) error {
	if h.generator != nil {
		h.generator.SetBound(h.fence.Horizon())
		return nil
	}
	if floor := h.fence.Floor(); s.m.now().Before(floor) {
		s.say(fmt.Errorf("node ID %d was used until %v; waiting for the clock to get there", h.fence.Node(), floor.UTC()))
		s.m.log.Info("waiting for the clock to pass what the node ID was used for", "sequencer", s.name, "node", h.fence.Node(), "until", floor)
		return nil
	}
	old, err := s.exchange(h)
	if err != nil {
		s.say(err)
		return err
	}
	s.say(errors.New("the horizon is reached, and the store has not confirmed a later one"))
	if old != nil {
		s.giveBack(ctx, old)
	}
	return nil
}

// exchange stops the current generator and puts that of h in its place, which goes on after the last tick
// that any before it used.
func (s *Sequencer) exchange(h *hold) (old *hold, err error) {
	s.switching.Lock()
	defer s.switching.Unlock()
	if old = s.current.Load(); old != nil {
		s.stopped(old) // who comes now waits at s.switching, and finds the new one
	}
	floor := h.fence.Floor()
	if s.used.After(floor) {
		floor = s.used
	}
	options := []firn.Option{
		firn.WithClock(s.m.options.Clock), firn.FailAtBound(),
		firn.WithFloor(floor), firn.WithBound(h.fence.Horizon()),
	}
	if s.m.options.RandomStart {
		options = append(options, firn.WithRandomStart())
	}
	if h.generator, err = firn.NewGenerator(s.layout, h.fence.Node(), options...); err != nil {
		s.current.Store(nil)
		return old, err
	}
	s.current.Store(h)
	return old, nil
}

// stopped stops the generator of h and returns the end of its use. s.switching is held.
func (s *Sequencer) stopped(h *hold) time.Time {
	used := h.generator.Stop()
	if used.After(s.used) {
		s.used = used
	}
	return used
}

// drop stops the use of all that it has, and gives it back.
func (s *Sequencer) drop(ctx context.Context) {
	s.switching.Lock()
	current := s.current.Swap(nil)
	if current != nil {
		s.stopped(current)
	}
	s.switching.Unlock()
	if current != nil {
		s.giveBack(ctx, current)
	}
	if s.latest != nil && s.latest != current {
		s.giveBack(ctx, s.latest)
	}
	s.latest = nil
}

// release is the end; ctx has ended.
func (s *Sequencer) release(ctx context.Context) {
	s.say(errLeft)
	s.drop(context.WithoutCancel(ctx))
}

// giveBack gives the node ID of h back, whose generator, if it has one, is stopped.
func (s *Sequencer) giveBack(ctx context.Context, h *hold) {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	err := h.fence.Release(ctx, func() time.Time {
		if h.generator == nil {
			return time.Time{}
		}
		return h.generator.Stop()
	})
	if err != nil {
		s.m.log.Warn("the node ID was not given back; it is free once its session has ended", "sequencer", s.name, "node", h.fence.Node(), "err", err)
	}
}
