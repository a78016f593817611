package member

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/fence"
	"github.com/firn-id/firn/store"
)

// hold is a node ID with its generator.
type hold struct {
	fence       *fence.Fence
	incarnation *incarnation    // under whose session it is
	era         int64           // of the clock by which it was claimed
	generator   *firn.Generator // nil until it is current
}

// held tells whether it can still be extended, for all that is known.
func (h *hold) held() bool { return h.fence.State().Phase == fence.Held }

// holder is what belongs to the goroutine that keeps a sequencer's node ID. Others may read latest.
type holder struct {
	latest   atomic.Pointer[hold] // the newest node ID; it becomes current once the clock is past its floor
	stopped  []*hold              // to be given back
	lost     *hold                // the one last told of that was lost
	asked    bool                 // another node ID was asked for in place of the latest, and the same came back
	declines int                  // in a row, because of floors ahead of the clock
	noticed  int                  // how many of the notices that the layout's time runs out were given

	guard   store.Condition // under which node IDs can be claimed; without a key while that is not known
	from    time.Time       // no ID may be from before that
	guarded int64           // after how many losses of data they were read; they count for no other
}

// run keeps the node ID until ctx ends, or the sequencer is destroyed.
func (s *Sequencer) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		losses := s.m.losses.Load()
		wait, err := s.tend(ctx)
		if h := s.current.Load(); err != nil && (h == nil || s.m.stale(h)) && s.grant().kind == granted {
			s.say(err)
		}
		s.settle(err)
		err = errors.Join(err, s.giveBack(ctx))
		s.m.breaks(losses, err)
		if s.rest() {
			return
		}
		if err == nil {
			failures = 0
		} else {
			s.m.nags.nag(ctx, "can't hold or give back a node ID at present, trying again", err)
			wait = min(backoff.After(failures), s.m.options.Window/6)
			failures++
		}
		if s.grant().kind == granted {
			wait = min(wait, s.notice(s.m.now()))
		}
		if wait <= 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.news:
		case <-time.After(wait):
		}
	}
	s.finish(errLeft)
	s.drop()
	if err := s.giveBack(context.WithoutCancel(ctx)); err != nil {
		s.m.log.Warn("a node ID was not given back; it is free once its session has ended", "sequencer", s.name, "err", err)
	}
}

// rest notes whether it holds nothing any more, and says whether that is for ever.
func (s *Sequencer) rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest.Load() == nil && len(s.stopped) == 0 && s.holds && s.granted.kind != granted {
		s.holds = false
		s.nudgeLocked()
		s.m.poke()
	}
	over := s.granted.kind == destroyed && !s.holds
	if over {
		s.settleLocked()
	}
	return over
}

// finish notes that it makes no IDs any more, or will not for long.
func (s *Sequencer) finish(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.granted.kind == destroyed {
		return
	}
	s.say(why)
	s.ended = true
	s.showLocked()
}

// settle notes that the attempt at a node ID has come to an end.
func (s *Sequencer) settle(err error) {
	var behind *fence.ClockBehindError
	var aheadOf *fence.ClockAheadError
	var early *EarlyError
	var floor *FloorError
	h := s.latest.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind := s.granted.kind; {
	case kind == granted && h != nil && h.held(), kind == inLine, kind == destroyed,
		errors.As(err, &behind) && s.declines >= enoughDeclines,
		errors.As(err, &aheadOf), errors.As(err, &early), errors.As(err, &floor), errors.Is(err, firn.ErrLifetime):
		s.settleLocked()
	}
}

func (s *Sequencer) settleLocked() {
	select {
	case <-s.settled:
	default:
		close(s.settled)
	}
}

// tend does what is to be done now, and says in how long to look again at the latest. What it does follows
// from how things stand, not from what happened, so that nothing has to be remembered.
func (s *Sequencer) tend(ctx context.Context) (time.Duration, error) {
	g, h := s.begin(), s.latest.Load()
	if g.kind != granted {
		s.kept.Store(nil)
	}
	switch g.kind {
	case rejoining:
		return idle, nil // what is written down is used up meanwhile
	case inLine:
		if h != nil && h.incarnation == g.incarnation { // of a former incarnation there is nothing to give back, but time to use up
			s.drop()
		}
		return idle, nil
	case unwanted, destroyed:
		s.drop()
		return idle, nil
	}
	if s.m.options.Clock.Ahead() != 0 {
		s.kept.Store(nil)
		if err := s.m.believe(ctx, s); err != nil {
			return 0, err
		}
	}
	inStep := h == nil || h.era == s.m.era.Load()
	its := h != nil && h.incarnation == g.incarnation && h.fence.Node() == g.node
	if its && inStep && h.held() {
		s.asked = false
		return s.untilNext(h), s.use(h)
	}
	s.kept.Store(nil)
	s.tellOfLoss(h)
	if its && !s.asked {
		// It was lost, or can't be extended as far at once as the clock has stepped. Another node ID can be used
		// while there is still time left under this one.
		same, err := s.decline(ctx, g)
		if err != nil {
			return 0, err
		}
		s.asked = same
		if !same && s.grant() == g {
			return idle, nil // the news is on its way
		}
		return 0, nil
	}
	h, err := s.claim(ctx, g)
	if err != nil {
		return 0, err
	}
	s.replace(h)
	s.declines = 0
	return s.untilNext(h), s.use(h)
}

// replace makes h the latest. The one before is used until h is current, unless it never was of any use: nobody else
// would ever give that back.
func (s *Sequencer) replace(h *hold) {
	s.switching.Lock()
	defer s.switching.Unlock()
	if former := s.latest.Swap(h); former != nil && former != s.current.Load() {
		s.stop(former)
	}
}

// tellOfLoss says, once, that h was lost, if it was.
func (s *Sequencer) tellOfLoss(h *hold) {
	if h == nil || h == s.lost || h.fence.State().Phase != fence.Lost {
		return
	}
	s.lost = h
	s.m.log.Warn("lost the node ID, asking for another", "sequencer", s.name, "node", h.fence.Node(), "usable_until", h.fence.Horizon())
	s.say(errors.New("its node ID was lost, and there is no other yet"))
}

// untilNext is how long there is nothing to do.
func (s *Sequencer) untilNext(h *hold) time.Duration {
	if h.generator == nil {
		return min(s.m.options.Window/3, max(h.fence.Floor().Sub(s.m.now()), time.Millisecond))
	}
	return idle // it is kept
}
