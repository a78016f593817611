package fence

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/firn-id/firn/store"
)

// table is what is known of all node IDs of a sequencer at one moment: of those that were
// ever used.
type table map[int64]*View

// readTable reads all keys below prefix at one moment. Node IDs whose horizon can't be read are
// given the last horizon there is, so that nobody goes below it.
func readTable(ctx context.Context, s store.Store, prefix string) (table, error) {
	all, err := s.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
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
		if err := v.put(prefix, kv, ""); err != nil {
			v.Horizon = never
		}
	}
	return t, nil
}

// never is a horizon that no clock reaches.
const never = int64(1)<<62 - 1

// checkClock compares a clock with those of the owners that are alive, which have written
// horizons ahead of theirs; before is not one of them. A *ClockAheadError is returned when now is further
// ahead than maxSkew of the median of them.
func (t table) checkClock(now int64, maxSkew time.Duration, before *Fence) error {
	var horizons []int64
	for node, v := range t {
		own := before != nil && before.node == node && before.State().Live == v.Live
		if v.Live != 0 && !own && v.Horizon != never {
			horizons = append(horizons, v.Horizon)
		}
	}
	if len(horizons) == 0 {
		return nil
	}
	slices.Sort(horizons)
	median := horizons[(len(horizons)-1)/2]
	if ahead := millis(now - median); ahead > maxSkew {
		return &ClockAheadError{Ahead: ahead, MaxSkew: maxSkew, Owners: len(horizons)}
	}
	return nil
}

// choose picks a free node ID from first to last: one that was never used, or else the least
// recently used; among those that are alike, and among the older half of those that
// are not, by chance, so that many who choose at once don't all choose the same.
//
// A *NoNodeError is returned when none is free, and a *ClockBehindError when the floors of all that are
// free lie further ahead of now than maxWait.
func (t table) choose(first, last, now int64, maxWait time.Duration) (node int64, v View, err error) {
	var used, free []int64 // free: with a floor that is past
	behind := never
	var soon int64 // the free one whose floor is the least ahead
	for n, v := range t {
		if n < first || n > last {
			continue
		}
		used = append(used, n)
		if v.Live != 0 {
			continue
		}
		if v.Horizon <= now {
			free = append(free, n)
		}
		if ahead := v.Horizon - now; ahead < behind {
			soon, behind = n, ahead
		}
	}
	if size := last - first + 1; int64(len(used)) < size {
		return t.neverUsed(first, last, used), View{}, nil
	}
	if len(free) > 0 {
		slices.SortFunc(free, func(a, b int64) int { return cmp.Compare(t[a].Reported, t[b].Reported) })
		node = free[rand.IntN((len(free)+1)/2)]
		return node, *t[node], nil
	}
	switch {
	case behind == never:
		return 0, View{}, &NoNodeError{First: first, Last: last}
	case millis(behind) > maxWait:
		return 0, View{}, &ClockBehindError{First: first, Last: last, Behind: millis(behind), MaxWait: maxWait}
	}
	return soon, *t[soon], nil
}

// neverUsed picks by chance one of the node IDs from first to last that are not among used.
func (t table) neverUsed(first, last int64, used []int64) int64 {
	slices.Sort(used)
	nth := rand.Int64N(last - first + 1 - int64(len(used))) // of those that are not used
	node := first + nth
	for _, u := range used {
		if u > node {
			break
		}
		node++
	}
	return node
}

// millis is a number of milliseconds as a duration, and the longest duration when it is more.
func millis(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(max(min(n, most), -most)) * time.Millisecond
}
