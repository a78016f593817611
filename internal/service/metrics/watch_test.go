package metrics

import (
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/test/servertest"
)

// A node that has not joined says so in its metrics.
func TestNotJoinedYet(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watched) {
		w.watch()
		w.has("firn_ready 0", "firn_draining 0", "firn_member_joined 0", "firn_session_live 0", "firn_store_up 1",
			"firn_window_seconds 30",
			`firn_connections{address="public"} 7`, `firn_connections_refused_total{address="public"} 3`,
			`firn_connections_evicted_total{address="public"} 5`,
			"firn_certificate_not_after_timestamp_seconds 1.893553445e+09",
			`firn_build_info{goversion="go1",revision="abc",version="v1"} 1`)
		w.lacks("sequencer=", "firn_clock_offset_seconds", "firn_cluster_members",
			"firn_log_lag_entries", "firn_quorum")
	})
}

// A node that issues IDs shows how many, and its state.
func TestANodeThatGivesIDs(t *testing.T) {
	full(t, func(w *watched) {
		if err := w.service.Many(w.t.Context(), w.who, "", "default", 5, func(*calls.Batch) error {
			return nil
		}); err != nil {
			w.t.Error(err)
		}
		w.has("firn_ready 1", "firn_member_joined 1", "firn_session_live 1", "firn_cluster_members 2",
			"firn_cluster_pending_joins 0",
			`firn_ids_given_total{sequencer="default"} 5`, `firn_ids_given_total{sequencer="orders"} 1`,
			`firn_sequencer_state{sequencer="orders",state="attached"} 1`,
			`firn_sequencer_node_ids_free{sequencer="orders"} 1023`,
			`firn_sequencer_node_ids_held{sequencer="orders"} 1`,
			`firn_sequencer_members_waiting{sequencer="orders"} 0`, `firn_horizon_left_seconds{sequencer="orders"} 30`,
			`firn_sequence_waits_total{sequencer="orders"} 0`,
			`firn_clock_verdict{verdict="agreed"} 1`, `firn_clock_verdict{verdict="behind"} 0`,
			"firn_clock_others_offset_seconds 0",
			"firn_log_lag_entries 0", "firn_store_up 1", "firn_clock_offset_seconds 0",
			`firn_clock_steps_total{direction="ahead"} 0`,
			`firn_requests_total{call="POST /api/v1/id",code="ok",protocol="http"} 1`,
			`firn_request_duration_seconds_bucket{call="POST /api/v1/id",protocol="http",le="0.001"} 1`,
		)
		w.lacks(`state="waiting"`)
		const ahead = `firn_ids_ahead_seconds{sequencer="orders"}`
		if now := w.value(ahead); now != 0 {
			w.t.Errorf("IDs are %v s ahead", now)
		}
		q, _ := w.member.Load().Sequencer("orders")
		after, err := q.Layout().Last(time.Now().Add(500 * time.Millisecond))
		if err != nil {
			w.t.Fatal(err)
		}
		if err := w.service.ManyAfter(w.t.Context(), w.who, "", "orders", after, 1, func(*calls.Batch) error {
			return nil
		}); err != nil {
			w.t.Error(err)
		}
		if now := w.value(ahead); now < 0.5 || now > 0.502 {
			w.t.Errorf("IDs are %v s ahead; want half a second", now)
		}
		time.Sleep(15 * time.Second)
		w.has(`firn_horizon_left_seconds{sequencer="orders"} 25`)
		const done = `firn_fence_extensions_total{result="done"}`
		before := w.value(done)
		time.Sleep(20 * time.Second)
		if now := w.value(done); now != before+4 {
			w.t.Errorf("in 20 s two sequencers have %v extensions, and had %v", now, before)
		}
		w.service.Drain()
		w.has("firn_ready 0", "firn_draining 1")
	})
}

// A node whose layout's time has run out is not ready, though it has a node ID.
func TestTheLayoutsTimeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watched) {
		m, err := peer.Join(t.Context(), w.client, peer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.member.Store(m)
		short := firn.Default
		short.TimeBits, short.Epoch = 30, time.Now().Add(time.Minute-1<<30*time.Millisecond)
		if _, err := m.EnsureSequencer(t.Context(), peer.DefaultSequencer, cluster.Define(short)); err != nil {
			t.Fatal(err)
		}
		w.service = calls.New(m, calls.Options{Meter: w.metrics})
		w.watch()
		time.Sleep(time.Minute - time.Millisecond)
		w.has("firn_ready 1", `firn_layout_end_timestamp_seconds{sequencer="default"} 9.4668486e+08`)
		time.Sleep(time.Millisecond)
		w.has("firn_ready 0", `firn_sequencer_state{sequencer="default",state="attached"} 1`)
	})
}

// The series of a sequencer disappear when the node detaches from it or the sequencer is destroyed.
func TestSequencersThatAreGone(t *testing.T) {
	full(t, func(w *watched) {
		if _, err := w.service.Detach(w.t.Context(), w.who, "orders"); err != nil {
			w.t.Fatal(err)
		}
		w.lacks(`"orders"`)
		if _, err := w.service.Attach(w.t.Context(), w.who, "orders"); err != nil {
			w.t.Fatal(err)
		}
		w.has(`firn_ids_given_total{sequencer="orders"} 1`)
		if _, err := w.service.Destroy(w.t.Context(), w.who, "orders"); err != nil {
			w.t.Fatal(err)
		}
		w.lacks(`"orders"`)
		w.has(`firn_sequencer_state{sequencer="default",state="attached"} 1`)
	})
}

