package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

func serving(t testing.TB, c *servertest.Told) handler {
	t.Helper()
	return newHandler(t, &servertest.Issuer{Same: true}, c.Member, nil)
}

// example is a cluster of two, with a third about to join, and a sequencer with one node ID for both.
func example(t *testing.T) *servertest.Told {
	var orders cluster.Definition
	if err := json.Unmarshal([]byte(`{"nodes":1}`), &orders); err != nil {
		t.Fatal(err)
	}
	f := newLog(t,
		cluster.PrepareJoin{Joiner: "a"},
		cluster.PrepareJoin{Joiner: "b"}, cluster.NotifyWatchers{Joiner: "b"}, cluster.AcceptJoin{Joiner: "b"},
		cluster.CreateSequencer{Sequencer: "orders", Definition: orders},
		cluster.Attach{Sequencer: "orders", Member: "a"}, cluster.Attach{Sequencer: "orders", Member: "b"},
		cluster.PrepareJoin{Joiner: "c"},
	)
	f.SetPulses(map[string]peer.Pulse{"a": {}, "b": {}, "c": {}})
	return f
}

const (
	statusOfExample = `{"cluster":"fj4ltw4x","member":"b","position":16,"entries":8,"at":"now",` +
		`"store":{"reached":true,"as_of":"now"},` +
		`"problems":[{"level":"warning","kind":"node_ids","effect":"This node gives no IDs of orders","cause":"none ` +
		`of its 1 node IDs is free","do":"Detach nodes that need none, or create a sequencer with more nodes.",` +
		`"link":"https://github.com/firn-id/firn/blob/main/docs/problems.md#node_ids","members":["b"],` +
		`"sequencers":["orders"]}],` +
		`"members":[{"id":"a","watches":"b","joined":2,"alive":true,"fresh":true},` +
		`{"id":"b","watches":"a","joined":8,"alive":true,"fresh":true,"as_of":"now","vitals":{"ready":false,` +
		`"given":0,"rate":0,"offset_ns":0}}],` +
		`"joins":[{"joiner":"c","target":"a","phase":"prepared","alive":true,"fresh":true}],` +
		`"sequencers":[{"name":"orders","definition":{"nodes":1,"allocation":{"kind":"all"},` +
		`"epoch":"2026-01-01T00:00:00Z","tick":"1ms",` +
		`"time_bits":41,"datacenter_bits":0,"node_bits":10,"sequence_bits":12,"node_lowest":false},` +
		`"created":10,"capacity":1,"until":"2095-09-07T15:47:35.552Z","rate":4194304000,"nodes":{"0":"a"},` +
		`"waiting":["b"],"free":0,"allocation":{"kind":"all"},"drained":[],"given_rate":0,"here":{"state":"none"}}]}`
	valueOfExample = `{"position":16,"value":{"members":["a","b"],"pairs":{"a":"b","b":"a"},"prepared":{"c":"a"},` +
		`"accepted":{},` +
		`"sequencers":{"orders":{"nodes":{"0":"a"},"waiting":["b"]}}}}`
	emptyValue   = `{"position":%d,"value":{"members":[],"pairs":{},"prepared":{},"accepted":{},"sequencers":{}}}`
	aloneValue   = `{"position":2,"value":{"members":["a"],"pairs":{},"prepared":{},"accepted":{},"sequencers":{}}}`
	pendingValue = `{"position":4,"value":{"members":["a"],"pairs":{},"prepared":{"b":"a"},"accepted":{},` +
		`"sequencers":{}}}`
)

