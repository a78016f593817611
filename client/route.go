package client

import (
	"time"

	"github.com/firn-id/firn/internal/base/retry"
)

// avoidance is how long the client avoids a node after failures in a row.
var avoidance = retry.Backoff{First: 100 * time.Millisecond, Max: 5 * time.Second}

// leavingPause is how long the client avoids a node that closes its connections because it is about to stop.
const leavingPause = time.Second

// route is a node as one sequencer sees it: a node may give IDs of one sequencer and not of another. The
// sequencer's mu guards it.
type route struct {
	index    int
	node     string
	inFlight int

	failures int       // in a row; one that begins within the pause after another is not counted
	until    time.Time // the node is avoided until then, and after failures until it gives IDs again
	err      error     // of the last failure; nil: the node works
}

func (r *route) avoided(now time.Time) bool { return r.failures > 0 || now.Before(r.until) }

func (r *route) works(now time.Time, leaving bool) {
	r.failures, r.until, r.err = 0, time.Time{}, nil
	if leaving {
		r.until = now.Add(leavingPause)
	}
}

// fails records a failure. The node may say how long at least to avoid it.
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

// pick takes the best route not tried yet for one more request, or returns nil: one with the fewest requests of this
// call, then one that is not avoided, then one with the fewest requests in flight, in turn. Of avoided ones it takes
// the one whose pause ends first.
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

// due takes a route for a probe: one that has failed, was not tried yet, and whose pause is over.
func (s *Sequencer) due(tried []bool) *route {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, r := range s.routes {
		if !tried[r.index] && r.failures > 0 && !now.Before(r.until) {
			r.pause(now) // one probe is enough
			r.inFlight++
			return r
		}
	}
	return nil
}
