package grpcapi_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/grpcapi"
)

// A status says over gRPC what it says in JSON.
func TestStatusMessage(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	have := grpcapi.StatusMessage(calls.Status{
		Cluster: "fj4ltw4x", Member: "a", Position: 9, Entries: 4, At: noon,
		Store: calls.StatusStore{Reached: true, AsOf: &noon},
		Problems: []calls.Problem{{
			Level: calls.Failing, Kind: calls.ClockProblem, Effect: "out", Cause: "so",
			Do: "act", Link: "there", Detail: "EOF", Members: []string{"a"}, Sequencers: []string{"s"}, Since: &noon,
		}},
		Members: []calls.StatusMember{
			{
				ID: "a", Watches: "b", Joined: 3,
				Pulse: calls.Pulse{Alive: new(true), Owner: "ids-1", Fresh: true, AsOf: &noon, Vitals: &peer.Vitals{
					Version: "v1", Addresses: map[string]string{"http": "http://a"}, Since: noon, Ready: true,
					Code: "clock", Why: "so", Given: 7, Rate: 1.5, Rates: map[string]float64{"s": 1.25},
					Failing: []string{"s"}, Forwards: true,
					Verdict: "behind", Offset: -time.Second, Judged: noon, SmallerUntil: noon, CopiedAt: noon,
					Left: time.Minute, RoundTrip: time.Millisecond,
					Counters: map[string]peer.Counting{"i": {Reserved: 9}, "l": {Reserved: 8, Lost: true}},
				}},
			},
			{ID: "b", Pulse: calls.Pulse{Owner: "ids-2", AsOf: &noon, Vitals: new(peer.Vitals)}},
			{ID: "c"},
		},
		Nodes: []calls.StatusNode{
			{
				Name: "ids-1", Host: "h", Members: []string{"a"}, State: calls.NodeAlive, Since: noon, Seen: noon,
				Reserved: &noon,
			},
			{Name: "ids-2", State: calls.NodeLeft, Since: noon, Seen: noon},
			{Name: "ids-3", State: calls.NodeLost, Since: noon, Seen: noon},
			{Name: "ids-4", State: calls.NodeUnknown, Since: noon, Seen: noon},
		},
	})
	want := new(firnv1.ClusterStatusResponse)
	const at = `"2026-11-22T12:00:00Z"`
	if err := protojson.Unmarshal([]byte(`{"cluster": "fj4ltw4x", "member": "a", "position": 9, "entries": 4, "at": `+at+`, "storeReached": true, "storeAsOf": `+at+`,
		"problems": [{"level": "LEVEL_ERROR", "kind": "clock", "effect": "out", "cause": "so", "do": "act", "link": "there", "detail": "EOF", "members": ["a"], "sequencers": ["s"], "since": `+at+`}],
		"members": [
			{"id": "a", "watches": "b", "joined": 3, "pulse": {"alive": true, "owner": "ids-1", "fresh": true, "asOf": `+at+`, "vitals": {
				"version": "v1", "addresses": {"http": "http://a"}, "since": `+at+`, "ready": true, "code": "clock", "why": "so", "given": 7, "rate": 1.5, "rates": {"s": 1.25}, "failing": ["s"], "forwards": true,
				"verdict": "behind", "offset": "-1s", "judged": `+at+`, "smallerUntil": `+at+`, "copiedAt": `+at+`, "left": "60s", "roundTrip": "0.001s",
				"counters": {"i": {"reserved": 9}, "l": {"reserved": 8, "lost": true}}}}},
			{"id": "b", "pulse": {"owner": "ids-2", "asOf": `+at+`, "vitals": {"offset": "0s"}}},
			{"id": "c"}],
		"nodes": [
			{"name": "ids-1", "host": "h", "members": ["a"], "state": "STATE_ALIVE", "since": `+at+`, "seen": `+at+`, "reserved": `+at+`},
			{"name": "ids-2", "state": "STATE_LEFT", "since": `+at+`, "seen": `+at+`}, {"name": "ids-3", "state": "STATE_LOST", "since": `+at+`, "seen": `+at+`},
			{"name": "ids-4", "state": "STATE_UNKNOWN", "since": `+at+`, "seen": `+at+`}]}`), want); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(have, want) {
		t.Errorf("have %v\nwant %v", have, want)
	}
}

// The rate of a sequencer is absent where it is unknown: it is not 0.
func TestGivenRate(t *testing.T) {
	have := grpcapi.StatusMessage(calls.Status{Sequencers: []calls.StatusSequencer{
		{Given: new(2.5)},
		{Given: new(0.0)},
		{},
	}}).GetSequencers()
	if have[0].GetGivenRate() != 2.5 || have[1].GivenRate == nil || have[1].GetGivenRate() != 0 ||
		have[2].GivenRate != nil {
		t.Errorf("have %v", have)
	}
}