// Every way to look at a cluster, with the answer in full.
func TestClusterAnswers(t *testing.T) {
	h := serving(t, example(t))
	lines := func(from int) string {
		return strings.Join([]string{
			`{"position":2,"command":"prepare-join-cluster","args":{"joiner":"a"}}`,
			`{"position":4,"command":"prepare-join-cluster","args":{"joiner":"b"}}`,
			`{"position":6,"command":"notify-watchers","args":{"joiner":"b"}}`,
			`{"position":8,"command":"accept-join-cluster","args":{"joiner":"b"}}`,
			`{"position":10,"command":"create-sequencer","args":{"sequencer":"orders","definition":{"nodes":1,` +
				`"allocation":{"kind":"all"},` +
				`"epoch":"2026-01-01T00:00:00Z","tick":"1ms","time_bits":41,"datacenter_bits":0,"node_bits":10,` +
				`"sequence_bits":12,"node_lowest":false}}}`,
			`{"position":12,"command":"attach","args":{"sequencer":"orders","member":"a"}}`,
			`{"position":14,"command":"attach","args":{"sequencer":"orders","member":"b"}}`,
			`{"position":16,"command":"prepare-join-cluster","args":{"joiner":"c"}}`,
		}[from:], "\n")
	}
	failure := func(code, message string) string {
		return fmt.Sprintf(`{"error":{"code":%q,"message":%q}}`, code, message)
	}
	for _, tt := range []struct {
		target string
		status int
		body   string
	}{
		{"GET ", 200, statusOfExample},
		{"GET ?", 200, statusOfExample},
		{"GET /value", 200, valueOfExample},
		{"GET /value?at=16", 200, valueOfExample},
		{"GET /value?at=4", 200, pendingValue},
		{"GET /value?at=5", 200, pendingValue}, // the last entry until then counts
		{"GET /value?at=3", 200, aloneValue},
		{"GET /value?at=0", 200, fmt.Sprintf(emptyValue, 0)},
		{"GET /log", 200, lines(0)},
		{"GET /log?from=0", 200, lines(0)},
		{"GET /log?from=1&follow=0", 200, lines(0)},
		{"GET /log?from=14", 200, lines(6)},
		{"GET /log?from=15", 200, lines(7)},
		{"GET /log?from=17", 200, ""},
		{"GET /log?from=9223372036854775807", 200, ""}, // the log itself would refuse it

		{"HEAD ", 200, statusOfExample}, // net/http leaves the body out
		{"HEAD /value", 200, valueOfExample},
		{"HEAD /log", 200, ""},
		{"HEAD /log?follow=1", 200, ""},

		{"GET ?at=5", 400, failure("bad_request",
			`the query "at=5" has no effect here; for another position GET /api/v1/cluster/value?at=N`)},
		{"GET /value?at=-1", 400, failure("bad_request",
			`at is "-1"; want a whole number from 0, a position, or a time such as 2026-11-22T03:12:00Z`)},
		{
			"GET /value?at=9223372036854775808", 400,
			failure("bad_request",
				`at is "9223372036854775808"; want a whole number from 0, a position, or a time such as `+
					`2026-11-22T03:12:00Z`),
		},
		{"GET /value?at=1&at=2", 400, failure("bad_request", `at is given 2 times; want it once`)},
		{"GET /value?from=1", 400, failure("bad_request", `unknown parameter "from"; want at`)},
		{"GET /log?from=", 400, failure("bad_request", `from is ""; want a whole number from 0`)},
		{"GET /log?follow=yes", 400, failure("bad_request", `follow is "yes"; want a number from 0 to 1`)},
		{"GET /log?at=1", 400, failure("bad_request", `unknown parameter "at"; want from, since, until, follow`)},
		{"GET /log?%zz", 400, failure("bad_request",
			`can't read the query "%zz"; want from=N, since=TIME, until=TIME, follow=1 or several of them`)},
		{"GET /value?at=", 400, failure("bad_request",
			`at is ""; want a whole number from 0, a position, or a time such as 2026-11-22T03:12:00Z`)},
		{
			"GET /log?since=03:00", 400,
			failure("bad_request", `since is "03:00"; want a time such as 2026-11-22T03:12:00Z, or Unix milliseconds`),
		},
		{
			"GET /log?until=-1", 400,
			failure("bad_request", `until is "-1"; want a time such as 2026-11-22T03:12:00Z, or Unix milliseconds`),
		},
		{"GET /log?until=2&since=3", 400, failure("bad_request", `until is "2", before since, "3"; want a later time`)},
		{
			"GET /log?until=2&follow=1", 400,
			failure("bad_request", `until is given with follow=1, which has no end; leave one of them out`),
		},
		{
			"GET /value?at=2026-11-22T03:12:00Z", 404,
			failure("unknown_position", "no entry of the log has a time; want a position"),
		},
		{"GET /value?at=17", 404, failure("unknown_position", "the log does not have position 17 yet; want 0 to 16")},
		{"GET /nothing", 404, failure("not_found",
			`there is nothing at "/api/v1/cluster/nothing"; try POST /api/v1/id, POST /api/v1/ids?count=N or GET `+
				`/api/v1/ids/{id}`)},
		{
			"POST ", 405,
			failure("method_not_allowed", `the method "POST" is not allowed for "/api/v1/cluster"; want GET, HEAD`),
		},
		{"DELETE /log", 405, failure("method_not_allowed",
			`the method "DELETE" is not allowed for "/api/v1/cluster/log"; want GET, HEAD`)},
		{"PUT /value", 405, failure("method_not_allowed",
			`the method "PUT" is not allowed for "/api/v1/cluster/value"; want GET, HEAD`)},
	} {
		method, rest, _ := strings.Cut(tt.target, " ")
		w := call(h, method, "/api/v1/cluster"+rest)
		if body := undated(strings.TrimSuffix(w.Body.String(), "\n")); w.Code != tt.status || body != tt.body {
			t.Errorf("%s = %d %s\nwant %d %s", tt.target, w.Code, body, tt.status, tt.body)
		}
		wantType := "application/json"
		if tt.status == 200 && strings.HasPrefix(rest, "/log") {
			wantType = "application/x-ndjson"
		}
		if got := w.Header(); got.Get("Content-Type") != wantType || got.Get("Cache-Control") != "no-store" ||
			got.Get(httpapi.LogBeginsAfter) != "" {
			t.Errorf("%s has the headers %v", tt.target, got)
		}
	}
}

