package fence

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/firn-id/firn/store"
)

// Owner is the present or last owner of a node ID.
type Owner struct {
	Node  int64
	Live  bool      // an owner holds it
	Since time.Time // when it was claimed, by the owner's clock; the zero time when nobody holds it
	Name  string    // its Config.Owner; empty when nobody holds it

	// Horizon is the last one written: the zero time if there was none, and far in the future if it is
	// unreadable.
	Horizon time.Time

	// Reserved: Reserve has taken it, and the horizon is that of the owner before.
	Reserved bool
}

// Owners returns the present or last owner of each node ID below a prefix, read at one moment, in ascending order
// of the node IDs. The error is that of the store.
func Owners(ctx context.Context, s store.Store, prefix string) ([]Owner, error) {
	all, err := s.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var owners []Owner
	for node, v := range tableOf(prefix, all) {
		o := Owner{Node: node, Live: v.Live != 0}
		horizon, _, _, reserved := reservation(*v)
		if o.Reserved = reserved; horizon != 0 {
			o.Horizon = time.UnixMilli(horizon)
		}
		if i, ok := slices.BinarySearchFunc(all, liveKey(prefix, node), compareKey); ok {
			o.Since, o.Name = readLive(all[i].Value)
		}
		owners = append(owners, o)
	}
	slices.SortFunc(owners, func(a, b Owner) int { return cmp.Compare(a.Node, b.Node) })
	return owners, nil
}

// Latest returns the node ID below a prefix that was used furthest, with its horizon and nothing else; the zero Owner
// when none was. One that can't be read, or is after the year 9999, does not count. It reads one key of each node ID.
// The error is that of the store.
func Latest(ctx context.Context, s store.Store, prefix string) (last Owner, err error) {
	all, err := s.List(ctx, prefix+reportedKeys)
	if err != nil {
		return Owner{}, err
	}
	for node, v := range tableOf(prefix, all) {
		horizon, _, _, _ := reservation(*v)
		at := time.UnixMilli(horizon)
		if horizon != 0 && at.After(last.Horizon) && at.Year() <= 9999 {
			last = Owner{Node: node, Horizon: at}
		}
	}
	return last, nil
}

func compareKey(kv store.KV, key string) int { return cmp.Compare(kv.Key, key) }
