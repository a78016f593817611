package firn

import (
	"context"
	"fmt"
	"time"
)

// looksAgain is the longest that a waiting caller sleeps before it looks at the clock again,
// since a clock can be set while it sleeps.
const looksAgain = 100 * time.Millisecond

// wait blocks until it may be worth trying again after a refusal with cause, or returns the error to
// give to the caller. All who wait do so at one gate, which one timer opens.
func (g *Generator) wait(ctx context.Context, cause error) error {
	if cause != ErrNotYet && (cause != ErrBound || g.failAtBound) {
		return cause
	}
	g.mu.Lock()
	if g.refusal(g.next.Load(), g.clock.Now()) != cause {
		g.mu.Unlock()
		return nil // the bound has moved, or the generator was stopped, since it was refused
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
		defer g.waits.began()()
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", cause, ctx.Err())
	}
}

// untilHalfway is how long to sleep until half of the look-ahead before the next place is free again:
// long enough for a sleep to be worth it, short enough for its overshoot not to cost rate.
func (g *Generator) untilHalfway() time.Duration {
	begins := g.layout.TickStart(int64(g.next.Load() / g.perTick))
	wait := begins.Sub(time.Unix(0, g.clock.Now())) - time.Duration(g.lookAhead/2)
	return min(max(wait, 0), looksAgain)
}

// open lets everybody at the gate look again.
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