// undated replaces the times in a status by now, and leaves out how long the store took.
func undated(status string) string {
	status = regexp.MustCompile(`"(at|as_of|since|answered)":"[^"]*"`).ReplaceAllString(status, `"$1":"now"`)
	return regexp.MustCompile(`,"rtt_ns":\d+`).ReplaceAllString(status, "")
}

// A member alone watches nobody, and lists are never null.
func TestStatusOfOne(t *testing.T) {
	log := newLog(t, cluster.PrepareJoin{Joiner: "b"})
	log.SetPulses(map[string]peer.Pulse{"b": {}})
	w := call(serving(t, log), "GET", "/api/v1/cluster")
	want := `{"cluster":"fj4ltw4x","member":"b","position":2,"entries":1,"at":"now","store":{"reached":true,` +
		`"as_of":"now"},` +
		`"problems":[],"members":[{"id":"b","joined":2,"alive":true,"fresh":true,"as_of":"now",` +
		`"vitals":{"ready":false,"given":0,"rate":0,"offset_ns":0}}],"joins":[],"sequencers":[]}` + "\n"
	if undated(w.Body.String()) != want {
		t.Errorf("have %swant %s", w.Body, want)
	}
}

// timed is a log whose entries have times: of minutes after 03:00, -1 for an unknown one, at the positions 2, 4, 6 and
// so on.
func timed(t *testing.T, minutes ...int) *servertest.Told {
	log := newLog(t)
	for _, m := range minutes {
		var at time.Time
		if m >= 0 {
			at = time.Date(2026, 11, 22, 3, m, 0, 0, time.UTC)
		}
		appendAt(log, at, cluster.PeerGC{By: "a"})
	}
	return log
}

