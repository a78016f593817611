package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// Revoke takes every node ID below a prefix from its owner, and returns the last horizon of all, or the zero time
// when there is none. The owners can't extend any more, but may use the time up to their horizons; no ID goes
// beyond the last one if no new claim is possible (see Config.Guards). Once a guard no longer holds, Revoke takes
// no node ID: owners that have claimed since then keep theirs.
//
// While the outcome of an attempt is in doubt or the store is unavailable, Revoke tries again until ctx ends.
// ErrClosed is returned when a guard does not hold. An error is also returned when a horizon can't be read or a node ID
// is reserved, since the last one is then unknown; the owners are revoked all the same. Otherwise the error is that of
// the store, or that of ctx.
func Revoke(ctx context.Context, s store.Store, prefix string,
	guards ...store.Condition,
) (horizon time.Time, err error) {
	for tries := 0; ; tries++ {
		t, err := revoke(ctx, s, prefix, guards)
		switch {
		case err == nil:
			return t.lastHorizon()
		case errors.Is(err, store.ErrConflict):
			if err := checkGuards(ctx, s, guards); errors.Is(err, ErrClosed) {
				return time.Time{}, err
			}
		case errors.Is(err, store.ErrAmbiguous), errors.Is(err, store.ErrUnavailable):
		default:
			return time.Time{}, err
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return time.Time{}, err
		}
	}
}

// revoke deletes live keys until it reads a table without any, whose horizons are final.
func revoke(ctx context.Context, s store.Store, prefix string, guards []store.Condition) (table, error) {
	for {
		t, err := readTable(ctx, s, prefix)
		live := t.live(prefix)
		if err != nil || len(live) == 0 {
			return t, err
		}
		for some := range slices.Chunk(live, store.MaxOps-len(guards)) {
			drop := store.Txn{If: slices.Concat(guards, some)}
			for _, c := range some {
				drop.Then = append(drop.Then, store.Delete(c.Key))
			}
			if _, err := s.Commit(ctx, drop); err != nil {
				return nil, err
			}
		}
	}
}

// live returns the live keys of the table, with their versions.
func (t table) live(prefix string) (keys []store.Condition) {
	for node, v := range t {
		if v.Live != 0 {
			keys = append(keys, store.Condition{Key: liveKey(prefix, node), Version: v.Live})
		}
	}
	return keys
}

func (t table) lastHorizon() (last time.Time, err error) {
	for node, v := range t {
		if v.Horizon == never {
			return time.Time{}, fmt.Errorf("the horizon of node ID %d can't be read", node)
		}
		if _, _, _, reserved := reservation(*v); reserved {
			return time.Time{}, fmt.Errorf("the node ID %d is reserved", node)
		}
		if h := time.UnixMilli(v.Horizon); h.After(last) {
			last = h
		}
	}
	return last, nil
}
