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

// A reservation is an owner that needs no session: a database, for instance. Its horizon is the end of all time, so
// that nobody claims the node ID after it. Its operation ID is made of a name, and of the floor that it began at.
const (
	reservedPrefix = "reserved-"
	endOfTime      = int64(253402300799999) // 9999-12-31: later ones can't be read, see Owner
)

// Reserve takes a node ID from its owner, if it has one, and from all later ones. It returns the instant from which on
// whoever has it may use it, notBefore or later; the former owner may use the time before. It returns the same when the
// node ID is reserved under that name, which has no spaces.
//
// While the outcome of an attempt is in doubt or the store is unavailable, Reserve tries again until ctx ends.
// ErrClosed is returned when a guard no longer holds. An error is also returned when the node ID is reserved under
// another name, or its horizon can't be read. Otherwise the error is that of the store or of ctx.
func Reserve(ctx context.Context, s store.Store, prefix string, node int64, name string, notBefore time.Time,
	guards ...store.Condition,
) (from time.Time, err error) {
	err = changeReserved(ctx, s, prefix, node, func(v View) (t store.Txn, due bool, err error) {
		floor, by, reserved := reservation(v)
		switch {
		case reserved && by != name:
			return t, false, isReserved(node)
		case reserved:
			from = time.UnixMilli(floor)
			return t, false, nil
		}
		floor = max(v.Horizon, roundUp(notBefore))
		from = time.UnixMilli(floor)
		operation := fmt.Sprintf("%s%s@%d", reservedPrefix, name, floor)
		t.If = slices.Clone(guards) // every claim, extension and release of the node ID puts the horizon, too
		t.Then = []store.Op{store.Put(reportedKey(prefix, node), reportedValue(endOfTime, operation, fresh.Text()))}
		if v.Live != 0 {
			t.Then = append(t.Then, store.Delete(liveKey(prefix, node)))
		}
		return t, true, nil
	}, guards...)
	return from, err
}

// Free ends what Reserve did under a name: the next owner begins at end, or where the one before the reservation
// stopped, if that is later. It does nothing when the node ID is not reserved under that name. Its errors are those of
// Reserve.
func Free(ctx context.Context, s store.Store, prefix string, node int64, name string, end time.Time) error {
	return changeReserved(ctx, s, prefix, node, func(v View) (t store.Txn, due bool, err error) {
		floor, by, reserved := reservation(v)
		t.Then = []store.Op{store.Put(reportedKey(prefix, node),
			reportedValue(max(floor, roundUp(end)), fresh.Text(), fresh.Text()))}
		return t, reserved && by == name, nil
	})
}

func isReserved(node int64) error { return fmt.Errorf("the node ID %d is reserved", node) }

// changeReserved commits what change returns for a node ID as it is, until that is applied, or there is nothing to do.
func changeReserved(ctx context.Context, s store.Store, prefix string, node int64,
	change func(View) (t store.Txn, due bool, err error), guards ...store.Condition,
) error {
	once := func() error {
		all, err := readTable(ctx, s, prefix)
		if err != nil {
			return err
		}
		v := all.view(node)
		if v.Horizon == never {
			return fmt.Errorf("the horizon of node ID %d can't be read", node)
		}
		t, due, err := change(v)
		if err == nil && due {
			t.If = append(t.If, store.Condition{Key: reportedKey(prefix, node), Version: v.Reported})
			_, err = s.Commit(ctx, t)
		}
		return err
	}
	for tries := 0; ; tries++ {
		err := once()
		switch {
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

// reservation returns the floor of a reservation, and its name, if there is one.
func reservation(v View) (floor int64, name string, ok bool) {
	by, ok := strings.CutPrefix(v.ReportedBy, reservedPrefix)
	name, at, is := strings.Cut(by, "@")
	floor, err := strconv.ParseInt(at, 10, 64)
	return floor, name, ok && is && err == nil
}
