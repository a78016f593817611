package firn

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Waits counts how often callers of generators wait because the next ID lies in the
// future: the sequence is exhausted, the clock stepped back, or the floor is not reached
// yet. It counts no waits at a bound. The zero value is ready. A Waits is safe for
// concurrent use, also by several generators.
type Waits struct {
	count atomic.Uint64
	time  atomic.Int64 // nanoseconds
}

// WithWaits has the generator count its callers' waits in w.
func WithWaits(w *Waits) Option {
	return func(g *Generator) { g.waits = w }
}

// Count returns how often a caller began to wait. One call of Fill may wait several times.
func (w *Waits) Count() uint64 { return w.count.Load() }

// Time returns how long callers have waited in all. Waits at the same time add up; those
// that go on are not included yet.
func (w *Waits) Time() time.Duration { return time.Duration(w.time.Load()) }

// begin counts a wait, and returns what to call at its end. A nil Waits counts nothing.
func (w *Waits) begin() (end func()) {
	if w == nil {
		return func() {}
	}
	w.count.Add(1)
	since := time.Now()
	return func() { w.time.Add(int64(time.Since(since))) }
}

// longestSleep is how long a waiting caller sleeps at most before it looks at the clock
// again: the clock can be set meanwhile.
const longestSleep = 100 * time.Millisecond

// wait blocks until another attempt may succeed after a refusal with cause, or returns the
// error for the caller. All callers wait at one gate, which one timer opens.
func (g *Generator) wait(ctx context.Context, cause error) error {
	if cause != ErrNotYet && (cause != ErrBound || g.failAtBound) {
		return cause
	}
	g.mu.Lock()
	if g.refusal(g.next.Load(), g.clock.Now()) != cause {
		g.mu.Unlock()
		return nil // the bound has moved, or the generator was stopped, since the refusal
	}
	if g.gate == nil {
		g.gate = make(chan struct{})
	}
	gate := g.gate
	if cause == ErrNotYet && g.opener == nil {
		g.opener = time.AfterFunc(g.untilHalfway(), g.open)
	}
	g.mu.Unlock()

	if cause == ErrNotYet {
		defer g.waits.begin()()
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", cause, ctx.Err())
	}
}

// untilHalfway is how long to sleep until half of the look-ahead before the next place is
// free again: long enough for a sleep to be worth it, short enough for its overshoot not
// to cost rate.
func (g *Generator) untilHalfway() time.Duration {
	begins := g.layout.TickStart(int64(g.next.Load() / g.perTick))
	wait := begins.Sub(time.Unix(0, g.clock.Now())) - time.Duration(g.lookAhead/2)
	return min(max(wait, 0), longestSleep)
}

// open lets all callers at the gate try again.
func (g *Generator) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.openLocked()
}

func (g *Generator) openLocked() {
	if g.opener != nil {
		g.opener.Stop()
		g.opener = nil
	}
	if g.gate != nil {
		close(g.gate)
		g.gate = nil
	}
}