// What is wanted of the log by time is found also where the clocks of the senders differ: from the first entry that is
// not before to the last that is not after, in the order of the log.
func TestLogByTime(t *testing.T) {
	for _, tt := range []struct {
		minutes []int
		query   string
		want    string // the positions
	}{
		{[]int{1, 2, 3, 4}, "since=2026-11-22T03:02:00Z", "4 6 8"},
		{[]int{1, 2, 3, 4}, "since=2026-11-22T04:02:00%2B01:00", "4 6 8"},
		{[]int{1, 2, 3, 4}, "since=1795316520000", "4 6 8"},
		{[]int{1, 2, 3, 4}, "since=2026-11-22T03:02:00.001Z", "6 8"},
		{[]int{1, 2, 3, 4}, "until=2026-11-22T03:03:00Z", "2 4 6"},
		{[]int{1, 2, 3, 4}, "until=1795316579999", "2 4"},
		{[]int{1, 2, 3, 4}, "since=2026-11-22T03:02:00Z&until=2026-11-22T03:03:00Z", "4 6"},
		{[]int{1, 2, 3, 4}, "since=2026-11-22T03:01:00Z&until=2026-11-22T03:03:00Z&from=4", "4 6"},
		{[]int{1, 2, 3, 4}, "since=2026-11-22T03:05:00Z", ""},
		{[]int{1, 2, 3, 4}, "until=2026-11-22T03:00:00Z", ""},
		{[]int{1, 3, 2, 4}, "until=2026-11-22T03:02:00Z", "2 4 6"}, // the entry of 03:03 is before that of 03:02
		{[]int{1, 3, 2, 4}, "since=2026-11-22T03:03:00Z", "8"},
		// a clock that is ahead spoils no other's time
		{[]int{1, 2, 58, 3, 4, 5}, "since=2026-11-22T03:04:00Z", "10 12"},
		{[]int{1, 2, 58, 3, 4, 5}, "since=2026-11-22T03:03:00Z", "6 8 10 12"},
		{[]int{1, 2, 58, 3, 4, 5}, "until=2026-11-22T03:03:00Z", "2 4 6 8"},
		{[]int{11, 12, 1, 13, 14}, "until=2026-11-22T03:11:00Z", "2"}, // nor one that is behind
		{[]int{11, 12, 1, 13, 14}, "since=2026-11-22T03:13:00Z", "8 10"},
		{[]int{2, 2, 2}, "since=2026-11-22T03:02:00Z&until=2026-11-22T03:02:00Z", "2 4 6"},
		// an unknown time is between its neighbours
		{[]int{-1, 1, -1, 3, -1}, "since=2026-11-22T03:01:00Z", "4 6 8 10"},
		{[]int{-1, 1, -1, 3, -1}, "until=2026-11-22T03:02:00Z", "2 4"},
		{[]int{-1, -1}, "since=2026-11-22T03:01:00Z", ""},
	} {
		w := call(serving(t, timed(t, tt.minutes...)), "GET", "/api/v1/cluster/log?"+tt.query)
		var have []string
		for line := range strings.Lines(w.Body.String()) {
			e, err := cluster.ParseEntry([]byte(line))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			have = append(have, fmt.Sprint(e.Position))
		}
		if got := strings.Join(have, " "); w.Code != 200 || got != tt.want {
			t.Errorf("minutes %v, %s: %d, the positions %s; want %s", tt.minutes, tt.query, w.Code, got, tt.want)
		}
	}
}

