package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// series describes the metrics of one name.
type series struct {
	name, help, unit string
	kind             prometheus.ValueType // Untyped for a histogram
	labels           []string
	desc             *prometheus.Desc
}

// all has the series below, in that order, without those of Go and of the process.
var all []*series

func counter(name, unit, help string, labels ...string) *series {
	return add(prometheus.CounterValue, name, unit, help, labels)
}

func gauge(name, unit, help string, labels ...string) *series {
	return add(prometheus.GaugeValue, name, unit, help, labels)
}

func histogram(name, unit, help string, labels ...string) *series {
	return add(prometheus.UntypedValue, name, unit, help, labels)
}

func add(kind prometheus.ValueType, name, unit, help string, labels []string) *series {
	s := &series{name, help, unit, kind, labels, prometheus.NewDesc(name, help, labels, nil)}
	all = append(all, s)
	return s
}

// The series. They have few labels with few values: each combination takes memory.
var (
	given = counter("firn_ids_given_total", "IDs",
		"IDs given to callers, over all protocols. Those that another node made for this one are counted there.",
		"sequencer")
	forwarded = counter("firn_forwarded_calls_total", "calls",
		"Calls for IDs that another node was asked to answer, as this one has no node ID of the sequencer, by result: "+
			"answered or failed.", "result")
	waits = counter("firn_sequence_waits_total", "waits",
		"Calls that waited because the sequence of a tick was used up, or the clock was behind.", "sequencer")
	waited = counter("firn_sequence_wait_seconds_total", "seconds",
		"Total time that calls waited for that; calls that wait at the same time all count.", "sequencer")

	requestsTotal = counter("firn_requests_total", "calls",
		"Calls answered, by protocol (http, grpc, redis), call and result: ok, gone (the caller went away) or the "+
			"error code.",
		"protocol", "call", "code")
	requestDuration = histogram("firn_request_duration_seconds", "seconds",
		"Time that calls took on the node. Redis commands answered together count once; streams and calls that follow "+
			"the log are not included.",
		"protocol", "call")

	ready = gauge("firn_ready", "0 or 1",
		"1 while the node is ready to give IDs of the default sequencer, as /readyz says.")
	draining = gauge("firn_draining", "0 or 1",
		"1 while the node is stopping.")
	connections = gauge("firn_connections", "connections",
		"Open connections, by listening address: public, admin, grpc, redis or metrics.", "address")
	connectionsRefused = counter("firn_connections_refused_total", "connections",
		"Connections beyond the limit that were closed at once, or accepted for health checks only.", "address")
	connectionsEvicted = counter("firn_connections_evicted_total", "connections",
		"Connections closed to make room for others, or because memory ran out, idle ones first.", "address")
	notAfter = gauge("firn_certificate_not_after_timestamp_seconds", "seconds since 1970",
		"When the node's TLS certificate expires; absent without TLS.")

	joined = gauge("firn_member_joined", "0 or 1",
		"1 while the node is a member of the cluster, according to the log that it has read.")
	session = gauge("firn_session_live", "0 or 1",
		"1 while the node's session in the store is live, as far as the node knows.")
	rejoins = counter("firn_member_rejoins_total", "joins",
		"Times that the node joined again because its session had ended or others had found it dead.")
	copies = counter("firn_member_copies_total", "starts",
		"Times that the node started over because its process was copied or set back, or its machine resumed from a "+
			"snapshot. IDs that it had reserved may exist twice.")
	stopped = gauge("firn_member_stopped_position", "position",
		"Position of the entry of the log that the node can't read, at which it has stopped; 0: it has not.")
	members = gauge("firn_cluster_members", "members",
		"Members of the cluster.")
	joins = gauge("firn_cluster_pending_joins", "members",
		"Joins that have begun and not ended.")
	position = gauge("firn_log_position", "position",
		"Position of the last entry of the log that the node has applied. Positions have gaps.")
	applied = gauge("firn_log_entries", "entries",
		"Entries that the node has applied since the log began.")
	behind = gauge("firn_log_lag_entries", "entries",
		"Entries of the log that the node has not applied yet; absent when the store does not answer within a second.")

	phase = gauge("firn_sequencer_state", "1",
		"Always 1; the label is the node's state for a sequencer: attaching, attached or waiting (for a node ID). "+
			"Sequencers that the node is not attached to are absent, here and below.",
		"sequencer", "state")
	nodeID = gauge("firn_sequencer_node_id", "node ID",
		"The node ID of the node; absent while it has none.", "sequencer")
	mostIDs = gauge("firn_sequencer_limit_ids_per_second", "IDs per second",
		"How many IDs a second the layout allows the node; absent while it has no node ID.", "sequencer")
	idsAhead = gauge("firn_ids_ahead_seconds", "seconds",
		"How far the latest ID is ahead of the clock: milliseconds under saturation, and up to 10 s since a call "+
			"was to "+
			"exceed an ID of a clock that is ahead.", "sequencer")
	horizonLeft = gauge("firn_horizon_left_seconds", "seconds",
		"How long the node can still make IDs without the store; negative past the horizon, absent without a node ID.",
		"sequencer")
	leftRatio = gauge("firn_horizon_left_ratio", "ratio",
		"How much of its window the sequencer with the least has left: 1 right after a renewal, 2/3 before the next, "+
			"negative past the horizon; absent without a node ID.")
	window = gauge("firn_window_seconds", "seconds",
		"How far ahead of the clock the node writes horizons: --window.")
	extensions = counter("firn_fence_extensions_total", "extensions",
		"Attempts to extend a horizon, by result: done, in_doubt (no answer: it may have been written), failed (it "+
			"was not written), lost (the node ID or the session is lost).",
		"result")
	held = gauge("firn_sequencer_node_ids_held", "node IDs",
		"Node IDs of the sequencer that members hold, in the whole cluster. Here and below, it is exported once, by "+
			"the node that holds the sequencer's lowest node ID.", "sequencer")
	free = gauge("firn_sequencer_node_ids_free", "node IDs",
		"Free node IDs of the sequencer, in the whole cluster.", "sequencer")
	inLine = gauge("firn_sequencer_members_waiting", "members",
		"Members that wait for a node ID of the sequencer, in the whole cluster.", "sequencer")
	layoutEnd = gauge("firn_layout_end_timestamp_seconds", "seconds since 1970",
		"When the time bits of the sequencer's layout run out.", "sequencer")

	clockOffset = gauge("firn_clock_offset_seconds", "seconds",
		"How far this machine's wall clock is ahead of the time in the IDs; negative: behind.")
	clockOthers = gauge("firn_clock_others_offset_seconds", "seconds",
		"How far this machine's wall clock is ahead of the other members' at least, when last compared; negative: "+
			"behind, absent without others.")
	clockVerdict = gauge("firn_clock_verdict", "0 or 1",
		"1 for the latest verdict over this machine's wall clock, 0 for the others: alone, agreed, ahead or behind "+
			"(of most of the others: the node is not ready), tied (no majority agrees) or unclear; absent until it is "+
			"judged.", "verdict")
	clockSteps = counter("firn_clock_steps_total", "steps",
		"Steps of the wall clock by 100 ms or more, by direction: ahead or back.", "direction")
	stepsBelieved = counter("firn_clock_steps_believed_total", "steps",
		"Steps ahead of more than 10 s that the node followed, as no majority of the others contradicted its "+
			"wall clock.")

	storeUp = gauge("firn_store_up", "0 or 1",
		"1 if the store answers a read within a second; absent while it is not open.")
	roundTrip = gauge("firn_store_round_trip_seconds", "seconds",
		"Time that this read took; absent without an answer.")

	oldestTransaction = gauge("firn_postgres_oldest_transaction_seconds", "seconds",
		"How long the oldest transaction of the database has been open, to within 30 s: the server keeps all former "+
			"versions of rows since. Of other users' it has only prepared ones, unless firn's role has "+
			"pg_read_all_stats. Absent on nodes with another store.")

	machineUp = gauge("firn_quorum_machine_up", "0 or 1",
		"1 if a machine of the quorum answers this node within a second. Here and below, a machine is its address in "+
			"--quorum; absent on nodes without a quorum.", "machine")
	machineInfo = gauge("firn_quorum_machine_info", "1",
		"Always 1; the label node is the name of the machine's node, by which alerts call it; absent while that is "+
			"unknown.", "machine", "node")
	machineBehind = gauge("firn_quorum_machine_behind_entries", "entries",
		"Entries of etcd's log that the machine has not applied and the furthest one has; of a machine that does not "+
			"answer, since it last did.", "machine")
	quorumLeader = gauge("firn_quorum_leader", "0 or 1",
		"1 for the machine that leads the quorum, 0 for the others.", "machine")
	quorumMajority = gauge("firn_quorum_majority", "0 or 1",
		"1 if this node reaches a majority of the voters of the quorum.")
	quorumDatabase = gauge("firn_quorum_database_bytes", "bytes",
		"Size of the machine's database; absent, here and below, while the machine does not answer.", "machine")
	quorumLog = gauge("firn_quorum_log_bytes", "bytes",
		"Size of the machine's log.", "machine")
	quorumSync = gauge("firn_quorum_fsync_seconds", "seconds",
		"Time that the machine's disk took to sync the latest small write.", "machine")
	quorumClock = gauge("firn_quorum_clock_offset_seconds", "seconds",
		"How far the machine's clock is ahead of this node's, give or take half the time that its answer took; "+
			"negative: behind.", "machine")

	diskFree = gauge("firn_disk_free_bytes", "bytes",
		"Free space for the node where it writes: the directories data and journal. Absent, here and below, where it "+
			"writes none, and on systems other than Unix.", "directory")
	diskShare = gauge("firn_disk_free_ratio", "ratio",
		"The same as a share of the file system's size, 0 to 1.", "directory")
	diskInodes = gauge("firn_disk_free_inodes_ratio", "ratio",
		"The share of the file system's inodes that is free, 0 to 1.", "directory")

	build = gauge("firn_build_info", "1",
		"Always 1; the labels describe the program.", "version", "revision", "goversion")
)