// A counter has the numbers that it gave, and no series of node IDs, a horizon and a layout.
func TestACounter(t *testing.T) {
	full(t, func(w *watched) {
		d := cluster.Definition{Kind: cluster.Counter}
		if _, _, err := w.service.Create(w.t.Context(), w.who, "invoices", d, 0); err != nil {
			w.t.Fatal(err)
		}
		w.lacks(`"invoices"`)
		if err := w.service.Many(w.t.Context(), w.who, "", "invoices", 5, func(*calls.Batch) error {
			return nil
		}); err != nil {
			w.t.Fatal(err)
		}
		w.has(`firn_ids_given_total{sequencer="invoices"} 5`)
		w.lacks(`layout_end_timestamp_seconds{sequencer="invoices"}`, `free{sequencer="invoices"}`, `NaN`)
		if _, err := w.service.Destroy(w.t.Context(), w.who, "invoices"); err != nil {
			w.t.Fatal(err)
		}
		w.lacks(`"invoices"`)
	})
}

// Without the store the answer takes a second, says so, and has the metrics that need no store.
func TestWithoutTheStore(t *testing.T) {
	full(t, func(w *watched) {
		w.client.CutOff(true)
		time.Sleep(2 * time.Second)
		began := time.Now()
		w.has("firn_store_up 0", "firn_ready 1", "firn_cluster_members 2")
		if took := time.Since(began); took > time.Second {
			w.t.Errorf("the answer took %v", took)
		}
		w.lacks("firn_store_round_trip_seconds", "firn_log_lag_entries")
		time.Sleep(time.Minute)
		w.has("firn_session_live 0", "firn_ready 0", `firn_sequencer_state{sequencer="orders",state="attached"} 1`)
		w.client.CutOff(false)
		time.Sleep(30 * time.Second)
		w.has("firn_store_up 1", "firn_ready 1", "firn_member_rejoins_total 1")
	})
}

// A node with a quorum shows its machines, of which one does not answer.
func TestQuorum(t *testing.T) {
	full(t, func(w *watched) {
		w.has("firn_quorum_majority 1",
			`firn_quorum_machine_up{machine="ids-1:7420"} 1`, `firn_quorum_machine_up{machine="ids-3:7420"} 0`,
			`firn_quorum_machine_info{machine="ids-1:7420",node="a"} 1`,
			`firn_quorum_machine_info{machine="ids-3:7420",node="c"} 1`,
			`firn_quorum_leader{machine="ids-1:7420"} 1`, `firn_quorum_leader{machine="ids-2:7420"} 0`,
			`firn_quorum_leader{machine="ids-3:7420"} 0`,
			`firn_quorum_machine_behind_entries{machine="ids-1:7420"} 0`,
			`firn_quorum_machine_behind_entries{machine="ids-3:7420"} 1345`,
			`firn_quorum_database_bytes{machine="ids-1:7420"} 2.097152e+06`,
			`firn_quorum_log_bytes{machine="ids-2:7420"} 4.194304e+06`,
			`firn_quorum_fsync_seconds{machine="ids-2:7420"} 0.21`,
			`firn_quorum_clock_offset_seconds{machine="ids-2:7420"} -0.25`)
		w.lacks(`firn_quorum_machine_info{machine="ids-2:7420"`)
		for _, series := range []string{"database_bytes", "log_bytes", "fsync_seconds", "clock_offset_seconds"} {
			w.lacks("firn_quorum_" + series + `{machine="ids-3:7420"}`)
		}
	})
}

// A node that waits for the other machines of the quorum shows them, and one of whom it knew that it led does not lead.
func TestQuorumThatIsNotThere(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watched) {
		q := servertest.ThreeMachines()
		q.State.Majority = false
		q.State.Machines[0].Err, q.State.Machines[1].Err = "no answer", "no answer"
		w.service = calls.New(servertest.Join(t), calls.Options{Meter: w.metrics, Quorum: q})
		w.watch()
		w.has("firn_quorum_majority 0", `firn_quorum_machine_up{machine="ids-1:7420"} 0`,
			`firn_quorum_leader{machine="ids-1:7420"} 0`)
	})
}

// The series of a code stays, by protocol and call; calls answered together are counted each and timed together.
func TestRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watched) {
		w.lacks("firn_requests_total", "firn_request_duration_seconds")
		incr := w.metrics.Call("redis", "INCR")
		w.lacks("firn_requests_total", "firn_request_duration_seconds")
		incr.Done(codes.OK, 128, 2*time.Millisecond)
		incr.Done(codes.Overloaded, 2, calls.Untimed)
		w.metrics.Call("redis", "INCR").Done(codes.OK, 1, 0)
		w.has(`firn_requests_total{call="INCR",code="ok",protocol="redis"} 129`,
			`firn_requests_total{call="INCR",code="overloaded",protocol="redis"} 2`,
			`firn_request_duration_seconds_count{call="INCR",protocol="redis"} 2`,
			`firn_request_duration_seconds_sum{call="INCR",protocol="redis"} 0.002`)
	})
}
