package client

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

// The clock that ages IDs counts what only the wall clock has counted, and goes back for no clock.
func TestElapsedCountsWhatTheMachineSlept(t *testing.T) {
	const ms = int64(time.Millisecond)
	var monotonic, wall int64
	e := &elapsed{read: func() (int64, int64) { return monotonic, wall }}
	for _, c := range []struct {
		why             string
		monotonic, wall int64 // milliseconds that each counts
		want            int64 // milliseconds
	}{
		{"both tick", 10, 10, 10},
		{"they tick differently", 10, 11, 20},
		{"the machine sleeps", 0, 5000, 5020},
		{"the wall clock steps back", 10, -3_600_000, 5030},
		{"the machine sleeps for less than that step", 0, 1000, 6030},
		{"the wall clock is put right", 10, 3_600_010, 3_606_040},
		{"a resumed snapshot", 0, 86_400_000, 90_006_040},
	} {
		monotonic, wall = monotonic+c.monotonic*ms, wall+c.wall*ms
		if got := e.Now(); got != c.want*ms {
			t.Fatalf("%s: %v; want %v", c.why, time.Duration(got), time.Duration(c.want*ms))
		}
	}
}

// IDs that were fetched before the machine slept, or before a snapshot of its memory was resumed, are not given.
func TestPrefetchedIDsDoNotOutliveASleep(t *testing.T) {
	for _, calls := range []int{1, 1000} { // with the true clock, and with the one that ticks
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(map[string]behaviour{"a": gives(time.Millisecond)})
			c := f.of(t, "a", WithPrefetch(5000, 2*time.Second))
			var asleep atomic.Int64
			k := c.standard.stock
			inner := k.elapsed.read
			k.elapsed.read = func() (int64, int64) { m, w := inner(); return m, w + asleep.Load() }
			for range calls {
				mustNext(t, c)
			}
			before := []firn.ID{mustNext(t, c)}
			synctest.Wait()
			asleep.Store(int64(3 * time.Second))
			time.Sleep(time.Millisecond) // a tick
			after := make([]firn.ID, 10)
			after[0] = mustNext(t, c)
			if err := c.Fill(t.Context(), after[1:]); err != nil {
				t.Fatal(err)
			}
			slices.Sort(after)
			if requests := f.requests("a"); requests < 2 || after[0] < before[0]+1000 {
				t.Errorf("%d requests; %d was given from memory after %d", requests, after[0], before[0])
			}
		})
	}
}