// An entry whose time the others contradict has the time that they let be closest to it, and no other entry has one,
// wherever the answer begins and whenever the entry comes.
func TestLogDoubts(t *testing.T) {
	doubts := func(lines string) (found string) {
		for line := range strings.Lines(lines) {
			var e struct {
				Position int
				Believed string
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if _, err := cluster.ParseEntry([]byte(line)); err != nil {
				t.Error(err)
			}
			if e.Believed != "" {
				found += fmt.Sprintf("%d %s ", e.Position, e.Believed)
			}
		}
		return found
	}
	for _, tt := range []struct {
		minutes []int
		query   string
		want    string
	}{
		{[]int{1, 2, 3, 4}, "", ""},
		{[]int{1, 2, 58, 3, 4, 5}, "", "6 2026-11-22T03:03:00.000Z "},
		{
			[]int{1, 2, 58, 3, 4, 5},
			"?since=2026-11-22T03:02:00Z&until=2026-11-22T03:03:00Z",
			"6 2026-11-22T03:03:00.000Z ",
		},
		{[]int{11, 12, 1, 13, 14}, "?from=6", "6 2026-11-22T03:12:00.000Z "},
		{[]int{11, 12, 1, 13, 14}, "?from=7", ""},
		{[]int{-1, 1, -1, 3, -1}, "", ""},
	} {
		if w := call(serving(t, timed(t, tt.minutes...)), "GET", "/api/v1/cluster/log"+tt.query); w.Code != 200 ||
			doubts(w.Body.String()) != tt.want {
			t.Errorf("minutes %v%s: %d %s\nwant %s", tt.minutes, tt.query, w.Code, w.Body, tt.want)
		}
	}

	log := timed(t, 11, 12)
	server := httptest.NewServer(serving(t, log))
	t.Cleanup(server.Close)
	lines, _ := follow(t, server.URL+"/api/v1/cluster/log?follow=1&from=4")
	next(t, lines, `{"position":4,`)
	appendAt(log, time.Date(2026, 11, 22, 3, 1, 0, 0, time.UTC), cluster.PeerGC{By: "a"})
	next(t, lines,
		`{"position":6,"at":"2026-11-22T03:01:00.000Z","command":"peer-gc","args":{"by":"a"},`+
			`"believed":"2026-11-22T03:12:00.000Z"}`)
}

// A call that follows the log gets what comes after its first entry whatever its time.
func TestFollowSince(t *testing.T) {
	log := timed(t, 1, 5)
	server := httptest.NewServer(serving(t, log))
	t.Cleanup(server.Close)
	lines, _ := follow(t, server.URL+"/api/v1/cluster/log?follow=1&since=2026-11-22T03:05:00Z")
	next(t, lines, `{"position":4,"at":"2026-11-22T03:05:00.000Z",`)
	for _, minute := range []int{4, 6} {
		appendAt(log, time.Date(2026, 11, 22, 3, minute, 0, 0, time.UTC), cluster.PeerGC{By: "a"})
	}
	next(t, lines, `{"position":6,"at":"2026-11-22T03:04:00.000Z",`)
}

// A log that may have had earlier entries of the span is told to begin late.
func TestCutLogByTime(t *testing.T) {
	log := timed(t, 1, 2, 3, 4)
	log.Cut(4)
	for query, want := range map[string]string{
		"since=2026-11-22T03:02:00Z":         "4",
		"since=2026-11-22T03:03:00Z":         "4", // there may be more
		"since=2026-11-22T03:04:00Z":         "",
		"since=2026-11-22T03:03:00Z&from=5":  "",
		"until=2026-11-22T03:02:00Z":         "4",
		"until=2026-11-22T03:04:00Z&from=5":  "",
		"since=2026-11-22T03:05:00Z&from=10": "",
	} {
		w := call(serving(t, log), "GET", "/api/v1/cluster/log?"+query)
		if got := w.Header().Get(httpapi.LogBeginsAfter); w.Code != 200 || got != want {
			t.Errorf("%s = %d, begins after %q; want %q", query, w.Code, got, want)
		}
	}
}

// The value at a time is that after the last entry of the log that is not later.
func TestValueByTime(t *testing.T) {
	const before = "the log has no entry from 2026-11-22T03:00:00Z or before; want 2026-11-22T03:01:00Z (position "
	for _, tt := range []struct {
		minutes []int
		at      string
		status  int
		want    string
	}{
		{[]int{1, 2, 3}, "03:02:00Z", 200, `{"position":4,"at":"2026-11-22T03:02:00Z","value":`},
		{[]int{1, 2, 3}, "03:02:59.999Z", 200, `{"position":4,`},
		{[]int{1, 2, 3}, "04:02:59.999%2B01:00", 200, `{"position":4,`},
		{[]int{1, 2, 3}, "23:00:00Z", 200, `{"position":6,`},
		{[]int{1, 2, 2, 3}, "03:02:00Z", 200, `{"position":6,`}, // the last of those with the same time
		{[]int{1, 3, 2, 4}, "03:02:00Z", 200, `{"position":6,`},
		{[]int{1, 3, 2, 4}, "03:03:00Z", 200, `{"position":6,"at":"2026-11-22T03:02:00Z","value":`},
		{[]int{-1, 1, -1, 3}, "03:02:00Z", 200, `{"position":4,`},
		{[]int{1, 2, 58, 3, 4}, "03:03:00Z", 200, `{"position":8,`},
		{[]int{58, 1, 2}, "03:00:00Z", 404, before + "2) or later"},
		{[]int{1, 2, 3}, "03:00:00Z", 404, before + "2) or later"},
		{[]int{-1, 1, 2}, "03:00:00Z", 404, before + "4) or later"},
	} {
		w := call(serving(t, timed(t, tt.minutes...)), "GET", "/api/v1/cluster/value?at=2026-11-22T"+tt.at)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("minutes %v at %s = %d %s; want %d %s", tt.minutes, tt.at, w.Code, w.Body, tt.status, tt.want)
		}
	}
	w := call(serving(t, timed(t, 1, -1)), "GET", "/api/v1/cluster/value?at=4")
	if !strings.HasPrefix(w.Body.String(), `{"position":4,"value":`) {
		t.Errorf("the value after an entry of an unknown time is %s", w.Body)
	}
}

