package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/replay"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
)

// looked is a cluster to look at: a member that has replayed a log to its end.
type looked struct {
	*servertest.Told
	service *calls.Service
	url     string
}

// newLooked serves a cluster of two whose second member has a name that is hard to print, with a third about to
// join, and a sequencer with one node ID for both.
func newLooked(t *testing.T) *looked {
	l := &looked{Told: servertest.Tell(t, "c")}
	for _, entry := range []string{
		`{"position":1,"command":"prepare-join-cluster","args":{"joiner":"a"}}`,
		`{"position":2,"at":"2026-11-22T03:02:00.123Z","command":"prepare-join-cluster",` +
			`"args":{"joiner":"b\u001b[2J"}}`,
		`{"position":3,"at":"2026-11-22T03:03:00.000Z","command":"notify-watchers","args":{"joiner":"b\u001b[2J"}}`,
		`{"position":4,"at":"2026-11-22T03:04:00.000Z","command":"accept-join-cluster","args":{"joiner":"b\u001b[2J"}}`,
		`{"position":5,"at":"2026-11-22T03:05:00.000Z","command":"create-sequencer","args":{"sequencer":"orders",` +
			`"definition":{"nodes":1,"allocation":{"kind":"percent","percent":50}}}}`,
		`{"position":6,"at":"2026-11-22T03:06:00.000Z","command":"attach","args":{"sequencer":"orders","member":"a"}}`,
		`{"position":7,"at":"2026-11-22T03:07:00.000Z","command":"attach","args":{"sequencer":"orders",` +
			`"member":"b\u001b[2J","from":0,"to":0}}`,
		`{"position":8,"at":"2026-11-22T03:08:00.000Z","command":"create-sequencer","args":{"sequencer":"users",` +
			`"definition":{"nodes":1000}}}`,
		`{"position":9,"at":"2026-11-22T03:09:00.000Z","command":"prepare-join-cluster","args":{"joiner":"c"}}`,
		`{"position":10,"at":"2026-11-22T03:10:00.000Z","command":"notify-watchers","args":{"joiner":"c"}}`,
	} {
		l.add(t, entry)
	}
	l.SetPulses(map[string]peer.Pulse{"a": {Owner: "host-a"}, "c": {Owner: "host-c\x1b"}})
	l.service = calls.New(l.Member, calls.Options{Default: &servertest.Issuer{Err: peer.ErrNotReady}})
	serves := httptest.NewServer(httpapi.New(l.service, &auth.Policy{Trusted: true}))
	t.Cleanup(serves.Close)
	l.url = serves.URL
	return l
}

// add appends an entry, which must get the position that it has.
func (l *looked) add(t *testing.T, entry string) {
	t.Helper()
	e, err := cluster.ParseEntry([]byte(entry))
	if err != nil {
		t.Fatal(err)
	}
	if l.ApplyAt(e.At, e.Command); l.Value().Position() != e.Position {
		t.Fatalf("applied at %d; want %d", l.Value().Position(), e.Position)
	}
}

// firn runs a command that asks the server.
func (l *looked) firn(t *testing.T, args string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	status = run(t.Context(), strings.Fields(args), []string{"FIRN_ADMIN=" + l.url}, strings.NewReader(""), &out, &errs)
	return status, out.String(), errs.String()
}

