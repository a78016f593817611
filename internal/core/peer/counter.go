package peer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/store"
)

// Counter gives the numbers of one counter. Member.EnsureCounter and Member.OpenCounter return one. It needs no node ID
// and no clock, and does not attach: it claims blocks of numbers when callers need them. Its methods are safe for
// concurrent use.
type Counter struct {
	m          *Member
	name       string
	definition cluster.Definition
	rule       counter.Rule
	ensured    atomic.Bool // EnsureCounter was called: the member creates it again after the store lost data

	created atomic.Int64                  // position in the log; 0: unknown, after the store lost data
	owner   atomic.Pointer[counter.Owner] // replaced where a copy of this process may go on with its blocks
	wake    chan struct{}
	checks  *time.Ticker // when to look whether the counter has changed in the store

	ctx context.Context         // ends when it gives no more numbers
	end context.CancelCauseFunc // ends it, and says why

	guard   store.Condition // of claims; without a key while unknown. It belongs to its goroutine, as does the next
	guarded int64           // the member's losses when it was read
}

// lostEvery is how often a counter looks whether an operator has resumed it.
const lostEvery = time.Second

// EnsureCounter creates a counter unless it exists, and returns its handle; another call returns the same one. The
// first number is claimed when a caller needs it.
//
// The errors are those of EnsureSequencer, and a *KindError when a sequencer of another kind had the name.
func (m *Member) EnsureCounter(ctx context.Context, name string, d cluster.Definition) (*Counter, error) {
	if err := mustBe(name, d, true); err != nil {
		return nil, err
	}
	v, _, err := m.create(ctx, name, d, false, 0)
	if err != nil {
		return nil, err
	}
	return m.counter(name, v, true)
}

// OpenCounter returns the handle of a counter that exists; names that don't exist cost the store as little as with
// Lookup. ErrNoSequencer is returned when there is none of this name, a *KindError when it is no counter, and other
// errors when ctx or the member has ended.
func (m *Member) OpenCounter(ctx context.Context, name string) (*Counter, error) {
	if c, ok := m.Counter(name); ok && c.created.Load() != 0 {
		return c, nil
	}
	v, err := m.find(ctx, name)
	if err == nil {
		err = mustBe(name, v.Definition(), true)
	}
	if err != nil {
		return nil, err
	}
	return m.counter(name, v, false)
}

// Counter returns the handle of a counter if this member has one that has not ended, and false otherwise. It does not
// ask the store.
func (m *Member) Counter(name string) (*Counter, bool) {
	c := m.counters.find(name)
	return c, c != nil && c.ctx.Err() == nil
}

func (m *Member) counter(name string, v cluster.Sequencer, ensured bool) (*Counter, error) {
	m.counters.mu.Lock()
	defer m.counters.mu.Unlock()
	if c := m.counters.all[name]; c != nil && c.ctx.Err() == nil {
		if c.adopt(v) || c.created.Load() == v.Created() {
			if ensured {
				c.ensured.Store(true)
			}
			return c, nil
		}
		c.end(ErrDestroyed) // this may be known here before the player notes it
	}
	c := &Counter{m: m, name: name, definition: v.Definition(), wake: make(chan struct{}, 1)}
	c.ensured.Store(ensured)
	var err error
	if c.rule, err = counter.RuleOf(c.definition); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	c.checks = time.NewTicker(m.options.Window / 3)
	c.created.Store(v.Created())
	c.ctx, c.end = context.WithCancelCause(m.serving)
	c.renew()
	if !m.registry.serve(c.run) {
		return nil, errHasLeft
	}
	m.counters.all[name] = c
	m.counters.show()
	return c, nil
}

// renew gives it an owner that knows nothing yet.
func (c *Counter) renew() {
	c.owner.Store(counter.NewOwner(counter.Config{
		Store: c.m.store, Key: counter.Key(c.name), Rule: c.rule, Pace: c.m.options.Pace, Clock: c.m.clock.Now,
		By: c.m.ID,
	}))
}

// Name returns the counter's name.
func (c *Counter) Name() string { return c.name }

// Definition returns the definition in force.
func (c *Counter) Definition() cluster.Definition { return c.definition }

// Counting returns how far this member is. It does not ask the store.
func (c *Counter) Counting() Counting {
	s := c.owner.Load().State()
	return Counting{
		Reserved: firn.ID(max(s.Greatest, s.Known.Last)),
		Lost:     s.Phase == counter.Losing || s.Phase == counter.Lost,
	}
}

