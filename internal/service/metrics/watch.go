package metrics

import (
	"context"
	"crypto/tls"
	"maps"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

// Node is the source of a node's metrics. Fields other than Service are optional: without one, its metrics are
// absent.
type Node struct {
	Service   *calls.Service
	Member    func() *peer.Member          // returns nil until it has joined
	Store     func() store.Store           // returns nil until it is open
	Listeners map[string]conns.Counter     // by address: public, admin, grpc, redis; read only
	Window    time.Duration                // see member.Options
	TLS       *tls.Config                  // with GetCertificate
	Disks     func() map[string]space.Room // where it writes, by the names of firn_disk_free_bytes
}

// watcher collects the metrics of a node.
type watcher struct {
	Node
	probe *probe
}

// Describe implements prometheus.Collector.
func (w *watcher) Describe(to chan<- *prometheus.Desc) {
	for _, s := range all {
		if s != requestsTotal && s != requestDuration && s != build {
			to <- s.desc
		}
	}
}

// Collect implements prometheus.Collector.
func (w *watcher) Collect(metrics chan<- prometheus.Metric) {
	to := sink(metrics)
	to.is(ready, w.Service.Ready() == nil)
	to.is(draining, w.Service.Serving().Err() != nil)
	to.put(window, w.Window.Seconds())
	w.collectListeners(to)
	if w.Disks != nil {
		for directory, r := range w.Disks() {
			to.put(diskFree, float64(r.Free), directory)
			to.put(diskShare, r.Share, directory)
			to.put(diskInodes, r.Inodes, directory)
		}
	}
	var m *peer.Member
	if w.Member != nil {
		m = w.Member()
	}
	var stats peer.Stats
	if m != nil {
		stats = m.Stats()
	}
	collectMember(to, stats)
	soon, cancel := context.WithTimeout(context.Background(), quorumWithin)
	defer cancel()
	if m != nil {
		to.put(clockOffset, stats.Offset.Seconds())
		collectVerdict(to, m.Vitals())
		v := m.Value()
		to.put(members, float64(v.Size()))
		to.put(joins, float64(len(maps.Collect(v.Joins()))))
		w.collectSequencers(soon, to, m)
	}
	if q := w.Service.RecentQuorum(soon); q != nil {
		collectQuorum(to, *q)
	}
	if w.Store != nil {
		if s := w.Store(); s != nil {
			w.collectStore(to, s, stats.Position)
		}
	}
}

// quorumWithin is how long the machines of a quorum, and the store about other members, may take to answer. If one
// takes longer, all are shown as they were when they were last asked.
const quorumWithin = 100 * time.Millisecond

func collectQuorum(to sink, s quorum.Status) {
	to.is(quorumMajority, s.Majority)
	for _, m := range s.Machines {
		up := m.Err == ""
		to.is(machineUp, up, m.Address)
		to.is(quorumLeader, up && m.Leader, m.Address)
		if m.Node != "" {
			to.put(machineInfo, 1, m.Address, m.Node)
		}
		if m.Index > 0 {
			to.put(machineBehind, float64(m.Behind), m.Address)
		}
		if !up {
			continue
		}
		to.put(quorumDatabase, float64(m.Size), m.Address)
		to.put(quorumLog, float64(m.LogSize), m.Address)
		to.put(quorumClock, m.Clock.Seconds(), m.Address)
		if m.Sync > 0 { // it has written something
			to.put(quorumSync, m.Sync.Seconds(), m.Address)
		}
	}
}

func (w *watcher) collectListeners(to sink) {
	for address, l := range w.Listeners {
		to.put(connections, float64(l.Open()), address)
		to.put(connectionsRefused, float64(l.Refused()), address)
		to.put(connectionsEvicted, float64(l.Evicted()), address)
	}
	if w.TLS != nil && w.TLS.GetCertificate != nil {
		if c, err := w.TLS.GetCertificate(new(tls.ClientHelloInfo)); err == nil && c.Leaf != nil {
			to.put(notAfter, float64(c.Leaf.NotAfter.Unix()))
		}
	}
}

func collectMember(to sink, s peer.Stats) {
	to.is(joined, s.Joined)
	to.is(session, s.Session)
	to.put(rejoins, float64(s.Rejoins))
	to.put(copies, float64(s.Copies))
	to.put(stopped, float64(s.Stopped))
	to.put(position, float64(s.Position))
	to.put(applied, float64(s.Entries))
	to.put(extensions, float64(s.Extensions.Done), "done")
	to.put(extensions, float64(s.Extensions.Doubt), "in_doubt")
	to.put(extensions, float64(s.Extensions.Failed), "failed")
	to.put(extensions, float64(s.Extensions.Lost), "lost")
	to.put(clockSteps, float64(s.StepsAhead), "ahead")
	to.put(clockSteps, float64(s.StepsBack), "back")
	to.put(stepsBelieved, float64(s.StepsBelieved))
}

// collectVerdict collects the latest verdict over the clock.
func collectVerdict(to sink, v peer.Vitals) {
	if v.Verdict == "" {
		return
	}
	for kind := clocks.Alone; kind <= clocks.Unclear; kind++ {
		to.is(clockVerdict, v.Verdict == kind.String(), kind.String())
	}
	if v.Others > 0 {
		to.put(clockOthers, v.Offset.Seconds())
	}
}

// collectSequencers collects the sequencers to which the member is attached or attaching, and the counters of which it
// gave numbers.
func (w *watcher) collectSequencers(soon context.Context, to sink, m *peer.Member) {
	answered, failed := w.Service.Forwarded()
	to.put(forwarded, float64(answered), "answered")
	to.put(forwarded, float64(failed), "failed")
	ids := w.Service.Given()
	v := m.Value()
	least := math.Inf(1)
	for _, q := range m.Sequencers() {
		s, name := q.Stats(), q.Name()
		if s.State.Phase > peer.Waiting {
			continue // detached, or ended
		}
		to.put(phase, 1, name, s.State.Phase.String())
		if !s.Horizon.IsZero() {
			to.put(nodeID, float64(s.State.Node), name)
			to.put(mostIDs, q.Layout().Rate(), name)
			to.put(idsAhead, s.Ahead.Seconds(), name)
			to.put(horizonLeft, s.Left.Seconds(), name)
			least = min(least, s.Left.Seconds()/s.Window.Seconds())
		}
		to.put(given, float64(ids[name]), name)
		to.put(waits, float64(s.Waits), name)
		to.put(waited, s.WaitedTime.Seconds(), name)
		if c, ok := v.Sequencer(name); ok && w.first(soon, m.ID(), c) {
			to.put(layoutEnd, float64(calls.Until(q.Layout()).Unix()), name)
			to.put(held, float64(c.Taken()), name)
			to.put(free, float64(c.Free()), name)
			to.put(inLine, float64(len(c.Waiting())), name)
		}
	}
	for name, count := range ids {
		if c, ok := v.Sequencer(name); ok && c.Definition().Claimed() {
			to.put(given, float64(count), name)
		}
	}
	if !math.IsInf(least, 1) {
		to.put(leftRatio, least)
	}
}

func (w *watcher) collectStore(to sink, s store.Store, after int64) {
	if oldest := s.Traits().OldestTransaction; oldest != nil {
		if open, known := oldest(); known {
			to.put(oldestTransaction, open.Seconds())
		}
	}
	r := w.probe.ask(s, after)
	to.is(storeUp, r.up)
	if !r.up {
		return
	}
	to.put(roundTrip, r.took.Seconds())
	if after > 0 {
		to.put(behind, float64(r.entries))
	}
}

// sink takes metrics.
type sink chan<- prometheus.Metric

func (to sink) put(s *series, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(s.desc, s.kind, value, labels...)
}

func (to sink) is(s *series, yes bool, labels ...string) {
	value := 0.0
	if yes {
		value = 1
	}
	to.put(s, value, labels...)
}
