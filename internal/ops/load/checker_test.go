package load

import (
	"testing"

	"github.com/firn-id/firn"
)

func compose(t *testing.T, tick, node, sequence int64) firn.ID {
	t.Helper()
	id, err := firn.Default.Compose(firn.Parts{Tick: tick, Node: node, Sequence: sequence})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestCheckerCounts(t *testing.T) {
	c := NewChecker(firn.Default)
	want := func(what string, ids, duplicates, disorder int64) {
		t.Helper()
		if i, d, o := c.Counts(); i != ids || d != duplicates || o != disorder {
			t.Errorf("%s: %d IDs, %d duplicates, %d out of order; want %d, %d, %d", what, i, d, o, ids,
				duplicates, disorder)
		}
	}
	c.Begin().End([]firn.ID{compose(t, 5, 1, 0), compose(t, 5, 1, 1)})
	c.Begin().End([]firn.ID{compose(t, 4, 2, 0)})
	want("nodes whose clocks differ", 3, 0, 0)

	a, b := c.Begin(), c.Begin()
	b.End([]firn.ID{compose(t, 6, 1, 0)})
	a.End([]firn.ID{compose(t, 5, 1, 7)})
	want("calls at the same time", 5, 0, 0)

	c.Begin().End([]firn.ID{compose(t, 5, 1, 9)})
	want("an ID below one that had come before it was asked for", 6, 0, 1)
	c.Begin().End([]firn.ID{compose(t, 4, 2, 0)})
	want("an ID again", 7, 1, 2)
}

// The checker remembers an ID for at least a generation, and forgets it with the generation.
func TestCheckerForgets(t *testing.T) {
	c := NewChecker(firn.Default)
	c.most = 100
	lone := func(i int) []firn.ID { return []firn.ID{compose(t, int64(i), 1, 0)} }
	for i := range 1050 {
		c.Begin().End(lone(i))
		if size := len(c.young) + len(c.old); size > 200 {
			t.Fatalf("%d pages are kept", size)
		}
	}
	for _, i := range []int{1049, 1000, 950} {
		before := c.duplicates
		if c.Begin().End(lone(i)); c.duplicates != before+1 {
			t.Errorf("the ID %d before the latest was forgotten", 1049-i)
		}
	}
}
