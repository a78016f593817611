package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// buckets are the upper bounds of the buckets for latencies, in seconds. A call takes 25 µs, and may wait for the
// clock (milliseconds) or a node ID (at most 10 s).
var buckets = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10,
}

// requests count calls. It is a calls.Meter.
type requests struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newRequests() requests {
	return requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: requestsTotal.name, Help: requestsTotal.help},
			requestsTotal.labels),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: requestDuration.name, Help: requestDuration.help, Buckets: buckets,
		}, requestDuration.labels),
	}
}

// Call implements calls.Meter. A call that nobody made has no series.
func (r *requests) Call(protocol, name string) calls.Call {
	counter := func(code codes.Code) prometheus.Counter {
		return r.total.WithLabelValues(protocol, name, string(code))
	}
	return &call{
		ok:      sync.OnceValue(func() prometheus.Counter { return counter(codes.OK) }),
		failed:  counter,
		latency: sync.OnceValue(func() prometheus.Observer { return r.took.WithLabelValues(protocol, name) }),
	}
}

// call counts the calls of one name over one protocol. It looks up the series of successful calls once.
type call struct {
	ok      func() prometheus.Counter
	failed  func(codes.Code) prometheus.Counter
	latency func() prometheus.Observer
}

// Done implements calls.Call.
func (c *call) Done(code codes.Code, n int, took time.Duration) {
	switch {
	case code != codes.OK:
		c.failed(code).Add(float64(n))
	case n == 1:
		c.ok().Inc()
	default:
		c.ok().Add(float64(n))
	}
	if took >= 0 {
		c.latency().Observe(took.Seconds())
	}
}