// A log that was cut is told as such, and the value where it was cut is the first that is known.
func TestCutLog(t *testing.T) {
	log := example(t)
	log.Cut(4)
	h := serving(t, log)
	for _, tt := range []struct {
		target string
		status int
		body   string
		after  string
	}{
		{
			"/value?at=3", 404,
			`{"error":{"code":"unknown_position","message":"the log no longer has position 3; want 4 to 16"}}`, "",
		},
		{
			"/value?at=17", 404,
			`{"error":{"code":"unknown_position","message":"the log does not have position 17 yet; want 4 to 16"}}`,
			"",
		},
		{"/value?at=4", 200, pendingValue, ""},
		{"/value?at=16", 200, valueOfExample, ""},
		{"/log", 200, `{"position":6,`, "4"},
		{"/log?from=4", 200, `{"position":6,`, "4"},
		{"/log?from=5", 200, `{"position":6,`, ""},
		{"/log?from=8", 200, `{"position":8,`, ""},
	} {
		w := call(h, "GET", "/api/v1/cluster"+tt.target)
		if w.Code != tt.status || !strings.HasPrefix(w.Body.String(), tt.body) ||
			w.Header().Get(httpapi.LogBeginsAfter) != tt.after {
			t.Errorf("%s = %d %v %s\nwant %d %s", tt.target, w.Code, w.Header(), w.Body, tt.status, tt.body)
		}
	}
	log.Cut(16)
	if w := call(h, "GET", "/api/v1/cluster/value?at=16"); w.Body.String() != valueOfExample+"\n" {
		t.Errorf("with a checkpoint only: %d %s", w.Code, w.Body)
	}
}

// A long log arrives whole, also where it is written in pieces.
func TestLongLog(t *testing.T) {
	log := newLog(t, cluster.PrepareJoin{Joiner: "a"})
	for range 2000 {
		log.Put("another", "key")
		log.Append(cluster.PeerGC{By: strings.Repeat("<", 50)})
	}
	var v cluster.Value
	lines := call(serving(t, log), "GET", "/api/v1/cluster/log").Body
	for text := range strings.Lines(lines.String()) {
		e, err := cluster.ParseEntry([]byte(text))
		if err != nil || e.Position != v.Position()+2 {
			t.Fatalf("%s after %d: %v", text, v.Position(), err)
		}
		v, _ = cluster.Apply(v, e)
	}
	if v.Position() != 4002 {
		t.Errorf("it ends at %d, want 4002", v.Position())
	}
}

// What the store tells of those behind the IDs is added to the status, and left out when it tells nothing.
func TestStatusWithPulses(t *testing.T) {
	log := example(t)
	log.SetPulses(map[string]peer.Pulse{"a": {Owner: "host-a"}, "c": {}})
	answer := httptest.NewRecorder()
	serving(t, log).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/cluster", nil))
	for _, want := range []string{
		`{"id":"a","watches":"b","joined":2,"alive":true,"owner":"host-a","fresh":true}`,
		`{"id":"b","watches":"a","joined":8,"alive":false,"fresh":false}`,
		`{"joiner":"c","target":"a","phase":"prepared","alive":true,"fresh":true}`,
	} {
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("the status is %s; want it to hold %s", answer.Body, want)
		}
	}
}