const (
	statusText = `PROBLEM  WHAT, SINCE WHEN, WHY, AND WHAT TO DO
warning  member b?[2J is gone: its pulse has ended, and it is still in the cluster. If nobody stopped it, start it again; the other members remove it from the cluster. https://github.com/firn-id/firn/blob/main/docs/problems.md#gone

cluster     fj4ltw4x
position    10, after 10 entries
told by     c
nodes       1 alive, 1 gone; 0 IDs/s
sequencers  2, with 1 node IDs in use and 1 wanted; --sequencers shows them

NODE    MEMBER      STATE  IDS/S  CLOCK  LEFT  STORE  UP  SEEN
host-a  a           alive      -      -     -      -   -     -
-       "b\x1b[2J"  gone       -      -     -      -   -     -

JOINER  TARGET      PHASE     OWNER
c       "b\x1b[2J"  accepted  "host-c\x1b"

SEQUENCER  NODE IDS  FREE  IDS/S  FOR                 LAYOUT
orders            1     0      -  50% of the members  41/0/22, tick 1ms, epoch 2026-01-01T00:00:00Z
users          1024  1024      -  all members         41/10/12, tick 1ms, epoch 2026-01-01T00:00:00Z

SEQUENCER  NODE ID  HOLDER
orders           0  a
orders     waiting  "b\x1b[2J"
`
	valueText = `position  6
time      2026-11-22 03:06:00.000

MEMBER      WATCHES
a           "b\x1b[2J"
"b\x1b[2J"  a

SEQUENCER  NODE ID  HOLDER
orders           0  a
`
	logText = `LOCAL TIME               POSITION  WHAT HAPPENED
unknown                         1  a asks to join
2026-11-22 03:02:00.123         2  "b\x1b[2J" asks to join
2026-11-22 03:03:00.000         3  "b\x1b[2J" watches its target, and waits to be watched
2026-11-22 03:04:00.000         4  "b\x1b[2J" is watched, and is a member now
2026-11-22 03:05:00.000         5  orders is created: 1 node for 50% of the members, layout 41/0/22, tick 1ms, epoch 2026-01-01T00:00:00Z
2026-11-22 03:06:00.000         6  a wants a node ID of orders
2026-11-22 03:07:00.000         7  "b\x1b[2J" wants a node ID of orders, from 0 to 0
2026-11-22 03:08:00.000         8  users is created: 1000 nodes for all members, layout 41/10/12, tick 1ms, epoch 2026-01-01T00:00:00Z
2026-11-22 03:09:00.000         9  c asks to join
2026-11-22 03:10:00.000        10  c watches its target, and waits to be watched
`
	logHead = "LOCAL TIME               POSITION  WHAT HAPPENED\n"
)

// What people see of a cluster.
func TestLookAsText(t *testing.T) {
	l := newLooked(t)
	for _, tt := range []struct {
		args string
		want string // the beginning
	}{
		{"cluster status --sequencers", statusText},
		{"cluster value --at 6", valueText},
		{"cluster value --at 0", "position  0\n\nno members\n"},
		{
			"cluster value --at 2",
			"position  2\ntime      2026-11-22 03:02:00.123\n\nMEMBER  WATCHES\na       nobody\n\n" +
				"JOINER      TARGET  PHASE\n\"b\\x1b[2J\"  a       prepared\n",
		},
		{"cluster value", "position  10\n\n"},
		{"cluster log", logText},
		{"cluster log --from 9", logHead +
			"2026-11-22 03:09:00.000         9  c asks to join\n2026-11-22 03:10:00.000        10  c watches"},
		{"cluster log --since 2026-11-22T03:10:00Z", logHead + "2026-11-22 03:10:00.000        10  c watches"},
		{"cluster log --until 2026-11-22T03:01:59Z", "no entries\n"},
		{
			"cluster value --at 2026-11-22T03:02:30Z",
			"position  2\ntime      2026-11-22 03:02:00.123\n\nMEMBER  WATCHES\na       nobody\n",
		},
		{"cluster log --from 11", "no entries\n"},
		{"cluster log --from 11 --json", ""},
	} {
		if status, out, errs := l.firn(t, tt.args); status != 0 || errs != "" || !strings.HasPrefix(out, tt.want) ||
			tt.want == "" && out != "" {
			t.Errorf("firn %s: status %d, %s\nhave %s\nwant %s", tt.args, status, errs, out, tt.want)
		}
	}
	l.Cut(4)
	if _, out, _ := l.firn(t, "cluster log"); !strings.HasPrefix(out,
		"the log begins after position 4: members dropped earlier entries; firn cluster value --at 4 shows what they "+
			"led to\n"+logHead) {
		t.Errorf("the log that was cut: %s", out)
	}
	if _, out, _ := l.firn(t, "cluster log --from 5"); !strings.HasPrefix(out, logHead) {
		t.Errorf("the log after it was cut: %s", out)
	}
}

