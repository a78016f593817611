package peer

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/internal/core/cluster"
)

// TestTwoTakeAPrefixAtOnce: one gets it, and the other's error names the sequencer that has it.
func TestTwoTakeAPrefixAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		d := cluster.Define(layout)
		d.Prefix = "inv"
		wins := map[string]int{}
		for range 300 {
			names, errs := []string{"invoices", "mine"}, [2]error{}
			var both sync.WaitGroup
			for i, n := range []*node{a, b} {
				both.Go(func() { _, errs[i] = n.mem.Load().Create(t.Context(), names[i], d) })
			}
			both.Wait()
			if errs[1] == nil {
				names[0], names[1], errs[0], errs[1] = names[1], names[0], errs[1], errs[0]
			}
			var taken *cluster.PrefixError
			if errs[0] != nil || !errors.As(errs[1], &taken) ||
				*taken != (cluster.PrefixError{Prefix: "inv", Holder: names[0]}) {
				t.Fatalf("%s: %v, and %s: %v", names[0], errs[0], names[1], errs[1])
			}
			if created, err := a.mem.Load().Create(t.Context(), names[0], d); created || err != nil {
				t.Fatalf("once more: %v %v", created, err)
			}
			if err := b.mem.Load().Destroy(t.Context(), names[0]); err != nil {
				t.Fatal(err)
			}
			wins[names[0]]++
		}
		if len(wins) != 2 {
			t.Errorf("the wins are %v: it was no race", wins)
		}
	})
}

// TestNoQuotaIsExceededTogether, through however many members, and however often it is tried.
func TestNoQuotaIsExceededTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.startMany("n", 3)
		few := cluster.Quota{Names: []string{"inv-*"}, Most: 5}
		var all sync.WaitGroup
		var created atomic.Int64
		try := func(n *node, name string) {
			is, err := n.mem.Load().Create(t.Context(), name, cluster.Define(layout), few)
			var full *cluster.QuotaError
			switch {
			case is && err == nil:
				created.Add(1)
			case !errors.As(err, &full) || full.There != few.Most:
				t.Errorf("%s: %v %v", name, is, err)
			}
		}
		for i := range 20 {
			for j, n := range nodes {
				all.Go(func() { try(n, fmt.Sprintf("inv-%d-%d", i, j)) })
			}
		}
		all.Wait()
		if n := few.Count(w.value()); created.Load() != few.Most || n != few.Most {
			t.Errorf("%d were created, and %d are there; want %d", created.Load(), n, few.Most)
		}
		before, reads := w.value().Position(), nodes[0].reads()
		for i := range 1000 {
			try(nodes[0], fmt.Sprint("inv-", i))
		}
		if after, n := w.value().Position(), reads.Load(); after != before || n > vainMost+1 {
			t.Errorf("of what is refused the log grew from %d to %d, and was read %d times", before, after, n)
		}
		for _, n := range nodes {
			if _, err := n.mem.Load().Create(t.Context(), "orders", cluster.Define(layout)); err != nil {
				t.Error(err)
			}
		}
	})
}