// Rival returns the member to which this one leaves a sequencer in strict order: the one that claimed last, if its ID
// is the smaller one of the two, so that neither waits for the other; empty: it gives IDs itself.
func (c *Counter) Rival() string {
	if c.definition.Order != cluster.OrderStrict {
		return ""
	}
	by := c.owner.Load().Rival()
	if by >= c.m.ID() || !c.m.Value().IsMember(by) {
		return ""
	}
	return by
}

// Next returns the next number. It waits for one until ctx ends, at most as long as the store takes to answer.
//
// ErrNotReady is returned while there is none. It wraps a *counter.ExhaustedError when all are used up, a
// *counter.LostError after the store has lost data and until an operator resumes the counter, ErrDestroyed when it was
// destroyed, ErrDetached after Detach, and else the error of the store.
func (c *Counter) Next(ctx context.Context) (id firn.ID, err error) {
	err = c.give(ctx, func(from counter.Dispenser) (err error) {
		id, err = from.Next(ctx)
		return err
	})
	return id, err
}

// Fill fills ids with the next numbers in ascending order: consecutive ones if one block has them, or blocks that
// follow upon one another. It waits and fails as Next does; on an error it zeroes ids.
func (c *Counter) Fill(ctx context.Context, ids []firn.ID) error {
	return c.give(ctx, func(from counter.Dispenser) error { return from.Fill(ctx, ids) })
}

// give has the present blocks give, and those that have replaced them meanwhile.
func (c *Counter) give(ctx context.Context, give func(counter.Dispenser) error) error {
	for {
		o := c.owner.Load()
		err := give(o.Blocks())
		if err == nil {
			return nil
		}
		if c.owner.Load() == o {
			return c.notReady(ctx, err)
		}
	}
}

func (c *Counter) notReady(ctx context.Context, err error) error {
	switch cause := context.Cause(c.ctx); {
	case cause != nil:
		err = cause
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return c.m.troubles.because(err)
	}
	return fmt.Errorf("%w: %w", ErrNotReady, err)
}

// FillAfter is Fill with IDs that exceed another one in strict order, where they exceed all that were given before. An
// *AfterError is returned when they don't, since that one was never given. Otherwise numbers exceed those that this
// member gave before, and no others.
func (c *Counter) FillAfter(ctx context.Context, after firn.ID, _ time.Duration, ids []firn.ID) error {
	// which this member may not know yet
	if c.definition.Order == cluster.OrderStrict && after > c.Counting().Reserved {
		v, err := c.m.CounterRecord(ctx, c.name)
		if err == nil && int64(after) > v.Last {
			err = &AfterError{After: after, Last: firn.ID(v.Last)}
		}
		if err != nil {
			clear(ids)
			return err
		}
	}
	return c.Fill(ctx, ids)
}

// Take takes n consecutive numbers, at least 1, and returns the last of them. An error is returned when n is less.
// Where the numbers after a block are another member's, what is left of that block may be too little, and nobody gets
// it any more. It waits and fails as Next does.
func (c *Counter) Take(ctx context.Context, n int64) (last firn.ID, err error) {
	if n < 1 {
		return 0, fmt.Errorf("%d consecutive numbers; want 1 or more", n)
	}
	err = c.give(ctx, func(from counter.Dispenser) (err error) {
		last, err = from.Take(ctx, n)
		return err
	})
	return last, err
}

// Ready returns nil when the member gives numbers, or claims some as soon as a caller needs them. The error is that of
// Next.
func (c *Counter) Ready() error {
	err := context.Cause(c.ctx)
	if err == nil {
		err = c.owner.Load().Ready()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil
}

// Detach ends the handle, and returns when what it had not given is given back, or ctx ends. Member.OpenCounter
// then returns another one.
func (c *Counter) Detach(ctx context.Context) error {
	c.end(ErrDetached)
	return c.release(ctx)
}

// poke has the goroutine look again.
func (c *Counter) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// check has the owner see a loss of data that nothing has told the member, as it may need no block for long. Where the
// store does not answer, the next check may see more.
func (c *Counter) check() {
	losses := c.m.losses.Load()
	ctx, cancel := context.WithTimeout(c.ctx, c.m.options.Window/3)
	defer cancel()
	c.m.breaks(losses, c.owner.Load().Check(ctx))
}

// adopt ties the handle to a counter of the log after a loss. It returns false when their definitions differ, or the
// handle is already tied to one.
func (c *Counter) adopt(v cluster.Sequencer) bool {
	return c.definition.Equal(v.Definition()) && c.created.CompareAndSwap(0, v.Created())
}
