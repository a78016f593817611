// Package metrics exports the metrics of a node to Prometheus: its IDs, its calls, and the state of its clock,
// its store and its cluster. It counts calls as they end, and reads all other values when Prometheus asks.
// docs/metrics.md lists all series.
package metrics

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Build describes the program.
type Build struct {
	Version  string // such as v0.1.0
	Revision string // of the source; empty: unknown
	Go       string // the version of Go that built it
}

// Metrics has the metrics of one node. It is the calls.Meter of its service. Make it with New. Its methods are
// safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	requests
}

// New returns the metrics of the process, without those of a node.
func New(b Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), requests: newRequests()}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.total, m.took, buildInfo(b),
	)
	return m
}

// Watch adds the metrics of a node. A second call panics.
func (m *Metrics) Watch(n Node) {
	m.registry.MustRegister(&watcher{n, newProbe()})
}

// Handler serves all metrics, in the format that the client asks for. It omits and logs what it can't collect. It
// reads from the store at most once a second, and waits at most a second for it, and hardly for the machines of a
// quorum.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling: promhttp.ContinueOnError,
	})
}

// buildInfo is always 1; its labels describe the program.
func buildInfo(b Build) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: build.name, Help: build.help,
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	info.Set(1)
	return info
}
