package peer

import (
	"fmt"
	"math"
	"time"
)

// lifetime returns nil when the layout has IDs for this time. Otherwise the error wraps ErrNotReady and
// firn.ErrLifetime.
func (s *Sequencer) lifetime(now time.Time) error {
	if _, err := s.definition.Check(now); err != nil {
		return fmt.Errorf("%w: the sequencer %q: %w", ErrNotReady, s.name, err)
	}
	return nil
}

const day = 24 * time.Hour

// notices are the times left of a layout at which a warning is logged: a year, a month, a day, none.
var notices = [...]time.Duration{365 * day, 30 * day, day, 0}

// noticed returns how many of the notices are due when the layout has this time left.
func noticed(left time.Duration) (due int) {
	for due < len(notices) && left <= notices[due] {
		due++
	}
	return due
}

// notice logs each notice that has become due once, and returns how long to wait for the next.
func (s *Sequencer) notice(now time.Time) time.Duration {
	end := s.layout.Lifetime()
	left := end.Sub(now)
	due := noticed(left)
	s.mu.Lock()
	defer s.mu.Unlock()
	if due > s.noticed {
		s.noticed = due
		say := s.m.log.Warn
		if due == len(notices) {
			say = s.m.log.Error
		}
		say(timeLeft(left), "sequencer", s.name, "end", end, "days", math.Floor(left.Hours()/24))
	}
	if due == len(notices) {
		return idle
	}
	return min(idle, max(left-notices[due], time.Millisecond))
}

func timeLeft(left time.Duration) string {
	if left <= 0 {
		return "the sequencer's layout has run out of time: there are no more IDs; create another sequencer, with a " +
			"later epoch, more time bits or a longer tick"
	}
	return "the sequencer's layout runs out of time: no node can make an ID after the end; prepare another sequencer"
}
