package peer

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A registry has the sequencers of this member, each until its goroutine ends, and those goroutines, until the member
// leaves. Its methods are safe for concurrent use.
type registry struct {
	found atomic.Pointer[map[string]*Sequencer] // an immutable copy of sequencers; nil: none

	mu         sync.Mutex // guards what follows
	sequencers map[string]*Sequencer
	left       time.Time      // when the member began to leave; zero: it has not
	serving    sync.WaitGroup // the goroutines; none begins once it leaves
}

// find returns the sequencer of a name, and nil if there is none.
func (r *registry) find(name string) *Sequencer {
	if found := r.found.Load(); found != nil { // without a lock: every call for an ID runs this
		return (*found)[name]
	}
	return nil
}

// all returns the sequencers by name, also those that were destroyed while their goroutine runs.
func (r *registry) all() []*Sequencer {
	found := r.found.Load()
	if found == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(*found), func(a, b *Sequencer) int { return strings.Compare(a.name, b.name) })
}

// replace has next say which sequencer a name has, by the one that it has now, if any: the same, or another one, which
// run then serves until it ends. An error is returned, and next is not called, once the member leaves.
func (r *registry) replace(name string, next func(now *Sequencer) *Sequencer,
	run func(s *Sequencer),
) (*Sequencer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.left.IsZero() {
		return nil, errHasLeft
	}
	now := r.sequencers[name]
	s := next(now)
	if s == now {
		return s, nil
	}
	r.sequencers[name] = s
	r.show()
	r.serving.Go(func() {
		run(s)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.sequencers[name] == s {
			delete(r.sequencers, name)
			r.show()
		}
	})
	return s, nil
}

// show has find and all see a change. mu is held.
func (r *registry) show() { r.found.Store(new(maps.Clone(r.sequencers))) }

// serve begins a goroutine, unless the member leaves. It reports whether it has begun.
func (r *registry) serve(run func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left.IsZero() {
		r.serving.Go(run)
		return true
	}
	return false
}

// leave notes that the member begins to leave.
func (r *registry) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left.IsZero() {
		r.left = time.Now()
	}
}

// leaving reports whether the member leaves.
func (r *registry) leaving() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.left.IsZero()
}

// inTime returns a context that ends so long after the member began to leave; from now, if it does not leave.
func (r *registry) inTime(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.left
	if from.IsZero() {
		from = time.Now()
	}
	return context.WithDeadline(ctx, from.Add(within))
}
