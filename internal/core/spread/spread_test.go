package spread_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/spread"
)

func TestPick(t *testing.T) {
	for n := range 10 {
		for range 1000 {
			if i := spread.Pick(n); i < 0 || i >= max(n, 1) {
				t.Fatalf("Pick(%d) is %d", n, i)
			}
		}
	}
}

// Among goroutines that run at the same time each number comes up.
func TestPickSpreads(t *testing.T) {
	const n = 2
	if runtime.GOMAXPROCS(0) < n {
		t.Skip("one processor")
	}
	var seen [n]atomic.Bool
	var all sync.WaitGroup
	deadline := time.Now().Add(10 * time.Second)
	for range 16 {
		all.Go(func() {
			for (!seen[0].Load() || !seen[1].Load()) && time.Now().Before(deadline) {
				seen[spread.Pick(n)].Store(true)
			}
		})
	}
	all.Wait()
	for i := range seen {
		if !seen[i].Load() {
			t.Errorf("Pick(%d) was never %d", n, i)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for b.Loop() {
		spread.Pick(4)
	}
}
