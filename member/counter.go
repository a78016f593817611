package member

import (
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/sequencer"
)

// Counter gives the IDs of a sequencer that are claimed, without a node ID: the numbers 1, 2, 3 and so on of a counter,
// and IDs in strict order. It reserves blocks of them in the store, and gives them from memory or, in strict order, to
// the calls that waited when it wrote. Member.EnsureCounter and Member.OpenCounter return one. Its methods are safe for
// concurrent use.
type Counter peer.Counter

// Next returns the next number: greater than all that this member gave before; in strict order greater than all that
// anybody was given before Next was called, and else not. It waits for the store if there is no number in memory, which
// in strict order there never is, until ctx ends.
//
// ErrNotReady is returned while there is none. It wraps an *ExhaustedError when there are no more, or none until
// another date, an *AheadError while others have numbers of a later time than this clock's, a *LostError after the
// store has lost data, until an operator resumes the counter, ErrDestroyed when it was destroyed, and ErrDetached after
// Detach.
func (c *Counter) Next(ctx context.Context) (firn.ID, error) { return c.peer().Next(ctx) }

// Fill fills numbers with the next ones in ascending order: consecutive ones unless another member has reserved some
// in between. It waits and fails as Next does; on an error it zeroes numbers.
func (c *Counter) Fill(ctx context.Context, numbers []firn.ID) error {
	return c.peer().Fill(ctx, numbers)
}

// Take takes n consecutive numbers, at least 1, and returns the last of them. It waits and fails as Next does.
func (c *Counter) Take(ctx context.Context, n int64) (last firn.ID, err error) {
	return c.peer().Take(ctx, n)
}

// Ready returns nil when Next can be expected to return a number. Otherwise it returns the error of Next.
func (c *Counter) Ready() error { return c.peer().Ready() }

// Detach ends the use of the counter here, and returns when the numbers that it has reserved and not given are given
// back, as far as nobody has reserved greater ones, or ctx ends. Leave does it, too.
func (c *Counter) Detach(ctx context.Context) error { return c.peer().Detach(ctx) }

// Name returns the counter's name.
func (c *Counter) Name() string { return c.peer().Name() }

// Definition returns the definition in force.
func (c *Counter) Definition() sequencer.Definition { return c.peer().Definition() }

func (c *Counter) peer() *peer.Counter { return (*peer.Counter)(c) }

// EnsureCounter creates a counter unless it exists, and returns its handle; another call returns the same one. It
// reserves no number before one is wanted. If the store has ever lost data, an operator resumes a counter that is new
// (firn sequencer resume), or creates it (firn sequencer create): nobody else knows whether it had given numbers
// before.
//
// The errors are those of EnsureSequencer, and a *KindError when the definition is not one of a counter or in strict
// order, or a sequencer of another kind had the name, and a *SmallerError when the numbers of the present time, by its
// date or layout, would not exceed those before.
func (m *Member) EnsureCounter(ctx context.Context, name string, d sequencer.Definition) (*Counter, error) {
	c, err := m.peer().EnsureCounter(ctx, name, d)
	return (*Counter)(c), err
}

// OpenCounter returns the handle of a counter that exists. ErrNoSequencer is returned when no sequencer has the name, a
// *KindError when its IDs are not claimed, and other errors when ctx or the member has ended.
func (m *Member) OpenCounter(ctx context.Context, name string) (*Counter, error) {
	c, err := m.peer().OpenCounter(ctx, name)
	return (*Counter)(c), err
}
