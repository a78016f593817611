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
	if g.refusal(g.next.Load(), g.now()) != cause {
		g.mu.Unlock()
		return nil // the bound has moved, or the generator was stopped, since the refusal
	}
	if g.gate == nil {
		g.gate = make(chan struct{})
	}
	gate := g.gate
	if cause == ErrNotYet && g.opener == nil {
		g.opener = time.AfterFunc(g.untilNeeded(), g.wake)
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

// untilNeeded is how long to sleep until the look-ahead before the next place is free again
// but for half of the least: long enough for a sleep to be worth it, short enough for its
// overshoot not to cost rate.
func (g *Generator) untilNeeded() time.Duration {
	next := g.next.Load()
	wait := g.ahead(next, g.now()) - time.Duration(g.reach(next, g.lead.Load())-g.leastAhead/2)
	return min(max(wait, 0), longestSleep)
}

// wake opens the gate when its time has come, and has the look-ahead follow how late it is.
func (g *Generator) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	ends := g.layout.TickStart(int64(g.next.Load()/g.perTick) + 1)
	lost := time.Unix(0, g.now()).Sub(ends) // since then nobody took a place
	g.lookAhead.Store(follow(g.lookAhead.Load(), g.leastAhead, g.mostAhead, lost))
	g.openLocked()
}

// shrinkBy is by how much a look-ahead shrinks with each wake-up in time: from the most to
// the least in about two seconds of saturation.
const shrinkBy = 16 * time.Microsecond

// follow returns the look-ahead after a wake-up that lost so much time, in which no IDs were
// made; negative: none. It then doubles what lies between the time of a wake-up and the loss, which a wake-up may be
// late.
func follow(lookAhead, least, most uint64, lost time.Duration) uint64 {
	if lost <= 0 {
		return max(lookAhead, least+uint64(shrinkBy)) - uint64(shrinkBy)
	}
	rest := least / 2
	return min(rest+2*(lookAhead-rest+min(uint64(lost), most)), most)
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