// What a node answers from its memory, as the store does not answer, is marked with its age on standard error.
func TestLookFromMemory(t *testing.T) {
	began := time.Now().Truncate(time.Millisecond)
	l := newLooked(t)
	said := regexp.MustCompile(`^firn: the store does not answer: this is from the node's memory, as of ` +
		`(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3})\n$`)
	wants := map[string]string{}
	for _, args := range []string{
		"cluster log", "cluster log --json", "cluster value", "cluster value --json",
		"cluster value --at 7",
	} {
		_, want, errs := l.firn(t, args)
		if errs != "" {
			t.Errorf("firn %s says %s", args, errs)
		}
		wants[args] = want
	}
	l.Fail(store.ErrUnavailable)
	failed := time.Now()
	for l.service.RecentIfSilent().IsZero() { // until the member's pulse is overdue
		if time.Since(failed) > time.Minute {
			t.Fatal("the node does not notice that the store does not answer")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for args, want := range wants {
		status, out, errs := l.firn(t, args)
		m := said.FindStringSubmatch(errs)
		if status != 0 || out != want || m == nil {
			t.Errorf("firn %s: status %d, %s\nhave %s\nwant %s", args, status, errs, out, want)
			continue
		}
		if at, err := time.ParseInLocation(localFormat, m[1], time.Local); err != nil || at.Before(began) ||
			at.After(failed) {
			t.Errorf("firn %s is as of %s, %v; want when the store last answered, from %v to %v", args, m[1],
				err, began, failed)
		}
	}
}

// Decode warns once of each node ID that no member ever had.
func TestDecodeNeverHeld(t *testing.T) {
	l := newLooked(t) // of users nobody has a node ID
	for args, want := range map[string]int{
		"orders 5":                              0, // a has its only one
		"users 8192":                            1,
		"users 8192 8193":                       1,
		"users 8192 8193 4096 0":                3,
		"users --form decimal 1234567890123456": 1, // which may be hexadecimal
		"users --json 8192":                     1,
		"users --json 8192 12288":               2,
	} {
		status, out, errs := l.firn(t, "decode --server "+l.url+" --sequencer "+args)
		const says = "no member holds, or ever held, node ID"
		if status != 0 || strings.Count(errs, says) != want || strings.Count(errs, "\n") != want ||
			strings.Contains(args, "json") && strings.Count(out, `"never_held":true`) != want {
			t.Errorf("decode %s: status %d, %s%s; want %d warnings", args, status, out, errs, want)
		}
	}
}

// A time that the neighbours of an entry contradict is marked, and theirs are not.
func TestLogMarksWrongTimes(t *testing.T) {
	l := newLooked(t)
	for i, at := range []string{"05:11", "03:12", "01:00", "03:13"} {
		l.add(t, fmt.Sprintf(`{"position":%d,"at":"2026-11-22T%s:00.000Z","command":"peer-gc","args":{"by":"a"}}`,
			12+i, at))
	}
	const want = logHead + `2026-11-22 03:10:00.000        10  c watches its target, and waits to be watched
2026-11-22 05:11:00.000        12  a looks for dead members [clock ahead: sent by 2026-11-22 03:12:00.000]
2026-11-22 03:12:00.000        13  a looks for dead members
2026-11-22 01:00:00.000        14  a looks for dead members [late clock: sent from 2026-11-22 03:12:00.000 on]
2026-11-22 03:13:00.000        15  a looks for dead members
`
	if status, out, errs := l.firn(t, "cluster log --from 10"); status != 0 || errs != "" || out != want {
		t.Errorf("status %d, %s\nhave %s\nwant %s", status, errs, out, want)
	}
	var out strings.Builder
	if _, log, _ := l.firn(t, "cluster log --json"); replay.Run(strings.NewReader(log), "log", &out) != nil ||
		!strings.Contains(log, `"believed"`) {
		t.Errorf("it can't be replayed: %s", log)
	}
}

// A status that has a problem ends with status 1 if that is asked for, whatever it prints; sequencers are listed only
// if they are.
func TestStatusExits(t *testing.T) {
	l := newLooked(t)
	for args, want := range map[string]int{
		"cluster status": 0, "cluster status --exit-code": statusFailure,
		"cluster status --exit-code --json": statusFailure,
	} {
		status, out, errs := l.firn(t, args)
		if status != want || errs != "" || out == "" ||
			!strings.Contains(args, "--json") && strings.Contains(out, "orders") {
			t.Errorf("%s: status %d, want %d, %s%s", args, status, want, errs, out)
		}
	}
}

// What programs see is what the server answers, and the log replays to the value that the server has.
func TestLookAsJSON(t *testing.T) {
	l := newLooked(t)
	for args, path := range map[string]string{
		"cluster status --json":       "/api/v1/cluster",
		"cluster value --json":        "/api/v1/cluster/value",
		"cluster value --json --at 7": "/api/v1/cluster/value?at=7",
		"cluster log --json":          "/api/v1/cluster/log",
		"cluster log --json --from 3": "/api/v1/cluster/log?from=3",
	} {
		_, body, err := request(http.MethodGet, l.url+path)
		undated := func(answer string) string {
			return regexp.MustCompile(`"(at|as_of)":"[^"]*"`).ReplaceAllString(answer, "")
		}
		if status, out, errs := l.firn(t, args); err != nil || status != 0 || errs != "" ||
			undated(out) != undated(string(body)) || out == "" {
			t.Errorf("firn %s: status %d, %s\nhave %s\nwant %s, %v", args, status, errs, out, body, err)
		}
	}
	_, log, _ := l.firn(t, "cluster log --json")
	var out strings.Builder
	if err := replay.Run(strings.NewReader(log), "log", &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	_, value, _ := l.firn(t, "cluster value --json")
	if want := strings.Replace(value, `,"value"`, `,"outcome":"applied","value"`, 1); lines[len(lines)-1]+"\n" != want {
		t.Errorf("the log replays to %s\nwant %s", lines[len(lines)-1], want)
	}

	l.Cut(4)
	status, log, errs := l.firn(t, "cluster log --json")
	if status != 0 || !strings.HasPrefix(log, `{"position":5,`) ||
		errs != "firn: the log begins after position 4: members dropped earlier entries; firn cluster value --at 4 "+
			"shows what they led to\n" {
		t.Errorf("the log that was cut: status %d, %s%s", status, errs, log)
	}
}

func TestLookInVain(t *testing.T) {
	l := newLooked(t)
	l.Cut(4)
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{
			"cluster value --at 3", statusFailure,
			"answers: the log no longer has position 3; want 4 to 10 (unknown_position)",
		},
		{
			"cluster value --at 11", statusFailure,
			"answers: the log does not have position 11 yet; want 4 to 10 (unknown_position)",
		},
		{
			"cluster value --at -1", statusUsage,
			`--at: "-1" is neither a position nor a time; want a whole number from 0, or such as 03:12`,
		},
		{
			"cluster value --at 2026-11-22T03:03:00Z", statusFailure,
			"answers: the log has no entry from 2026-11-22T03:03:00Z or before; want 2026-11-22T03:05:00Z (position " +
				"5) or later (unknown_position)",
		},
		{"cluster log --since noon", statusUsage, `--since: "noon" is not a time; want one such as 03:12`},
		{"cluster log --until 25:00", statusUsage, `--until: "25:00" is not a time; want one such as 03:12`},
		{"cluster log --since 5m --until 10m", statusUsage, `want a later time`},
		{
			"cluster log --until 5m --follow", statusUsage,
			`--until and --follow: --follow prints without end; leave one of them out`,
		},
		{"cluster log --from x", statusUsage, `--from: "x" is not right; want a whole number from 0`},
		{"cluster status now", statusUsage, "firn cluster status takes no arguments"},
		{"cluster status --admin ftp://a", statusUsage, "not a URL of a server"},
		{"cluster status --admin http://127.0.0.1:1", statusFailure, "--admin or FIRN_ADMIN says where to ask\n"},
		{"cluster log --admin http://127.0.0.1:1", statusFailure, "--admin or FIRN_ADMIN says where to ask\n"},
	} {
		status, out, errs := l.firn(t, tt.args)
		if status != tt.status || !strings.Contains(errs, tt.says) || strings.Count(errs, "\n") != 1 || out != "" {
			t.Errorf("firn %s: status %d, %q, %q; want %d, %q", tt.args, status, out, errs, tt.status, tt.says)
		}
	}
}

// A time of day ends a span that begins on another day, on that day.
func TestLookAtAnotherDay(t *testing.T) {
	var o logOptions
	for text, i := range map[string]*setting.Instant{
		"2026-01-01T03:00:00Z": &o.since,
		time.Date(2026, 1, 1, 3, 20, 0, 0, time.UTC).Local().Format("15:04"): &o.until,
	} {
		var err error
		if *i, err = setting.ParseInstant(text); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := o.path(); err != nil ||
		!strings.HasSuffix(path, "&since=2026-01-01T03%3A00%3A00Z&until=2026-01-01T03%3A20%3A00Z") {
		t.Errorf("%s, %v", path, err)
	}
}

// Who follows the log sees each entry as it comes. It ends with the server, which is told with how to go on, or
// when it is interrupted.
func TestFollowLog(t *testing.T) {
	for _, flags := range []string{"", " --json"} {
		l := newLooked(t)
		read, stdout := io.Pipe()
		var stderr bytes.Buffer
		done := make(chan int, 1)
		go func() {
			args := "cluster log --follow --from 10 --admin " + l.url + flags
			done <- run(t.Context(), strings.Fields(args), nil, strings.NewReader(""), stdout, &stderr)
			stdout.Close()
		}()
		lines := bufio.NewScanner(read)
		next := func(want ...string) {
			for _, want := range want {
				if !lines.Scan() || !strings.HasPrefix(strings.TrimSpace(lines.Text()), want) {
					t.Fatalf("have %q, %v; want %s", lines.Text(), lines.Err(), want)
				}
			}
		}
		accept := `{"position":12,"at":"2026-11-22T03:11:00.000Z","command":"accept-join-cluster",` +
			`"args":{"joiner":"c"}}`
		if flags == "" {
			next("LOCAL TIME", "2026-11-22 03:10:00.000        10  c watches its target")
			l.add(t, accept)
			next("2026-11-22 03:11:00.000        12  c is watched, and is a member now")
		} else {
			next(`{"position":10,`)
			l.add(t, accept)
			next(accept)
		}
		l.service.Drain()
		if lines.Scan() {
			t.Errorf("after the end there is %s", lines.Text())
		}
		want := fmt.Sprintf("firn: the server %s ends the log: %s: it is shutting down (not_ready); go on with "+
			"--from 13\n", l.url, peer.ErrNotReady)
		if status := <-done; status != statusFailure || stderr.String() != want {
			t.Errorf("status %d, %s\nwant %s", status, &stderr, want)
		}
	}

	l := newLooked(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	read, stdout := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"cluster", "log", "--follow", "--admin", l.url}, nil, strings.NewReader(""),
			stdout, io.Discard)
	}()
	if _, err := read.Read(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, read) }() // it may write several times
	interrupt(signalError{})
	if status := <-done; status != statusInterrupted {
		t.Errorf("interrupted: status %d", status)
	}
}

