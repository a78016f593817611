package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/retry"
	"github.com/firn-id/firn/store"
)

// Revoke takes every node ID below a prefix from its owner, and returns the last horizon of all, the
// zero time when there is none. The owners can't extend any more, but may use up what they have
// written down: up to that horizon, and no further if no new claim is possible (see Config.Guards).
// Nobody is revoked once a guard does not hold any more: who has claimed since then is not meant.
//
// While the store leaves an attempt in doubt or is unavailable, Revoke tries again until ctx ends. ErrClosed is
// returned when the guard does not hold. An error is also returned when the horizon of a node ID can't be read, since
// nobody can know how far that one was used; the owners are revoked all the same. Otherwise the error is that of
// the store, or that of ctx.
func Revoke(ctx context.Context, s store.Store, prefix string, guards ...store.Condition) (horizon time.Time, err error) {
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

// revoke deletes live keys until it has read a table without any: the horizons in it are final.
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

// live are the live keys, as they are in the table.
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
		if h := time.UnixMilli(v.Horizon); h.After(last) {
			last = h
		}
	}
	return last, nil
}
