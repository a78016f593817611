package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// Reservations are node IDs that the holder of no session uses: a database, for instance. One is an owner that has
// written the end of all time as its horizon, so that nobody claims the node ID after it. Its operation ID is made of a
// name, and of the floor that it began at.

// Reserve takes a node ID from its owner, if it has one, and from all later ones: until is the end of its time. It
// returns the instant from which on whoever has it may use it; the former owner may use the time before. It returns the
// same when the node ID is reserved under that name, which has no spaces.
//
// While the outcome of an attempt is in doubt or the store is unavailable, Reserve tries again until ctx ends. ErrClosed
// is returned when a guard no longer holds. An error is also returned when the horizon can't be read. Otherwise the
// error is that of the store or of ctx.
func Reserve(ctx context.Context, s store.Store, prefix string, node int64, name string, until time.Time,
	guards ...store.Condition,
) (from time.Time, err error) {
	err = changeReserved(ctx, s, prefix, node, func(v View) (store.Txn, bool) {
		floor, reserved := reservedBy(v, name)
		if from = time.UnixMilli(max(floor, v.Horizon)); reserved {
			from = time.UnixMilli(floor)
			return store.Txn{}, false
		}
		t := store.Txn{
			If: slices.Clone(guards), // every claim, extension and release of the node ID puts the horizon, too
			Then: []store.Op{store.Put(reportedKey(prefix, node), reportedValue(max(until.UnixMilli(), v.Horizon),
				fmt.Sprintf("%s@%d", name, v.Horizon), fresh.Text()))},
		}
		if v.Live != 0 {
			t.Then = append(t.Then, store.Delete(liveKey(prefix, node)))
		}
		return t, true
	}, guards...)
	return from, err
}

// Free ends what Reserve did under a name: the next owner begins at end, or where the one before the reservation
// stopped, if that is later. It does nothing when the node ID is not reserved under that name. Its errors are those of
// Reserve.
func Free(ctx context.Context, s store.Store, prefix string, node int64, name string, end time.Time) error {
	return changeReserved(ctx, s, prefix, node, func(v View) (store.Txn, bool) {
		floor, reserved := reservedBy(v, name)
		return store.Txn{Then: []store.Op{store.Put(reportedKey(prefix, node),
			reportedValue(max(floor, roundUp(end)), fresh.Text(), fresh.Text()))}}, reserved
	})
}

// changeReserved commits what change returns for a node ID as it is, until that is applied, or there is nothing to do.
func changeReserved(ctx context.Context, s store.Store, prefix string, node int64,
	change func(View) (t store.Txn, due bool), guards ...store.Condition,
) error {
	for tries := 0; ; tries++ {
		all, err := readTable(ctx, s, prefix)
		if v := all.view(node); err == nil {
			if v.Horizon == never {
				return fmt.Errorf("the horizon of node ID %d can't be read", node)
			}
			t, due := change(v)
			if !due {
				return nil
			}
			t.If = append(t.If, store.Condition{Key: reportedKey(prefix, node), Version: v.Reported})
			_, err = s.Commit(ctx, t)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, store.ErrConflict):
			if err := checkGuards(ctx, s, guards); errors.Is(err, ErrClosed) {
				return err
			}
		case errors.Is(err, store.ErrAmbiguous), errors.Is(err, store.ErrUnavailable):
		default:
			return err
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return err
		}
	}
}

// reservedBy returns the floor at which the reservation of this name began, and whether there is one.
func reservedBy(v View, name string) (floor int64, reserved bool) {
	at, ok := strings.CutPrefix(v.ReportedBy, name+"@")
	floor, err := strconv.ParseInt(at, 10, 64)
	return floor, ok && err == nil
}
