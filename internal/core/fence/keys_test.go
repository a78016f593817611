package fence

import (
	"testing"

	"github.com/firn-id/firn/store"
)

// FuzzKeys reads whatever stands in the store. What is not ours is an error or left alone, never a lower horizon.
func FuzzKeys(f *testing.F) {
	f.Add("last_reported_time/7", []byte("1792000000000 ABC"))
	f.Add("last_reported_time/7", []byte("1792000000000 ABC D"))
	f.Add("last_reported_time/7", []byte("1792000000000 ABC E"))
	f.Add("live/7", []byte("ABC 1792000000000 host, process 1"))
	f.Add("live/-7", []byte(""))
	f.Add("last_reported_time/9223372036854775808", []byte("-1 ABC"))
	f.Add("last_reported_time/007", []byte("9223372036854775807"))
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		key := prefix + name
		node, ok := nodeOf(prefix, key)
		if ok && key != liveKey(prefix, node) && key != reportedKey(prefix, node) {
			t.Fatalf("%q is taken for a key of node ID %d", key, node)
		}
		v := View{Horizon: 5}
		if err := v.put(prefix, store.KV{Key: key, Value: value, Version: 3}, "ABC", func(stamp string) bool {
			return stamp == "D"
		}); err == nil && v.Horizon < 0 {
			t.Fatalf("%q = %q is the horizon %d", key, value, v.Horizon)
		}
		if v.LiveMine && v.ReportedMine || v.ReportedMine && v.ReportedCopy {
			t.Fatalf("%q is both keys, or written by both", key)
		}
	})
}
