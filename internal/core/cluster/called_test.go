package cluster

import (
	"fmt"
	"slices"
	"testing"
)

// TestCalled: all are called in a small cluster, and in a large one those on whom the join depends.
func TestCalled(t *testing.T) {
	for _, many := range []int{0, 1, 2, 5, 14, 15, 100} {
		var v Value
		apply := func(c Command) { v, _ = Apply(v, Entry{Position: v.position + 1, Command: c}) }
		for i := range many {
			id := fmt.Sprintf("m%03d", i)
			apply(PrepareJoin{Joiner: id})
			apply(NotifyWatchers{Joiner: id})
			apply(AcceptJoin{Joiner: id})
		}
		apply(PrepareJoin{Joiner: "me"})
		apply(PrepareJoin{Joiner: "other"})
		var want []string
		if j, ok := v.Pending("me"); ok {
			want = []string{j.Target, v.peer(j.Target).watcher}
		}
		others := append(v.Members(), slices.Collect(keys(v.joins))...)
		others = slices.DeleteFunc(others, func(id string) bool { return id == "me" })
		if v.Size()+v.joins.len() <= maxCalled {
			want = others
		}
		slices.Sort(want)
		want = slices.Compact(want)
		if called := Called(v, "me"); !slices.Equal(slices.Sorted(slices.Values(called)), want) {
			t.Errorf("of %d members, %v are called; want %v", many, called, want)
		}
		if called := Called(v, "nobody"); v.Size()+v.joins.len() > maxCalled && len(called) > 0 {
			t.Errorf("of %d members, one that has no pending join calls %v", many, called)
		}
	}
}
