package fence

import (
	"context"
	"time"

	"github.com/firn-id/firn/store"
)

// table holds the views of all node IDs of a sequencer that were ever used, read at one moment.
type table map[int64]*View

// readTable reads all keys below prefix at one moment. A node ID whose horizon can't be read gets the horizon
// never, so that nobody can claim it.
func readTable(ctx context.Context, s store.Store, prefix string) (table, error) {
	all, err := s.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	return tableOf(prefix, all), nil
}

func tableOf(prefix string, all []store.KV) table {
	t := table{}
	for _, kv := range all {
		node, ok := nodeOf(prefix, kv.Key)
		if !ok {
			continue
		}
		v := t[node]
		if v == nil {
			v = new(View)
			t[node] = v
		}
		if err := v.put(prefix, kv, "", nil); err != nil {
			v.Horizon = never
		}
	}
	return t
}

// never is a horizon that no clock reaches: every clock is behind it by more than unreadable.
const (
	never      = int64(1)<<62 - 1
	unreadable = 200 * 365 * 24 * time.Hour
)

// view returns the view of a node ID, which is zero if it was never used.
func (t table) view(node int64) View {
	if v := t[node]; v != nil {
		return *v
	}
	return View{}
}

// readView reads the two keys of a node ID, one after the other: a write under both versions is applied only if they
// are what the store has at one moment. It reads no others, so that a claim costs as much among any number of node IDs.
func readView(ctx context.Context, s store.Store, prefix string, node int64) (View, error) {
	var all []store.KV
	for _, key := range []string{liveKey(prefix, node), reportedKey(prefix, node)} {
		kv, err := s.Get(ctx, key)
		if err != nil {
			return View{}, err
		}
		if kv.Version != 0 {
			all = append(all, kv)
		}
	}
	return tableOf(prefix, all).view(node), nil
}

// free returns nil for the view of a node ID that nobody holds. A *HeldError is returned when an owner holds it, and a
// *ClockBehindError when its floor lies further ahead of now than maxWait.
func (v View) free(prefix string, node, now int64, maxWait time.Duration) error {
	switch {
	case v.Live != 0:
		return &HeldError{Node: node, Live: liveKey(prefix, node), by: v.LiveBy}
	case millis(v.Horizon-now) > maxWait:
		_, _, _, reserved := reservation(v)
		return &ClockBehindError{node, millis(v.Horizon - now), maxWait, reserved}
	}
	return nil
}

// millis returns n milliseconds as a duration, limited to the longest duration.
func millis(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(max(min(n, most), -most)) * time.Millisecond
}
