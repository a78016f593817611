package peer

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// Destroy ends a sequencer for ever, on every member, and returns once no member can make an ID of it: each has
// stopped, or its horizon has passed. That takes a round through the log when all members are healthy, and up to
// a window when one has crashed or is out of reach. Destroy goes by this member's clock; that of a member out of
// reach may differ.
//
// ErrNoSequencer is returned when no sequencer has this name, and a *RefusedError while node IDs of it are reserved. A
// *UsedUntilError is returned when it is destroyed, but ctx ended before no member could make an ID. After any other
// error it may or may not be destroyed.
func (m *Member) Destroy(ctx context.Context, name string) error {
	losses := m.losses.Load()
	q, err := m.latest(ctx, name)
	for there := true; err == nil && there; {
		var o outcome
		o, err = m.do(ctx, func(string) cluster.Command {
			return cluster.DestroySequencer{Sequencer: name, Created: q.Created()}
		})
		if err == nil && !o.missed {
			now, ok := o.value.Sequencer(name)
			if there = ok && now.Created() == q.Created(); there && o.Result == cluster.Refused {
				return &RefusedError{Command: cluster.DestroySequencer{}, Why: o.Why}
			}
		}
	}
	if err != nil {
		return err
	}
	return m.awaitQuiet(ctx, name, q, losses)
}

const (
	quietFirst   = 5 * time.Millisecond // the pause between two looks, and doubled from there
	quietLongest = 500 * time.Millisecond
	quietAfter   = 5 * time.Second // owners that have not released their node IDs by then lose them
)

// awaitQuiet waits until no ID of a destroyed sequencer can be made. A *UsedUntilError is returned when it can't
// find out, or the store has lost data since it had lost some so often: the log may have the sequencer again.
func (m *Member) awaitQuiet(ctx context.Context, name string, q cluster.Sequencer, losses int64) error {
	var last time.Time
	for began, pause := time.Now(), quietFirst; ; pause = min(2*pause, quietLongest) {
		until, live, err := m.lookAround(ctx, name, q, losses, time.Since(began) > quietAfter)
		rest := until.Sub(m.now())
		switch {
		case err != nil && !passes(err):
			return &UsedUntilError{Name: name, Until: last, Err: err}
		case err != nil:
			m.troubles.note(ctx, "can't find out whether a destroyed sequencer is still in use, trying again", err)
		case !live && rest <= 0:
			return nil
		case !live:
			pause = max(rest, time.Millisecond)
			fallthrough
		default:
			last = until
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return &UsedUntilError{Name: name, Until: last, Err: m.troubles.because(err)}
		}
	}
}

// lookAround returns until when IDs of a destroyed sequencer can be made, and whether a node ID is still owned.
// With revoke, owners that are still alive lose their node IDs.
func (m *Member) lookAround(ctx context.Context, name string, q cluster.Sequencer, losses int64,
	revoke bool,
) (until time.Time, live bool, err error) {
	i, at, err := m.markDestroyed(ctx, name, q, losses)
	if err != nil || !i.Destroyed && i.Former == nil { // the next generation has begun, so this one is closed
		return i.Until, false, err
	}
	if until, live, err = m.horizons(ctx, name); live && revoke && err == nil {
		_, err = m.revoke(ctx, name, at)
	}
	if errors.Is(err, fence.ErrClosed) { // another member is at it
		err = nil
	}
	return until, live, err
}

// markDestroyed has the store refuse all claims for a destroyed sequencer. It returns the latest generation, this
// one or a later one, and its condition.
func (m *Member) markDestroyed(ctx context.Context, name string, q cluster.Sequencer, losses int64) (generation,
	store.Condition, error,
) {
	return m.changeGeneration(ctx, name, func(i generation, _ store.Condition) (generation, bool, error) {
		own := i.is(q.Created(), q.Definition())
		if own && i.Destroyed {
			return i, true, nil
		}
		v, err := m.catchUp(ctx)
		if err == nil && m.losses.Load() != losses {
			err = errLostData
		}
		if err != nil {
			return i, false, err
		}
		if next, ok := v.Sequencer(name); ok && i.is(next.Created(), next.Definition()) {
			return i, true, nil
		}
		if !own {
			i = i.successor(q.Created(), q.Definition())
		}
		i.Destroyed = true
		return i, false, nil
	})
}
