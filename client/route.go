package client

import (
	"time"

	"github.com/firn-id/firn/internal/retry"
)

// avoidance is for how long a node is avoided after failures in a row.
var avoidance = retry.Backoff{First: 100 * time.Millisecond, Max: 5 * time.Second}

// leavingPause is for how long a node is avoided while it closes its connections, because it is about to stop.
const leavingPause = time.Second

// route is a node as one sequencer sees it: a node may give IDs of one sequencer and not of another. The
// sequencer's mu guards it.
type route struct {
	index    int
	node     string
	inFlight int

	failures int       // in a row; one that begins within the pause after another is not counted
	until    time.Time // it is avoided until then; and beyond, if there were failures, until it has given IDs
	err      error     // of the last failure; nil when it works
}

func (r *route) avoided(now time.Time) bool { return r.failures > 0 || now.Before(r.until) }

func (r *route) works(now time.Time, leaving bool) {
	r.failures, r.until, r.err = 0, time.Time{}, nil
	if leaving {
		r.until = now.Add(leavingPause)
	}
}

// fails notes a failure. The node may say for how long to leave it alone at least.
func (r *route) fails(now time.Time, err error, atLeast time.Duration) {
	r.err = err
	if r.failures == 0 || !now.Before(r.until) {
		r.pause(now)
	}
	if least := now.Add(min(atLeast, avoidance.Max)); r.until.Before(least) {
		r.until = least
	}
}

func (r *route) pause(now time.Time) {
	r.until = now.Add(avoidance.After(r.failures))
	r.failures++
}

// pick takes the best route that was not tried for one more request, and returns nil if there is none: first those from which the call waits for
// nothing, then those that are not avoided, then those with the fewest requests in flight, in turn. If there are only
// avoided ones it is that whose pause ends first.
func (s *Sequencer) pick(tried []bool, out []int) *route {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var best *route
	for i := range s.routes {
		r := s.routes[(s.turn+1+i)%len(s.routes)]
		if !tried[r.index] && (best == nil || better(r, best, out, now)) {
			best = r
		}
	}
	if best != nil {
		s.turn = best.index
		best.inFlight++
	}
	return best
}

func better(a, b *route, out []int, now time.Time) bool {
	switch {
	case out[a.index] != out[b.index]:
		return out[a.index] < out[b.index]
	case a.avoided(now) != b.avoided(now):
		return !a.avoided(now)
	case a.avoided(now):
		return a.until.Before(b.until)
	}
	return a.inFlight < b.inFlight
}

// due takes a route that has failed, was not tried, and whose pause is over. It is for one request that nobody depends on.
func (s *Sequencer) due(tried []bool) *route {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, r := range s.routes {
		if !tried[r.index] && r.failures > 0 && !now.Before(r.until) {
			r.pause(now) // nobody else need try
			r.inFlight++
			return r
		}
	}
	return nil
}
