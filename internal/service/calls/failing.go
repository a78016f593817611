package calls

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// failing knows of which sequencers callers get no IDs here: this node has no node ID of them, and no other node gave
// it IDs. The zero value is ready.
type failing struct {
	mu sync.Mutex
	by map[string]failures // by sequencer
}

// failures are the times of the first and the last of several failed calls.
type failures struct{ first, last time.Time }

// failedFor is how long after the last failed call calls are said to fail.
const failedFor = 30 * time.Second

// note notes that a call for IDs of a sequencer has failed.
func (f *failing) note(name string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.by, func(_ string, calls failures) bool { return now.Sub(calls.last) >= failedFor })
	if f.by == nil {
		f.by = map[string]failures{}
	}
	calls, ok := f.by[name]
	if !ok {
		calls.first = now
	}
	calls.last = now
	f.by[name] = calls
}

// names returns the sequencers of which calls have failed for longer than a node takes to get a node ID, at most
// mostRates.
func (f *failing) names(now time.Time) (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, calls := range f.by {
		if now.Sub(calls.last) < failedFor && calls.last.Sub(calls.first) >= settling {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all[:min(mostRates, len(all))]
}

// noteFailed notes a call that got no IDs of a sequencer because this node has no node ID of it. It leaves out calls
// that the caller has given up, and those that another node has forwarded.
func (s *Service) noteFailed(ctx context.Context, name string, err error) {
	if !lacksNodeID(ctx, err) || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	if q, ok := s.member.Value().Sequencer(name); ok && !q.Definition().Claimed() {
		s.failing.note(name, time.Now())
	}
}