func TestNoLook(t *testing.T) {
	fail := func(log *servertest.Told, err error) *peer.Member {
		log.Fail(err)
		return log.Member
	}
	busy := fmt.Errorf("%w: too busy", store.ErrUnavailable)
	damaged, foreign := example(t), newLog(t, cluster.PrepareJoin{Joiner: "a"})
	damaged.CutTo(4, []byte("{}"))
	foreign.Put("another", "key")
	foreign.AppendData([]byte(`{"version":3}`))
	foreign.Put("another", "key")
	foreign.Append(cluster.PeerGC{By: "a"})
	for _, tt := range []struct {
		name    string
		cluster *peer.Member
		target  string
		status  int
		says    string
	}{
		{"no store", servertest.Waiting(t, "no answer"), "", 503, "has not read the log"},
		{"no store", servertest.Waiting(t, "no answer"), "/value", 503, "store is not open"},
		{"no store", servertest.Waiting(t, "no answer"), "/log", 503, "store is not open"},
		{"nothing read", newLog(t).Member, "", 503, "has not read the log"},
		{"nothing read", newLog(t).Member, "/value", 503, "has not read the log"},
		{
			"unavailable", fail(example(t), busy), "", 200,
			`"store":{"reached":false,"answered":"now","why":"the store is unavailable: too busy"}`,
		},
		{"unavailable", fail(example(t), busy), "/value", 200, valueOfExample},
		{
			"unavailable", fail(newLog(t), busy), "/value?at=2", 503,
			`"unavailable","message":"the store is unavailable: too busy"`,
		},
		{"unavailable", fail(newLog(t), busy), "/log", 503, `"unavailable"`},
		{"unavailable", fail(newLog(t), busy), "/log?follow=1", 503, `"unavailable"`},
		{"refused", fail(newLog(t), store.ErrRefused), "/value?at=2", 500, `"internal"`},
		{"refused", fail(newLog(t), store.ErrRefused), "/log", 500, `"internal"`},
		{
			"damaged", damaged.Member, "/value?at=6", 500,
			`"unreadable","message":"the checkpoint at position 4: unreadable: a checkpoint of version 0;`,
		},
		{"damaged", damaged.Member, "/log", 200, `{"position":6,`},
		{
			"foreign", foreign.Member, "/value?at=6", 500,
			`"unreadable","message":"the entry at position 4: unreadable: version 3;`,
		},
		{"foreign", foreign.Member, "/value?at=3", 200, aloneValue},
		{
			"foreign", foreign.Member, "/log", 200,
			`{"position":4,"unreadable":"version 3; this program reads versions 1 to 2"}`,
		},
	} {
		var log bytes.Buffer
		h := newHandler(t, &servertest.Issuer{Same: true}, tt.cluster, slog.New(slog.NewTextHandler(&log, nil)))
		w := call(h, "GET", "/api/v1/cluster"+tt.target)
		if w.Code != tt.status || !strings.Contains(undated(w.Body.String()), tt.says) {
			t.Errorf("%s: GET %s = %d %s\nwant %d %s", tt.name, tt.target, w.Code, w.Body, tt.status, tt.says)
		}
		if (log.Len() > 0) != (tt.status == 500) {
			t.Errorf("%s: GET %s was logged as %q", tt.name, tt.target, &log)
		}
	}
}

// A store that does not answer is not waited for without end.
func TestSilentStore(t *testing.T) {
	for _, target := range []string{"/value?at=2", "/log", "/log?follow=1"} {
		synctest.Test(t, func(t *testing.T) {
			log, began := newLog(t), time.Now()
			log.Store.Inject(func(c memstore.Call) (f memstore.Fault) {
				if c.Op == memstore.Read || c.Op == memstore.Follow {
					f.Delay = time.Hour
				}
				return f
			})
			w := call(serving(t, log), "GET", "/api/v1/cluster"+target)
			if took := time.Since(began); w.Code != 503 || !strings.Contains(w.Body.String(), `"unavailable"`) ||
				took != 3*time.Second {
				t.Errorf("%s = %d %s after %v", target, w.Code, w.Body, took)
			}
		})
	}
}

// follow follows a log over a connection of its own.
func follow(t *testing.T, url string) (lines *bufio.Scanner, end context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		response.Body.Close()
		client.CloseIdleConnections()
	})
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	return bufio.NewScanner(response.Body), cancel
}

func next(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("the stream has ended: %v; want %s", lines.Err(), want)
	}
	if !strings.HasPrefix(lines.Text(), want) {
		t.Errorf("have %s\nwant %s", lines.Text(), want)
	}
}