// What is no log of a firn server is an error that says so, after what was fine.
func TestStrangeLogs(t *testing.T) {
	const (
		entry = `{"position":7,"command":"peer-gc","args":{"by":"a"}}` + "\n"
		newer = `{"position":8,"command":"dance","args":{"with":"a"}}` + "\n"
		text  = logHead + "unknown                         7  a looks for dead members\n"
	)
	for _, tt := range []struct {
		body  string
		lines int // of them that are entries
		text  string
		says  string
	}{
		{entry, 1, text, ""},
		{
			entry + `{"position":8,"unreadable":"version 2"}`, 2,
			text + "unknown                         8  the server can't read this entry: \"version 2\"", "",
		},
		{entry + newer, 2, text + "unknown                         8  dance with=a", ""},
		{entry + "<html>\n" + entry, 1, text, "not as a firn server does"},
		{
			entry + `{"error":{"code":"internal","message":"surprise"}}`, 1, text,
			"ends the log: surprise (internal); go on with --from 8",
		},
		{
			entry + strings.Repeat(" ", longestEntry+1), 1, text,
			"breaks off the log: bufio.Scanner: token too long; go on with --from 8",
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, tt.body)
		}))
		l := looked{url: server.URL}
		for _, flag := range []string{"", " --json"} {
			status, out, errs := l.firn(t, "cluster log"+flag)
			if (status == 0) != (tt.says == "") || (errs == "") != (tt.says == "") || !strings.Contains(errs, tt.says) {
				t.Errorf("%.80q: status %d, %q; want %q", tt.body, status, errs, tt.says)
			}
			want := tt.text
			if flag != "" {
				want = strings.Join(strings.SplitAfter(tt.body, "\n")[:tt.lines], "")
			}
			if strings.TrimSuffix(out, "\n") != strings.TrimSuffix(want, "\n") {
				t.Errorf("%.80q:\nhave %s\nwant %s", tt.body, out, want)
			}
		}
		server.Close()
	}
}

