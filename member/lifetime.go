package member

import (
	"fmt"
	"math"
	"time"
)

// lifetime returns nil when the layout has IDs for this time, and else an ErrNotReady and firn.ErrLifetime that says why not.
func (s *Sequencer) lifetime(now time.Time) error {
	if _, err := s.definition.Check(now); err != nil {
		return fmt.Errorf("%w: the sequencer %q: %w", ErrNotReady, s.name, err)
	}
	return nil
}

const day = 24 * time.Hour

// notices are how much time a layout has left when the log says so: a year, a month and a day. Nothing is left at the last.
var notices = [...]time.Duration{365 * day, 30 * day, day, 0}

// noticed is how many of the notices are due with so much time left.
func noticed(left time.Duration) (due int) {
	for due < len(notices) && left <= notices[due] {
		due++
	}
	return due
}

// notice has the log say that the layout's time runs out, once for each notice that has become due, and returns in how long
// to look again at the latest.
func (s *Sequencer) notice(now time.Time) time.Duration {
	end := s.layout.Lifetime()
	left := end.Sub(now)
	due := noticed(left)
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
		return "the sequencer's layout has run out of time: there are no more IDs; create another sequencer, with a later epoch, more time bits or a longer tick"
	}
	return "the sequencer's layout runs out of time: no node can make an ID after the end; prepare another sequencer"
}