// Who follows the log gets what is there at once and each entry as it comes, for longer than other calls may take;
// and is told when the server ends.
func TestFollow(t *testing.T) {
	log := newLog(t, cluster.PrepareJoin{Joiner: "a"})
	h := serving(t, log)
	server := httptest.NewUnstartedServer(h)
	// shorter than the streams below, and long enough for a busy machine to send a call
	server.Config.ReadTimeout = time.Second
	server.Config.WriteTimeout = server.Config.ReadTimeout
	server.Start()
	t.Cleanup(server.Close)
	lines, _ := follow(t, server.URL+"/api/v1/cluster/log?follow=1")
	next(t, lines, `{"position":2,`)
	others, _ := follow(t, server.URL+"/api/v1/cluster/log?follow=1&from=5")
	none, end := follow(t, server.URL+"/api/v1/cluster/log?follow=1&from=100")

	// A connection that says nothing is closed once the time is over that a call may take.
	idle, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if _, err := io.ReadAll(idle); err != nil {
		t.Fatal(err)
	}

	for position := 4; position <= 8; position += 2 {
		appendAt(log, time.Time{}, cluster.PeerGC{By: "a"})
		next(t, lines, fmt.Sprintf(`{"position":%d,`, position))
	}
	next(t, others, `{"position":6,`)
	next(t, others, `{"position":8,`)
	end()
	if none.Scan() {
		t.Errorf("from 100 on there is %s", none.Text())
	}
	h.Drain()
	for _, l := range []*bufio.Scanner{lines, others} {
		next(t, l, `{"error":{"code":"not_ready","message":"not ready to make IDs: it is shutting down"}}`)
		if l.Scan() || l.Err() != nil {
			t.Errorf("after the end there is %q, %v", l.Text(), l.Err())
		}
	}
	log.Unfollowed() // nobody follows for clients that are gone
	if w := call(h, "GET", "/api/v1/cluster/log?follow=1"); w.Code != 503 ||
		!strings.Contains(w.Body.String(), "shutting down") {
		t.Errorf("while draining: %d %s", w.Code, w.Body)
	}
	if w := call(h, "GET", "/api/v1/cluster/log"); w.Code != 200 {
		t.Errorf("while draining: %d %s", w.Code, w.Body)
	}
}

// Entries that are dropped before they were read are not left out in silence.
func TestFollowFallsBehind(t *testing.T) {
	log := example(t)
	server := httptest.NewServer(serving(t, log))
	t.Cleanup(server.Close)
	lines, _ := follow(t, server.URL+"/api/v1/cluster/log?follow=1&from=16")
	next(t, lines, `{"position":16,`)
	log.Store.CutOff(true)
	log.Cut(log.Append(cluster.PeerGC{By: "a"}))
	log.Store.CutOff(false)
	next(t, lines,
		`{"error":{"code":"unknown_position","message":"the log was trimmed while this call followed it, and entries `+
			`are missing here; call again"}}`)
	if lines.Scan() {
		t.Errorf("after the end there is %s", lines.Text())
	}
}

// An error ends the stream with its reason.
func TestFollowFails(t *testing.T) {
	log := example(t)
	server := httptest.NewServer(serving(t, log))
	t.Cleanup(server.Close)
	lines, _ := follow(t, server.URL+"/api/v1/cluster/log?follow=1&from=16")
	next(t, lines, `{"position":16,`)
	log.Fail(errors.New("surprise"))
	log.Append(cluster.PeerGC{By: "a"})
	next(t, lines, `{"error":{"code":"internal","message":"surprise"}}`)
}

// Many who look at the log don't keep others from getting IDs, nor this server's store busy.
func TestManyLook(t *testing.T) {
	log := example(t)
	h := serving(t, log)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for range 64 {
		follow(t, server.URL+"/api/v1/cluster/log?follow=1")
	}
	for target, want := range map[string]int{
		"GET /api/v1/cluster/log": 503, "GET /api/v1/cluster/value?at=2": 503, "GET /api/v1/cluster": 200,
		"POST /api/v1/id": 200,
	} {
		method, path, _ := strings.Cut(target, " ")
		if w := call(h, method, path); w.Code != want ||
			want == 503 && !strings.Contains(w.Body.String(), `"overloaded"`) {
			t.Errorf("%s = %d %s, want %d", target, w.Code, w.Body, want)
		}
	}
	h.Drain()
	log.Unfollowed()
}
