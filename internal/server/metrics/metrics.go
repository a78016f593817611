// Package metrics shows a node to Prometheus: what it gives out, how its calls fare, and where it stands with the clock, the
// store and the cluster. Everything but the calls is read when it is asked for, from what counts it anyway, so that a node
// which nobody watches does nothing for it. docs/metrics.md lists all series.
package metrics

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Build is which program it is.
type Build struct {
	Version  string // such as v0.1.0
	Revision string // of the source; empty where it is not known
	Go       string // the version of Go that built it
}

// Metrics are those of one node. It is the server.Meter of its service. Make it with New. Its methods are safe for concurrent
// use.
type Metrics struct {
	registry *prometheus.Registry
	requests
}

// New returns metrics of the process, and of no node yet.
func New(b Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), requests: newRequests()}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.total, m.took, buildInfo(b),
	)
	return m
}

// Watch adds the metrics of a node. It panics when there is one already.
func (m *Metrics) Watch(n Node) { m.registry.MustRegister(&watcher{n, newProbe()}) }

// Gatherer gives out what there is to see.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Handler answers with all metrics, in the format that is asked for. What can't be collected is left out, and told to the log.
// The store is asked once in an answer, and waited for a second at most.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling: promhttp.ContinueOnError,
	})
}

// buildInfo is always 1; what it tells is in its labels.
func buildInfo(b Build) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: build.name, Help: build.help,
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	info.Set(1)
	return info
}
