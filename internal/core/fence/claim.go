package fence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// backoff paces the attempts of Claim and Revoke.
var backoff = retry.Backoff{First: 20 * time.Millisecond, Max: 2 * time.Second}

// Claim claims a node ID under the session, and returns its fence. The floor may lie ahead of the clock by up to
// MaxWait, or as far as NotBefore does: the caller waits for it. While the outcome of an attempt is in doubt,
// Claim tries again until ctx ends.
//
// A *HeldError is returned when an owner holds the node ID, and a *ClockBehindError when the clock is too far
// behind the last owner's horizon; a later Claim may succeed. ErrClosed is returned when a guard no longer holds, which
// is permanent. ErrCopied is returned when a copy of this process has made the claim. An error is also returned when
// node is negative. Otherwise the error is that of the store or of ctx.
func Claim(ctx context.Context, config Config, session store.Session, node int64) (*Fence, error) {
	config = config.withDefaults()
	if node < 0 {
		return nil, fmt.Errorf("there is no node ID %d; want 0 or more", node)
	}
	for tries := 0; ; tries++ {
		f, err := attempt(ctx, config, session, node)
		if f != nil || err != nil {
			return f, err
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return nil, err
		}
	}
}

// attempt writes until the outcome is known. It returns neither a fence nor an error when another owner was
// faster, which may be gone by now.
func attempt(ctx context.Context, config Config, session store.Session, node int64) (*Fence, error) {
	view, err := readView(ctx, config.Store, config.Prefix, node)
	if before := config.Before; before != nil && err == nil {
		err = before.Kept(ctx) // later: what was lost before the view was read shows
	}
	if err != nil {
		return nil, err
	}
	err = view.free(config.Prefix, node, config.Clock().UnixMilli(), config.MaxWait)
	if held, ok := errors.AsType[*HeldError](err); ok && config.Holder.isCopys(held.by) {
		return nil, isCopied(node)
	}
	if err != nil {
		return nil, err
	}
	f := newFence(config, session, node, view)
	for tries := 0; ; tries++ {
		err := f.write(ctx)
		switch s := f.State(); {
		case s.Phase == Held:
			return f, nil
		case s.Copied:
			return nil, isCopied(node)
		case s.Phase != Claiming: // another owner has it, our live key is gone, or a guard fails
			config.Holder.forget(f.operation)
			return nil, checkGuards(ctx, config.Store, config.Guards)
		case err != nil && !errors.Is(err, store.ErrAmbiguous) && !errors.Is(err, store.ErrUnavailable):
			return nil, err
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return nil, err
		}
	}
}

// checkGuards returns ErrClosed when a guard no longer holds.
func checkGuards(ctx context.Context, s store.Store, guards []store.Condition) error {
	for _, guard := range guards {
		kv, err := s.Get(ctx, guard.Key)
		if err == nil && kv.Version != guard.Version {
			err = fmt.Errorf("%w: %s has changed", ErrClosed, guard.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
