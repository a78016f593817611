package cluster

import (
	"fmt"
	"slices"
	"testing"
)

// TestCalled: a joiner's target and its watcher are called by each of its calls, all in a small cluster, and each in a
// large one after some calls; never more than 16.
func TestCalled(t *testing.T) {
	for _, many := range []int{0, 1, 2, 5, 16, 100} {
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
		var needed []string
		if j, ok := v.Pending("me"); ok {
			needed = []string{j.Target, v.peer(j.Target).watcher}
		}
		everybody := append(v.Members(), slices.Collect(keys(v.joins))...)
		everybody = slices.DeleteFunc(everybody, func(id string) bool { return id == "me" })
		ever := map[string]bool{}
		for range 50 {
			apply(PeerGC{By: "me"})
			called := Called(v, "me")
			if len(called) != min(len(everybody), maxCalled) {
				t.Errorf("of %d, %d are called: %v", len(everybody), len(called), called)
			}
			for _, id := range needed {
				if !slices.Contains(called, id) {
					t.Errorf("%s is not called, and the joiner needs it: %v", id, called)
				}
			}
			for i, id := range called {
				ever[id] = true
				if id == "me" || slices.Contains(called[:i], id) {
					t.Errorf("%s is called: %v", id, called)
				}
			}
		}
		for _, id := range everybody {
			if !ever[id] {
				t.Errorf("of %d, %s is never called", many, id)
			}
		}
	}
}
