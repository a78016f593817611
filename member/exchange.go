package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
)

// use puts the generator of h in the place of the current one once the clock is past its floor, and has it kept.
func (s *Sequencer) use(h *hold) error {
	if h.generator == nil {
		if floor := h.fence.Floor(); s.m.now().Before(floor) {
			s.say(fmt.Errorf("node ID %d may not be used before %v; waiting for the clock to get there", h.fence.Node(), floor.UTC()))
			s.m.log.Info("waiting for the clock to pass what the node ID was used for", "sequencer", s.name, "node", h.fence.Node(), "until", floor)
			return nil
		}
		if err := s.exchange(h); err != nil {
			s.say(err)
			return err
		}
		s.say(errors.New("the horizon is reached, and the store has not confirmed a later one"))
	}
	s.kept.Store(h)
	return nil
}

// exchange stops the current generator and puts that of h in its place, which goes on after the last tick
// that any before it used.
func (s *Sequencer) exchange(h *hold) (err error) {
	s.switching.Lock()
	defer s.switching.Unlock()
	old := s.current.Load()
	if old != nil {
		s.stop(old) // who comes now waits at s.switching, and finds the new one
	}
	floor := h.fence.Floor()
	if s.used.After(floor) {
		floor = s.used
	}
	options := []firn.Option{
		firn.WithClock(s.m.options.Clock), firn.FailAtBound(),
		firn.WithFloor(floor), firn.WithBound(h.fence.Horizon()),
		firn.WithWaits(&s.waits),
	}
	if s.m.options.RandomStart {
		options = append(options, firn.WithRandomStart())
	}
	defer s.show()
	if h.generator, err = firn.NewGenerator(s.layout, h.fence.Node(), options...); err != nil {
		s.current.Store(nil)
		return err
	}
	s.current.Store(h)
	return nil
}

// stop stops the use of h, which is then to be given back. s.switching is held.
func (s *Sequencer) stop(h *hold) {
	if h.generator != nil {
		if used := h.generator.Stop(); used.After(s.used) {
			s.used = used
		}
	}
	s.stopped = append(s.stopped, h)
}

// withdraw ends the use of the current one at once, whatever its goroutine is busy with, which gives it back later.
func (s *Sequencer) withdraw(h *hold) {
	s.switching.Lock()
	s.current.CompareAndSwap(h, nil)
	h.generator.Stop()
	s.switching.Unlock()
	s.show()
}

// drop stops the use of all that it has.
func (s *Sequencer) drop() {
	s.kept.Store(nil)
	s.switching.Lock()
	current, latest := s.current.Swap(nil), s.latest.Swap(nil)
	if current != nil {
		s.stop(current)
	}
	if latest != nil && latest != current {
		s.stop(latest)
	}
	s.switching.Unlock()
	s.show()
}

// giveBack gives back what was stopped. What it could not give back, it tries again the next time.
func (s *Sequencer) giveBack(ctx context.Context) error {
	var failed error
	left := s.stopped[:0]
	for _, h := range s.stopped {
		if s.m.stale(h) {
			continue // the store does not know of it any more
		}
		within, cancel := context.WithTimeout(ctx, leaveWithin)
		err := h.fence.Release(within, func() time.Time {
			if h.generator == nil {
				return time.Time{}
			}
			return h.generator.Stop()
		})
		cancel()
		if err != nil {
			left = append(left, h)
			failed = fmt.Errorf("giving back node ID %d: %w", h.fence.Node(), err)
		}
	}
	s.stopped = left
	return failed
}
