package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/internal/server"
)

// buckets are the upper bounds of the latencies that are told apart, in seconds. A call costs 25 us and waits, if at all, for
// the clock (milliseconds) or for a node ID (10 s at the most).
var buckets = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10,
}

// requests count calls. It is a server.Meter.
type requests struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newRequests() requests {
	return requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: requestsTotal.name, Help: requestsTotal.help}, requestsTotal.labels),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: requestDuration.name, Help: requestDuration.help, Buckets: buckets,
		}, requestDuration.labels),
	}
}

// Call implements server.Meter. What was never called has no series.
func (r *requests) Call(protocol, name string) server.Call {
	c := &call{others: map[server.Code]prometheus.Counter{}}
	c.counter = func(code server.Code) prometheus.Counter {
		return r.total.WithLabelValues(protocol, name, string(code))
	}
	c.ok = sync.OnceValue(func() prometheus.Counter { return c.counter(server.OK) })
	c.latency = sync.OnceValue(func() prometheus.Observer { return r.took.WithLabelValues(protocol, name) })
	return c
}

// call counts the calls of one name over one protocol. What it needs it looks up once.
type call struct {
	ok      func() prometheus.Counter
	latency func() prometheus.Observer
	counter func(server.Code) prometheus.Counter

	mu     sync.Mutex // guards others
	others map[server.Code]prometheus.Counter
}

// Done implements server.Call.
func (c *call) Done(code server.Code, n int, took time.Duration) {
	switch {
	case code != server.OK:
		c.other(code).Add(float64(n))
	case n == 1:
		c.ok().Inc()
	default:
		c.ok().Add(float64(n))
	}
	if took >= 0 {
		c.latency().Observe(took.Seconds())
	}
}

func (c *call) other(code server.Code) prometheus.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	counter := c.others[code]
	if counter == nil {
		counter = c.counter(code)
		c.others[code] = counter
	}
	return counter
}
