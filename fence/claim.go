package fence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	claimPause    = 20 * time.Millisecond // before the second attempt, and doubled from there
	claimMaxPause = 2 * time.Second
)

// Claim takes a free node ID from first to last (the same twice for a given one) under the session,
// and returns its fence. Its floor may lie ahead of the clock by up to MaxWait: it is the caller who
// waits. While others are faster, or the store leaves an attempt in doubt, Claim tries again until
// ctx ends.
//
// The error is a *NoNodeError when no node ID is free, a *ClockBehindError when the clock is too far
// behind all that are, and a *ClockAheadError when it is too far ahead of the living owners; those may
// pass with time. Otherwise it is the error of the store, or that of ctx.
func Claim(ctx context.Context, config Config, session store.Session, first, last int64) (*Fence, error) {
	config = config.withDefaults()
	if first < 0 || last < first {
		return nil, fmt.Errorf("fence: no node IDs from %d to %d; want 0 <= first <= last", first, last)
	}
	for pause := claimPause; ; pause = min(2*pause, claimMaxPause) {
		f, err := attempt(ctx, config, session, first, last)
		if f != nil || err != nil {
			return f, err
		}
		if err := sleep(ctx, pause/2+rand.N(pause/2)); err != nil {
			return nil, err
		}
	}
}

// attempt tries one node ID until it is clear who has it. It returns neither a fence nor an error when
// somebody else was faster.
func attempt(ctx context.Context, config Config, session store.Session, first, last int64) (*Fence, error) {
	t, err := readTable(ctx, config.Store, config.Prefix)
	if err != nil {
		return nil, err
	}
	now := config.Clock().UnixMilli()
	if err := t.checkClock(now, config.MaxSkew, config.Before); err != nil {
		return nil, err
	}
	node, view, err := t.choose(first, last, now, config.MaxWait)
	if err != nil {
		return nil, err
	}
	f := newFence(config, session, node, view)
	for pause := claimPause; ; pause = min(2*pause, claimMaxPause) {
		err := f.write(ctx)
		switch phase := f.State().Phase; {
		case phase == Held:
			return f, nil
		case phase != Claiming: // somebody else has it, or had our session end
			return nil, nil
		case err != nil && !errors.Is(err, store.ErrAmbiguous) && !errors.Is(err, store.ErrUnavailable):
			return nil, err
		}
		if err := sleep(ctx, pause/2+rand.N(pause/2)); err != nil {
			return nil, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
