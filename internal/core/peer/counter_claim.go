package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/store"
)

// run claims blocks when callers need them, until the handle ends, and then gives back what is left.
func (c *Counter) run() {
	defer c.remove()
	defer c.checks.Stop()
	var err error
	for failures := 0; c.awaitWork(failures, err); {
		failures++
		if err = c.claim(c.ctx); err == nil {
			failures = 0
		}
	}
	ctx, cancel := c.m.registry.inTime(context.WithoutCancel(c.ctx), returnWithin)
	defer cancel()
	if err := c.release(ctx); err != nil {
		c.m.log.Warn("can't give back the rest of a counter's block; its numbers are never given", "counter",
			c.name, "err", err)
	}
}

// release gives back what is left, and tries that until ctx ends.
func (c *Counter) release(ctx context.Context) error {
	for tries := 0; ; tries++ {
		err := c.owner.Load().Release(ctx)
		if err == nil || !passes(err) {
			return err
		}
		if why := retry.Sleep(ctx, backoff.After(tries)); why != nil {
			return fmt.Errorf("%w; the latest trouble: %w", why, err)
		}
	}
}

// awaitWork waits until callers need a block, or after failures, of which this is the last, until it is time to try
// again. False: the handle ends.
func (c *Counter) awaitWork(failures int, err error) bool {
	for {
		o := c.owner.Load()
		wanted, wait := o.Blocks().Wanted(), idle
		lost := o.Lost()
		if failures > 0 { // callers who get the error do not make it ask the store more often
			wanted, wait = nil, backoff.After(failures-1)
		}
		if none, ok := errors.AsType[*counter.ExhaustedError](err); failures > 0 && ok && none.Until.After(c.m.now()) {
			wait = min(wait, none.Until.Sub(c.m.now()))
		}
		if lost {
			wait = min(wait, lostEvery)
		}
		timer := time.NewTimer(wait)
		select {
		case <-c.ctx.Done():
			timer.Stop()
			return false
		case <-wanted:
			timer.Stop()
			return true
		case <-c.wake: // another owner, or news of a loss
			timer.Stop()
			if o.Lost() {
				return true
			}
			failures = 0
		case <-c.checks.C:
			timer.Stop()
			if c.check(); failures > 0 || lost { // the timer would begin again
				return true
			}
		case <-timer.C:
			if failures > 0 || lost {
				return true
			}
		}
	}
}

func (c *Counter) remove() {
	c.m.counters.mu.Lock()
	defer c.m.counters.mu.Unlock()
	if c.m.counters.all[c.name] == c {
		delete(c.m.counters.all, c.name)
		c.m.counters.show()
	}
}

// claim claims a block if callers want one. If it can't, they get the error.
func (c *Counter) claim(ctx context.Context) error {
	o, losses := c.owner.Load(), c.m.losses.Load()
	if o.State().Phase == counter.Losing {
		if err := counter.Tell(ctx, c.m.store); err != nil {
			return err
		}
		o.Told()
	}
	err := c.claimOnce(ctx, o)
	if errors.Is(err, counter.ErrClosed) { // the generation has ended, or another has begun
		err = c.claimOnce(ctx, o)
	}
	if err != nil && ctx.Err() == nil {
		o.Blocks().Fail(err)
		c.m.breaks(losses, err)
		c.m.troubles.note(ctx, "can't claim numbers of a counter at present, trying again", err)
	}
	return err
}

// claimOnce claims a block if one is wanted, by what is known of the generation.
func (c *Counter) claimOnce(ctx context.Context, o *counter.Owner) error {
	if c.rule.Timed() { // a wrong date or time would keep others from giving numbers
		if err := c.m.checkClock(ctx, c.m.options.Window/3); err != nil {
			return err
		}
	}
	err := c.open(ctx)
	if err == nil {
		err = o.Claim(ctx, c.guard)
	}
	if errors.Is(err, counter.ErrClosed) {
		c.guard = store.Condition{}
	}
	return err
}

// open makes it possible to claim numbers for this counter, and for no other sequencer of its name.
func (c *Counter) open(ctx context.Context) error {
	losses, created := c.m.losses.Load(), c.created.Load()
	switch {
	case created == 0:
		return errLostData
	case c.guard.Key != "" && c.guarded == losses:
		return nil
	}
	_, at, err := c.m.changeGeneration(ctx, c.name, func(i generation, _ store.Condition) (generation, bool, error) {
		if err := i.checkKind(c.name, c.definition); err != nil {
			return i, false, err
		}
		switch {
		case i.Destroyed, !i.is(created, c.definition):
			v, err := c.m.catchUp(ctx)
			if q, ok := v.Sequencer(c.name); err == nil && (!ok || q.Created() != created) {
				err = errSuperseded
			}
			return i.successor(created, c.definition), false, err
		case i.Former != nil: // its numbers are below those to come, as the key of the counter is the same
			i.Former = nil
			return i, false, nil
		}
		return i, true, nil
	})
	if err == nil {
		c.guard, c.guarded = at, losses
	}
	return err
}
