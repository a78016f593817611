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
// that nobody claims the node ID after it. Its operation ID is made of its number, of the floor that it began at or
// that a Use has moved, and of the note of that Use.
// Of two reservations of a node ID the one with the greater number is the later one.
const (
	reservedPrefix = "reserved-"
	endOfTime      = int64(253402300799999) // 9999-12-31: later ones can't be read, see Owner
)

// ErrSuperseded is returned by Reserve when a later reservation has the node ID.
var ErrSuperseded = errors.New("the node ID is reserved again")

// Reserve takes node IDs from their owners, and from earlier reservations, and keeps them from all later owners. It
// returns the instant from which on whoever has them may use them, notBefore or later; what came before may use the
// time before. It returns the same when they have the reservation of this number.
//
// While the outcome of an attempt is in doubt or the store is unavailable, Reserve tries again until ctx ends.
// ErrClosed is returned when a guard no longer holds, and ErrSuperseded when a reservation with a greater number has
// one of the node IDs. An error is also returned when a horizon can't be read. Otherwise the error is that of the store
// or of ctx.
func Reserve(ctx context.Context, s store.Store, prefix string, nodes []int64, number int64, notBefore time.Time,
	guards ...store.Condition,
) (from time.Time, err error) {
	begins := map[int64]int64{} // by the latest attempt: an owner before may have released less than it had
	change := func(node int64, v View) (horizon int64, operation string, due bool, err error) {
		floor, by, _, reserved := reservation(v)
		switch {
		case reserved && by > number:
			return 0, "", false, ErrSuperseded
		case reserved && by == number:
			begins[node] = floor
			return 0, "", false, nil
		}
		floor = max(floor, roundUp(notBefore))
		begins[node] = floor
		return endOfTime, reservedBy(number, floor, ""), true, nil
	}
	err = rewrite(ctx, s, prefix, nodes, change, guards...)
	var last int64
	for _, floor := range begins {
		last = max(last, floor)
	}
	return time.UnixMilli(last), err
}

// Free ends the reservation of this number: the next owner of each node ID begins at end, or where the one before the
// reservation stopped, if that is later. It also ends what of a Reserve is still under way. A node ID that has a later
// reservation is left to that. The other errors are those of Reserve.
func Free(ctx context.Context, s store.Store, prefix string, nodes []int64, number int64, end time.Time) error {
	return rewrite(ctx, s, prefix, nodes, func(_ int64, v View) (horizon int64, operation string, due bool, err error) {
		floor, by, _, reserved := reservation(v)
		return max(floor, roundUp(end)), fresh.Text(), !reserved || by <= number, nil
	})
}

// FreeAll ends every reservation below a prefix as if nothing had been used of it. It is for those that are left when
// none can be in use. Its errors are those of Reserve.
func FreeAll(ctx context.Context, s store.Store, prefix string, guards ...store.Condition) error {
	owners, err := Owners(ctx, s, prefix)
	if err != nil {
		return err
	}
	var nodes []int64
	for _, o := range owners {
		if o.Reserved {
			nodes = append(nodes, o.Node)
		}
	}
	return rewrite(ctx, s, prefix, nodes, func(_ int64, v View) (horizon int64, operation string, due bool, err error) {
		floor, _, _, reserved := reservation(v)
		return floor, fresh.Text(), reserved, nil
	}, guards...)
}

// FreeLeft ends the reservation of a node ID as if nothing had been used of it. It is for one that was released before:
// a Reserve can come too late, and end before it sees that. Sure is called between reading the reservation and ending
// it, and FreeLeft returns its error. Store.ErrConflict is returned when the node ID has changed meanwhile, or a guard
// no longer holds. The other errors are of the store, or that of ctx.
func FreeLeft(ctx context.Context, s store.Store, prefix string, node int64, sure func() error,
	guards ...store.Condition,
) error {
	kv, err := s.Get(ctx, reportedKey(prefix, node))
	if err != nil {
		return err
	}
	floor, _, _, reserved, err := reservationIn(kv)
	if err != nil || !reserved {
		return err
	}
	if err := sure(); err != nil {
		return err
	}
	t := store.Txn{If: append(slices.Clone(guards), store.Condition{Key: kv.Key, Version: kv.Version})}
	t.Then = []store.Op{store.Put(kv.Key, reportedValue(floor, fresh.Text(), fresh.Text()))}
	_, err = s.Commit(ctx, t)
	return err
}

// atOnce is how many node IDs rewrite puts in one transaction, with two operations for each.
const atOnce = store.MaxOps / 2

// rewrite puts what change returns as the horizon of each node ID, and who has written that, and takes the node ID from
// its owner. Every claim, extension and release puts the horizon, too, so none is applied that was sent before.
func rewrite(ctx context.Context, s store.Store, prefix string, nodes []int64,
	change func(node int64, v View) (horizon int64, operation string, due bool, err error), guards ...store.Condition,
) error {
	once := func(nodes []int64) error {
		all, err := readTable(ctx, s, prefix)
		if err != nil {
			return err
		}
		t := store.Txn{If: slices.Clone(guards)}
		for _, node := range nodes {
			v, key := all.view(node), reportedKey(prefix, node)
			if v.Horizon == never {
				return fmt.Errorf("the horizon of node ID %d can't be read", node)
			}
			horizon, operation, due, err := change(node, v)
			if err != nil {
				return fmt.Errorf("node ID %d: %w", node, err)
			}
			if !due {
				continue
			}
			t.If = append(t.If, store.Condition{Key: key, Version: v.Reported})
			t.Then = append(t.Then, store.Put(key, reportedValue(horizon, operation, fresh.Text())))
			if v.Live != 0 {
				t.Then = append(t.Then, store.Delete(liveKey(prefix, node)))
			}
		}
		if len(t.Then) > 0 {
			_, err = s.Commit(ctx, t)
		}
		return err
	}
	for some := range slices.Chunk(nodes, atOnce-len(guards)) {
		for tries := 0; ; tries++ {
			err := once(some)
			if err == nil {
				break
			}
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
	return nil
}

// reservedBy returns the operation ID of a reservation.
func reservedBy(number, floor int64, note string) string {
	by := fmt.Sprintf("%s%d@%d", reservedPrefix, number, floor)
	if note != "" {
		by += "!" + note
	}
	return by
}

// reservationIn returns the reservation that a key holds, as reservation does.
func reservationIn(kv store.KV) (floor, number int64, note string, ok bool, err error) {
	var v View
	if err := v.put("", store.KV{Key: reportedKeys, Value: kv.Value}, "", nil); err != nil {
		return 0, 0, "", false, err
	}
	floor, number, note, ok = reservation(v)
	return floor, number, note, ok, nil
}

// reservation returns the number of the reservation that has a node ID, if one has, where the time begins that nobody
// has used, and the note of the last Use; else the floor is the horizon of the last owner.
func reservation(v View) (floor, number int64, note string, ok bool) {
	by, ok := strings.CutPrefix(v.ReportedBy, reservedPrefix)
	if !ok {
		return v.Horizon, 0, "", false
	}
	by, note, _ = strings.Cut(by, "!")
	text, at, _ := strings.Cut(by, "@")
	number, err := strconv.ParseInt(text, 10, 64)
	floor, err2 := strconv.ParseInt(at, 10, 64)
	if err != nil || err2 != nil {
		return v.Horizon, 0, "", false // it is nobody's
	}
	return floor, number, note, true
}
