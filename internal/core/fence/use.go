package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// ErrNotReserved is returned by Use when the node ID is not reserved under the number.
var ErrNotReserved = errors.New("the node ID is not reserved under this number")

// Time is the ID time of a reservation that nobody has used: from From on. Note is what the Use before has left,
// 1 to 200 bytes without spaces; empty: there was none.
type Time struct {
	From time.Time
	Note string
}

// Use takes ID time of a reservation for its caller, who alone has what lies between the two: take gets the time that
// is left, and returns what is left then, which begins no earlier. Each call is a new owner in the sense of the proof,
// whose floor and horizon these two are: it is not extended, and the horizon may lie in the past. It changes nothing if
// take returns an error, which Use returns, or the same Time.
//
// Known is the version that an earlier Use of this node ID has returned, or zero; store.ErrRolledBack is returned when
// the store no longer has it. ErrNotReserved is returned when the node ID is not reserved under the number, and
// ErrClosed when a guard no longer holds. While the outcome of an attempt is in doubt or the store is unavailable, Use
// tries again until ctx ends; take may be called again then. Otherwise the error is that of the store or of ctx, and
// the time may be taken, for nobody.
func Use(ctx context.Context, s store.Store, prefix string, node, number int64, known store.Version,
	take func(Time) (Time, error), guards ...store.Condition,
) (store.Version, error) {
	key := reportedKey(prefix, node)
	var t store.Txn
	for tries := 0; ; tries++ {
		kv, err := s.Get(ctx, key)
		if err == nil && kv.Version < known {
			err = fmt.Errorf("%w: the key %q has the version %d, and had %d", store.ErrRolledBack, key, kv.Version,
				known)
		}
		if err == nil {
			switch {
			case t.Then != nil && bytes.Equal(kv.Value, t.Then[0].Value): // the attempt before was applied
				return kv.Version, nil
			case t.Then == nil || kv.Version != known:
				if t, err = use(kv, number, take, guards); err != nil || t.Then == nil {
					return kv.Version, err
				}
			}
			known = kv.Version
			var version store.Version
			if version, err = s.Commit(ctx, t); err == nil {
				return version, nil
			}
		}
		switch {
		case errors.Is(err, store.ErrConflict):
			if err := checkGuards(ctx, s, guards); errors.Is(err, ErrClosed) {
				return 0, err
			}
		case errors.Is(err, store.ErrAmbiguous), errors.Is(err, store.ErrUnavailable):
		default:
			return 0, err
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return 0, err
		}
	}
}

// use returns the transaction that takes time of a reservation whose key holds that, or none.
func use(kv store.KV, number int64, take func(Time) (Time, error), guards []store.Condition) (t store.Txn, err error) {
	if kv.Version == 0 {
		return t, ErrNotReserved
	}
	floor, by, note, ok, err := reservationIn(kv)
	if err != nil {
		return t, err
	}
	if !ok || by != number {
		return t, ErrNotReserved
	}
	before := Time{time.UnixMilli(floor), note}
	after, err := take(before)
	switch left := roundUp(after.From); {
	case err != nil, after == before:
		return t, err
	case left < floor || len(after.Note) > 200 || strings.ContainsFunc(after.Note, unicode.IsSpace):
		return t, fmt.Errorf("the time before %v of a reservation is taken, and %v with the note %q is to be left",
			before.From, after.From, after.Note)
	default:
		t.If = append(slices.Clone(guards), store.Condition{Key: kv.Key, Version: kv.Version})
		t.Then = []store.Op{
			store.Put(kv.Key, reportedValue(endOfTime, reservedBy(number, left, after.Note), fresh.Text())),
		}
		return t, nil
	}
}
