package load_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/ops/load"
)

// With a rate, a run makes calls when they are due, and not faster.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := result(t, load.Plan{
			Connect:     func(int) (load.Connection, error) { return slow(3 * time.Millisecond), nil },
			Connections: 2, Batch: 10, Rate: 1000, Duration: 5 * time.Second,
		})
		if r.IDs != 5000 || r.Calls != 500 || r.Unsent != 0 {
			t.Errorf("%+v; want 5000 IDs by 500 calls, and none unsent", r)
		}
		if at := r.Latency.Max(); at > 3010*time.Microsecond {
			t.Errorf("the slowest call took %v, want about 3ms", at)
		}
	})
}

// With a rate, latencies count from when calls were due, not from when a connection was free to make them, and so
// show a server that does not keep up. Without a rate they don't.
func TestLatencyCountsTheWaitForAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := load.Plan{
			Connect:     func(int) (load.Connection, error) { return slow(100 * time.Millisecond), nil },
			Connections: 1, Batch: 1, Rate: 20, Duration: 10 * time.Second,
		}
		r := result(t, p)
		if r.Calls != 100 || r.Unsent != 100 {
			t.Errorf("%d calls, %d unsent; want 100 of each", r.Calls, r.Unsent)
		}
		if at := r.Latency.Max(); at < 4900*time.Millisecond || at > 5100*time.Millisecond {
			t.Errorf("the slowest call took %v; want about 5s: it was due long before", at)
		}
		p.Rate = 0
		if r := result(t, p); r.Latency.Max() > 101*time.Millisecond || r.Unsent != 0 {
			t.Errorf("without a rate the slowest call took %v, and %d were unsent; want 100ms and none",
				r.Latency.Max(), r.Unsent)
		}
	})
}

func TestBands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := []time.Duration{
			150 * time.Microsecond, 150 * time.Microsecond, 3 * time.Millisecond,
			40 * time.Millisecond,
		}
		r := result(t, load.Plan{
			Connect:     func(i int) (load.Connection, error) { return slow(times[i]), nil },
			Connections: 4, Batch: 1, Duration: 100 * time.Microsecond, Grace: time.Second,
		})
		bands := r.Latency.Bands()
		counts := map[time.Duration]int64{}
		for i, b := range bands {
			counts[b.UpTo] = b.Calls
			if i > 0 && b.Above != bands[i-1].UpTo {
				t.Errorf("a band above %v follows one up to %v", b.Above, bands[i-1].UpTo)
			}
		}
		if len(bands) != 8 || counts[200*time.Microsecond] != 2 || counts[5*time.Millisecond] != 1 ||
			counts[50*time.Millisecond] != 1 {
			t.Errorf("the bands are %v", bands)
		}
		if p50, p99 := r.Latency.At(50),
			r.Latency.At(99); p50 != 150*time.Microsecond || p99 < 39*time.Millisecond || p99 > 41*time.Millisecond {
			t.Errorf("half take %v, 99%% %v; want 150µs and 40ms", p50, p99)
		}
	})
}

// A run gives up calls without an answer after the grace.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := result(t, load.Plan{
			Connect:     func(int) (load.Connection, error) { return slow(time.Minute), nil },
			Connections: 2, Batch: 1, Duration: time.Second,
		})
		if len(r.Errors) != 1 || r.Errors[0].Code != "timeout" || r.Errors[0].Calls != 2 || r.Took < 3*time.Second ||
			r.Took > 3100*time.Millisecond {
			t.Errorf("%+v; want 2 timeouts after 3s", r)
		}
	})
}
