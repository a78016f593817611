//go:build unix

package scale

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/testenv"
)

// Members of a quorum write their horizons with one transaction each third of a window, and the quorum writes nothing
// of its own meanwhile.
func TestRenewals(t *testing.T) {
	testenv.Slow(t)
	const size, window, windows = 16, 3 * time.Second, 3
	stores := newQuorum(t, 3).open()
	var all sync.WaitGroup
	for i := range size {
		all.Go(func() {
			m, err := peer.Join(t.Context(), stores[i%len(stores)],
				peer.Options{Owner: fmt.Sprint("member ", i), Window: window})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(m.Leave)
			s, err := m.EnsureSequencer(t.Context(), "orders", cluster.Define(firn.Default))
			if err == nil {
				_, err = s.Next(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	before, began := count(t), time.Now()
	time.Sleep(windows * window) // this is how long it counts
	writes, rounds := count(t).writes-before.writes, time.Since(began).Seconds()/(window/3).Seconds()
	t.Logf("%.2f transactions per member and third of a window", writes/size/rounds)
	if most := size * (rounds + 1); writes > most {
		t.Errorf("%v transactions of %d members in %.1f rounds; want at most %.0f", writes, size, rounds, most)
	}
}