// The table of nodes says how each is, and leaves out what is not confirmed.
func TestStatusOfNodes(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	vitals := peer.Vitals{
		Version: "v1.2.3", Addresses: map[string]string{"http": "http://ids-1:8080", "grpc": "ids-1:8081"},
		Since: now.Add(-27 * time.Hour),
		Ready: true, Given: 1234567, Rate: 1012.4, Verdict: "agreed", Offset: 2 * time.Millisecond, Others: 4,
		Judged: now.Add(-3 * time.Second),
		Left:   30 * time.Second, RoundTrip: 1800 * time.Microsecond,
	}
	out, joining := vitals, vitals
	out.Ready, out.Code, out.Verdict, out.Offset, out.Left = false, "clock", "behind",
		-59*time.Minute-56*time.Second, -time.Minute
	joining.Ready, joining.Code, joining.Others, joining.Left, joining.Rate, joining.RoundTrip = false,
		"not_ready", 0, 0, 0, 0
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	s := calls.Status{
		Member: "aaaaaaaaaaaaa", Position: 100, Entries: 50, At: now,
		Store: calls.StatusStore{Reached: true, AsOf: &now},
		Problems: []calls.Problem{
			{
				Level: calls.Failing, Kind: calls.ClockProblem, Effect: "ids-2 gives no IDs",
				Cause: "its clock is 59m56s behind 2 of 2 others", Do: "Correct it.", Link: "L",
				Since: ago(28 * time.Second),
			},
			{
				Level: calls.Warning, Kind: calls.GoneProblem, Effect: "ids-3 is gone", Cause: "its pulse has ended",
				Do: "Start it.", Link: "L", Detail: "EOF", Since: ago(24 * time.Hour),
			},
		},
		Members: []calls.StatusMember{
			{
				ID: "eeeeeeeeeeeee", Joined: 5,
				Pulse: calls.Pulse{Alive: new(true), Fresh: true, Owner: "ids-5", AsOf: ago(0), Vitals: &joining},
			},
			{ID: "aaaaaaaaaaaaa", Joined: 1, Watches: "eeeeeeeeeeeee", Pulse: calls.Pulse{
				Alive: new(true), Fresh: true,
				Owner: "ids-1", AsOf: ago(2 * time.Second), Vitals: &vitals,
			}},
			{ID: "bbbbbbbbbbbbb", Joined: 2, Pulse: calls.Pulse{
				Alive: new(true), Fresh: true, Owner: "ids-2",
				AsOf: ago(5 * time.Second), Vitals: &out,
			}},
			{
				ID: "ccccccccccccc", Joined: 3,
				Pulse: calls.Pulse{Alive: new(false), Owner: "ids-3", AsOf: ago(19 * time.Second), Vitals: &vitals},
			},
			{
				ID: "ddddddddddddd", Joined: 4,
				Pulse: calls.Pulse{Alive: new(true), Owner: "ids-4", AsOf: ago(14 * time.Second), Vitals: &vitals},
			},
			{
				ID: "fffffffffffff", Joined: 6,
				Pulse: calls.Pulse{Owner: "ids-6", AsOf: ago(14 * time.Second), Vitals: &vitals},
			},
		},
	}
	const top = `PROBLEM  WHAT, SINCE WHEN, WHY, AND WHAT TO DO
error    ids-2 gives no IDs since 12:00:02Z: its clock is 59m56s behind 2 of 2 others. Correct it. L
warning  ids-3 is gone since 2026-11-21T12:00:30Z: its pulse has ended. Start it. L (EOF)

position    100, after 50 entries
told by     aaaaaaaaaaaaa
nodes       1 clock, 1 gone, 1 late, 1 new, 1 not_ready, 1 ready; 2 024 IDs/s
sequencers  0, with 0 node IDs in use and 0 wanted; --sequencers shows them
`
	const table = `
NODE   MEMBER         STATE      IDS/S    CLOCK   LEFT  STORE     UP  SEEN
ids-1  aaaaaaaaaaaaa  ready      1 012      +0s    28s  1.8ms  27h0m    2s
ids-2  bbbbbbbbbbbbb  clock      1 012  -59m56s  -1m5s  1.8ms  27h0m    5s
ids-3  ccccccccccccc  gone           -        -      -      -      -   19s
ids-4  ddddddddddddd  late           -        -      -      -      -   14s
ids-5  eeeeeeeeeeeee  not_ready      0        -      -      -  27h0m    0s
ids-6  fffffffffffff  new            -        -      -      -      -   14s
`
	p := new(program)
	if have := p.statusText(s, false, true); have != top+table {
		t.Errorf("have\n%swant\n%s", have, top+table)
	}
	for line := range strings.Lines(table) {
		if len(line) > 100 {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
	wide := p.statusText(s, true, true)
	for _, want := range []string{
		"  SEEN      GIVEN  JUDGED  WATCHES        JOINED AT  VERSION  ADDRESSES\n",
		"    2s  1 234 567      3s  eeeeeeeeeeeee          1  v1.2.3   grpc=ids-1:8081 http=http://ids-1:8080\n",
		"   19s          -       -  nobody                 3  v1.2.3   grpc=ids-1:8081 http=http://ids-1:8080\n",
	} {
		if !strings.Contains(wide, want) {
			t.Errorf("have\n%swant\n%s", wide, want)
		}
	}
	s.Store, s.Problems = calls.StatusStore{AsOf: ago(19 * time.Second)}, nil
	if have := p.statusText(s, false, true); !strings.HasPrefix(have,
		"no problems\n\nposition    100, after 50 entries\ntold by     aaaaaaaaaaaaa\n"+
			"nodes       1 clock, 1 gone, 1 late, 1 not_ready, 1 ready, 1 unknown; 2 024 IDs/s\n"+
			"            as of 12:00:11Z, 19s ago: the store does not answer\n") {
		t.Errorf("have\n%s", have)
	}
}

// A database with a node ID is in no log.
func TestStatusShowsDatabases(t *testing.T) {
	l := newLooked(t)
	api := httpapi.New(l.service, &auth.Policy{Trusted: true})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/sequencers/users/nodes" {
			api.ServeHTTP(w, r)
			return
		}
		if r.FormValue("from") != "4" { // there are more than one answer has
			fmt.Fprint(w, `{"sequencer":"users","unix_ms":0,"nodes":[{"node":3,"live":false}],"next":4}`)
			return
		}
		fmt.Fprint(w, `{"sequencer":"users","unix_ms":0,"nodes":[`+
			`{"node":5,"live":true,"owner":"pump","reserved_for":"a pump"},`+
			`{"node":6,"live":true,"member":"a","owner":"host-a"},`+
			`{"node":7,"live":true,"owner":"postgresql:shop/public.firn_next"}]}`)
	}))
	defer server.Close()
	l.url = server.URL
	const holder = "\nusers            7  postgresql:shop/public.firn_next\n"
	for command, want := range map[string]string{
		"cluster status --sequencers": "\nusers          1024  1023  ",
		"sequencer show users":        "\nSEQUENCER  NODE ID  HOLDER" + holder,
	} {
		if _, stdout, stderr := l.firn(t, command); !strings.Contains(stdout, want) ||
			!strings.HasSuffix(stdout, holder) {
			t.Errorf("%s: %s%s", command, stdout, stderr)
		}
	}
}
