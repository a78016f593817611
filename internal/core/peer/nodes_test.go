package peer

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// record returns what the store keeps about a node; the zero value: nothing.
func (n *node) record(name string) NodeRecord {
	n.world.t.Helper()
	all, err := n.mem.Load().Nodes(n.world.t.Context())
	if err != nil {
		n.world.t.Fatal(err)
	}
	for _, r := range all {
		if r.Name == name {
			return r
		}
	}
	return NodeRecord{}
}

func (n *node) isNamed(want string, within time.Duration) {
	n.world.t.Helper()
	for deadline := time.Now().Add(within); n.mem.Load().Name() != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			n.world.t.Fatalf("%s is named %s, want %s", n.name, n.mem.Load().Name(), want)
		}
	}
}

func at(name, place string) func(*setup) {
	return func(c *setup) { c.Owner, c.Host, c.Place = name, "host", place }
}

// Two nodes never have one name for long. Each keeps its own over restarts, also when its former pulse is still there.
func TestNamesAreUniqueAndStay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", at("ids", ":8080"))
		a.ready(time.Minute)
		b := w.start("b", at("ids", ":8081"))
		b.ready(time.Minute)
		a.isNamed("ids", 0)
		b.isNamed("ids-2", 0)
		b.crash()
		again := w.start("again", at("ids", ":8081"))
		again.ready(time.Minute)
		again.isNamed("ids-2", 0)
		a.crash()
		time.Sleep(2 * window) // until its pulse is gone
		// the same place as one that lives, as after a copy of its machine
		first := w.start("first", at("ids", ":8081"))
		first.ready(time.Minute)
		first.isNamed("ids", window) // which is free by now
		again.isNamed("ids-2", 0)
		time.Sleep(2 * window)
		pulses, err := first.mem.Load().Pulses(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range pulses {
			names = append(names, p.Owner)
		}
		if slices.Sort(names); !slices.Equal(names, []string{"ids", "ids-2"}) {
			t.Errorf("the pulses have the names %q", names)
		}
	})
}

// The store keeps when a node was seen last, under which member IDs, how far it may have given IDs, and whether it
// left; until somebody says to forget it, or for a day.
func TestTheStoreKeepsWhoIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.start("a"), w.start("b", at("b", "b")), w.start("c", at("c", "c"))
		a.ready(time.Minute)
		b.ready(time.Minute)
		c.ready(time.Minute)
		first := b.mem.Load().ID()
		w.service.Expire(b.session())
		time.Sleep(3 * window)
		b.ready(time.Minute)
		lives := a.record("b")
		if !slices.Equal(lives.Members, []string{first, b.mem.Load().ID()}) || lives.Host != "host" ||
			time.Since(lives.Seen) > window {
			t.Errorf("of a node that joined again: %+v", lives)
		}
		if err := a.mem.Load().Forget(t.Context(), "b"); !errors.Is(err, ErrAlive) {
			t.Errorf("forgetting a node that lives: %v", err)
		}
		died := time.Now()
		b.crash()
		c.leave()
		time.Sleep(time.Hour)
		lost, left := a.record("b"), a.record("c")
		if !lost.Left.IsZero() || died.Sub(lost.Seen) > window || lost.Reserved.Before(died) ||
			lost.Reserved.After(died.Add(2*window)) {
			t.Errorf("of one that crashed at %v: %+v", died, lost)
		}
		if left.Left.Sub(died).Abs() > window {
			t.Errorf("of one that left at %v: %+v", died, left)
		}
		if err := a.mem.Load().Forget(t.Context(), "b"); err != nil || a.record("b").Name != "" {
			t.Errorf("forgotten: %v, %+v", err, a.record("b"))
		}
		if err := a.mem.Load().Forget(t.Context(), "b"); !errors.Is(err, ErrNoNode) {
			t.Errorf("forgetting it again: %v", err)
		}
		time.Sleep(keptNodes)
		if left := a.record("c"); left.Name != "" {
			t.Errorf("after a day there is %+v", left)
		}
		if a.record("a").Name == "" {
			t.Error("the one that lives is forgotten")
		}
	})
}
