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

// Each member has one turn in as many as there are members, also where numbers are negative.
func TestInTurn(t *testing.T) {
	var v Value
	if id := v.InTurn(1); id != "" {
		t.Errorf("of no members, it is the turn of %q", id)
	}
	for _, id := range []string{"b", "a", "c"} {
		v = joined(t, v, id)
	}
	for from := int64(-4); from < 4; from++ {
		all := []string{v.InTurn(from), v.InTurn(from + 1), v.InTurn(from + 2)}
		if first := v.InTurn(from + 3); first != all[0] {
			t.Errorf("after the turns of %v comes that of %s", all, first)
		}
		if slices.Sort(all); !slices.Equal(all, []string{"a", "b", "c"}) {
			t.Errorf("from %d on, the turns are those of %v", from, all)
		}
	}
}
