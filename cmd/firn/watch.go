package main

import "github.com/firn-id/firn/internal/server/metrics"

// newMetrics are those of this program.
func newMetrics() *metrics.Metrics {
	v := readVersion()
	return metrics.New(metrics.Build{Version: v.Version, Revision: v.Revision, Go: v.Go})
}

// watch adds what there is to see of the node.
func (n *node) watch() {
	n.metrics.Watch(metrics.Node{
		Service: n.service, Member: n.member.Load, Log: n.member.Log, Doors: n.doors, Window: n.window, TLS: n.tls,
	})
}
