package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Series describes metrics of one name.
type Series struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Unit   string // such as seconds
	Help   string
}

// All are the series that firn itself has, in the order of the documentation. Those of Go and of the process are not among
// them.
func All() []Series {
	listed := make([]Series, 0, len(all))
	for _, s := range all {
		listed = append(listed, Series{s.name, s.typeName(), slices.Clone(s.labels), s.unit, s.help})
	}
	return listed
}

// series is what describes the metrics of one name.
type series struct {
	name, help, unit string
	kind             prometheus.ValueType
	labels           []string
	desc             *prometheus.Desc
}

// all are those made by counter and gauge, in the order in which they stand below.
var all []*series

func counter(name, unit, help string, labels ...string) *series {
	return add(prometheus.CounterValue, name, unit, help, labels)
}

func gauge(name, unit, help string, labels ...string) *series {
	return add(prometheus.GaugeValue, name, unit, help, labels)
}

// histogram has no kind in common with the others: it is never made from a single value.
func histogram(name, unit, help string, labels ...string) *series {
	return add(prometheus.UntypedValue, name, unit, help, labels)
}

func add(kind prometheus.ValueType, name, unit, help string, labels []string) *series {
	s := &series{name, help, unit, kind, labels, prometheus.NewDesc(name, help, labels, nil)}
	all = append(all, s)
	return s
}

func (s *series) typeName() string {
	switch s.kind {
	case prometheus.CounterValue:
		return "counter"
	case prometheus.GaugeValue:
		return "gauge"
	default:
		return "histogram"
	}
}

// The series. A unit is that of the value; labels are few and their values too, since each of their combinations is kept.
var (
	given = counter("firn_ids_given_total", "IDs",
		"IDs given to callers, over all protocols.", "sequencer")
	waits = counter("firn_sequence_waits_total", "waits",
		"How often a caller waited because the sequence of a tick was used up, or the clock stood behind.", "sequencer")
	waited = counter("firn_sequence_wait_seconds_total", "seconds",
		"For how long callers waited for that in all; those who wait at the same time are added up.", "sequencer")

	requestsTotal = counter("firn_requests_total", "calls",
		"Calls that were answered, by protocol (http, grpc, redis), call, and what came of it: ok, gone (the caller went away) or the code of the error.",
		"protocol", "call", "code")
	requestDuration = histogram("firn_request_duration_seconds", "seconds",
		"How long calls took on the node. Redis commands that are answered together count once; streams and calls that follow the log are not in it.",
		"protocol", "call")

	ready = gauge("firn_ready", "0 or 1",
		"1 while the node is willing to give IDs of the default sequencer, as /readyz says.")
	draining = gauge("firn_draining", "0 or 1",
		"1 once the node is stopping.")
	connections = gauge("firn_connections", "connections",
		"Open connections, by the address that they came to: public, admin, grpc, redis or metrics.", "address")
	connectionsRefused = counter("firn_connections_refused_total", "connections",
		"Connections that found no place, and were closed at once or let in for probes only.", "address")
	connectionsEvicted = counter("firn_connections_evicted_total", "connections",
		"Connections that were closed to make room for others, or because memory ran out: those that are idle first.", "address")
	notAfter = gauge("firn_certificate_not_after_timestamp_seconds", "seconds since 1970",
		"When the certificate that the node shows expires; absent without TLS.")

	joined = gauge("firn_member_joined", "0 or 1",
		"1 while the node is a member of the cluster, by what it has read of the log.")
	session = gauge("firn_session_live", "0 or 1",
		"1 while the node has a session in the store that has not ended, for all that it knows.")
	rejoins = counter("firn_member_rejoins_total", "joins",
		"How often the node had to join again, because its session had ended or others took it for dead.")
	members = gauge("firn_cluster_members", "members",
		"Members of the cluster.")
	joins = gauge("firn_cluster_pending_joins", "members",
		"Joins that have begun and not come to an end.")
	position = gauge("firn_log_position", "position",
		"Position of the last entry of the log that the node has applied. Positions have gaps.")
	applied = gauge("firn_log_entries", "entries",
		"Entries that led to what the node has reached, since the log began.")
	behind = gauge("firn_log_lag_entries", "entries",
		"Entries of the log that the node had not applied when it was asked; absent when the store does not answer within a second.")

	phase = gauge("firn_sequencer_state", "0 or 1",
		"1 for the state in which the node is with a sequencer: attaching, attached or waiting (in line for a node ID), else 0. Sequencers that it is not attached to are absent, here and below.",
		"sequencer", "state")
	nodeID = gauge("firn_sequencer_node_id", "node ID",
		"The node ID that the node has; absent while it has none.", "sequencer")
	horizonLeft = gauge("firn_horizon_left_seconds", "seconds",
		"How much further the node may make IDs without the store; negative past the horizon, absent without a node ID.", "sequencer")
	window = gauge("firn_window_seconds", "seconds",
		"How far ahead of the clock horizons are written: --window.")
	extensions = counter("firn_fence_extensions_total", "extensions",
		"Attempts to write a further horizon, by result: done, in_doubt (no answer, it may have been written), failed (it was not written), lost (it can't be written any more).",
		"result")
	held = gauge("firn_sequencer_node_ids_held", "node IDs",
		"Node IDs of the sequencer that members have, in the whole cluster.", "sequencer")
	free = gauge("firn_sequencer_node_ids_free", "node IDs",
		"Node IDs of the sequencer that nobody has, in the whole cluster.", "sequencer")
	inLine = gauge("firn_sequencer_members_waiting", "members",
		"Members that wait in line for a node ID, in the whole cluster.", "sequencer")
	layoutEnd = gauge("firn_layout_end_timestamp_seconds", "seconds since 1970",
		"When the time bits of the sequencer's layout run out.", "sequencer")

	clockOffset = gauge("firn_clock_offset_seconds", "seconds",
		"How far this machine's wall clock is ahead of the time in the IDs; negative: behind.")
	clockSteps = counter("firn_clock_steps_total", "steps",
		"How often the wall clock stepped by 100 ms or more, by direction: ahead or back.", "direction")
	stepsBelieved = counter("firn_clock_steps_believed_total", "steps",
		"How often the node followed its wall after a step ahead of more than 10 s, since nobody contradicted it.")

	storeUp = gauge("firn_store_up", "0 or 1",
		"1 if the store answered a read within a second when the node was asked; absent while it is not open.")
	roundTrip = gauge("firn_store_round_trip_seconds", "seconds",
		"How long that read took; absent when there was no answer.")

	build = gauge("firn_build_info", "1",
		"Always 1; the labels say which firn it is.", "version", "revision", "goversion")
)
