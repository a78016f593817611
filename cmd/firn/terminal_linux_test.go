package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store/quorum"
)

// onTerminal runs a command as a person does who types something, and returns what the terminal shows.
func onTerminal(t *testing.T, env []string, typed string, args ...string) (status int, shown string) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	defer keyboard.Close()
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	screen := make(chan string)
	go func() {
		text, _ := bufio.NewReader(keyboard).ReadString(0)
		screen <- strings.TrimSuffix(text, "\x00")
	}()
	if _, err := keyboard.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	status = run(t.Context(), args, env, terminal, terminal, terminal)
	_, _ = terminal.Write([]byte{0}) // what is not read when the terminal is closed may be lost
	shown = strings.ReplaceAll(<-screen, "\r\n", "\n")
	_ = terminal.Close()
	return status, shown
}

// Errors, warnings and states have colours on a terminal, unless it has none or a variable says so.
func TestColours(t *testing.T) {
	for _, tt := range []struct{ command, want string }{
		{"decode --form hex abc", "\x1b[31mfirn:\x1b[0m \"abc\""},
		{"doctor --settings --http-adr :1", "\x1b[31mfirn:\x1b[0m unknown flag"},
		{
			"doctor --http-addr 127.0.0.1:0 --admin-addr none --data-dir " + t.TempDir(),
			"\n\x1b[32mok\x1b[0m    layout ",
		},
		{
			"id --server 127.0.0.1:1",
			"\x1b[33mfirn: warning:\x1b[0m FIRN_SERVR is not used; did you mean FIRN_SERVER?\n\x1b[31mfirn:\x1b[0m",
		},
	} {
		env := []string{"TERM=xterm", "FIRN_SERVR=x"}
		if _, shown := onTerminal(t, env, "", strings.Fields(tt.command)...); !strings.Contains(shown, tt.want) {
			t.Errorf("%s shows %q; want %q", tt.command, shown, tt.want)
		}
		for _, without := range []string{"NO_COLOR=1", "TERM=dumb"} {
			if _, shown := onTerminal(t, append(env, without), "",
				strings.Fields(tt.command)...); strings.Contains(shown, "\x1b") || shown == "" {
				t.Errorf("%s with %s shows %q", tt.command, without, shown)
			}
		}
	}
}

// A terminal gets what is wrong in lines that fit it; others get a line for each problem.
func TestStatusOnTerminal(t *testing.T) {
	const why = "IDs may exist up to 2094-11-05T10:00:00Z, 24819 days ahead of the clock, so that its own would be " +
		"unique, but smaller"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"at":"2026-11-22T10:00:00Z","problems":[{"level":"error","effect":"ids-2 gives no IDs",
			"cause":%q,"since":"2026-11-22T09:59:00Z","do":"Wait.","link":"L"},
			{"level":"warning","effect":"ids-3 is gone","cause":"its pulse has ended",
			"do":"Start it.","link":"L"}]}`, why)
	}))
	defer server.Close()
	status, shown := onTerminal(t, []string{"NO_COLOR=1"}, "", "cluster", "status", "--admin", server.URL)
	const want = `PROBLEM  WHAT, SINCE WHEN, WHY, AND WHAT TO DO
error    ids-2 gives no IDs since 09:59:00Z: IDs may exist up to
         2094-11-05T10:00:00Z, 24819 days ahead of the clock, so that its own
         would be unique, but smaller. Wait. L
warning  ids-3 is gone: its pulse has ended. Start it. L
`
	if status != statusOK || !strings.HasPrefix(shown, want) {
		t.Errorf("status %d, %s", status, shown)
	}
	var out, errs strings.Builder
	if run(t.Context(), []string{"cluster", "status", "--admin", server.URL}, nil, strings.NewReader(""), &out,
		&errs); !strings.Contains(out.String(), ": "+why+". Wait. L\n") {
		t.Errorf("without a terminal: %s%s", out.String(), errs.String())
	}
}

// Destroy shows who uses a sequencer, and wants its name before it asks the server to destroy it.
func TestDestroyAsks(t *testing.T) {
	var destroyed bool
	given, known := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + r.URL.Path {
		case "GET/api/v1/sequencers/orders":
			fmt.Fprint(w, `{"name":"orders","capacity":128,"share":40}`)
		case "GET/api/v1/sequencers/orders/nodes":
			fmt.Fprint(w,
				`{"nodes":[{"node":3,"live":true,"owner":"ids-1","since":"2026-11-22T10:00:00Z"},{"node":4,`+
					`"live":false}]}`)
		case "GET/metrics":
			fmt.Fprintf(w,
				"firn_ids_given_total{sequencer=\"default\"} 7\nfirn_ids_given_total{sequencer=\"orders\"} %d\n", given)
			given += 1e6
		case "GET/api/v1/cluster":
			fmt.Fprintf(w, `{"sequencers":[{"name":"default","given_rate":9000},{"name":"orders"%s}]}`, known)
		case "DELETE/api/v1/sequencers/orders":
			destroyed = true
			fmt.Fprint(w, `{"name":"orders","destroyed":true}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	args := []string{"sequencer", "destroy", "orders", "--admin", server.URL}
	for _, tt := range []struct {
		typed  string
		status int
		want   string
		known  string // of the rate of all nodes
		also   string
	}{
		{
			"yes\n", statusFailure, "firn: orders is not destroyed: \"yes\" is not its name\n", `,"given_rate":611.5`,
			"By their latest pulses all nodes together give 612 IDs of it a second.",
		},
		{"\x04", statusUsage, "add --yes", `,"given_rate":0`, "all nodes together give 0 IDs of it a second."},
		{"orders\n", statusOK, "orders is destroyed\n", "", "How many IDs of it all nodes give is not known."},
	} {
		destroyed, known = false, tt.known
		status, shown := onTerminal(t, []string{"NO_COLOR=1"}, tt.typed, args...)
		const table = "orders: 1 of 128 node IDs are held\n\nNODE ID  OWNER  SINCE\n" +
			"      3  ids-1  2026-11-22T10:00:00Z\n"
		if status != tt.status || !strings.Contains(shown, table) || !strings.Contains(shown, tt.want) ||
			destroyed != (tt.status == statusOK) {
			t.Errorf("%q: status %d, destroyed: %v, %s", tt.typed, status, destroyed, shown)
		}
		if rate := regexp.MustCompile(`gives [0-9 ]+ IDs of it a second`).FindString(shown); rate == "" &&
			tt.status == statusOK {
			t.Errorf("%q: no rate is shown: %s", tt.typed, shown)
		}
		if !strings.Contains(shown, tt.also+"\nThe policy has members serve it; without it") {
			t.Errorf("%q: it does not say %q: %s", tt.typed, tt.also, shown)
		}
	}
}

// Expel shows the node that is meant and what it holds, and wants a yes before it asks the server to expel it: by its
// whole ID, so that it is the one that was shown.
func TestExpelAsks(t *testing.T) {
	l := newLooked(t)
	l.add(t, `{"position":12,"command":"accept-join-cluster","args":{"joiner":"c"}}`)
	for _, tt := range []struct {
		node, typed string
		status      int
		want        string
	}{
		{"host-a", "no\n", statusFailure, "firn: a (host-a) is not expelled: \"no\" is not yes\n"},
		{"host-a", "y\n", statusFailure, "\"y\" is not yes"},
		{"host-a", "a\n", statusFailure, "\"a\" is not yes"},
		{"host-a", "\n", statusFailure, "\"\" is not yes"},
		{"host-a", "\x04", statusUsage, "add --yes"},
		{"host-a", " yes \n", statusOK, "a (host-a) is expelled\n"},
	} {
		status, shown := onTerminal(t, []string{"NO_COLOR=1"}, tt.typed, "cluster", "expel", tt.node, "--admin", l.url)
		const question = "a (host-a) holds the node ID 0 of orders.\n" +
			"Its process exits; start it again to let it rejoin.\nType yes to expel it: "
		if status != tt.status || !strings.Contains(shown, question) || !strings.Contains(shown, tt.want) ||
			l.Value().Expelled("a") != (status == statusOK) {
			t.Errorf("%q: status %d, expelled: %v, %s", tt.typed, status, l.Value().Expelled("a"), shown)
		}
	}
	status, shown := onTerminal(t, []string{"NO_COLOR=1"}, "", "cluster", "expel", "host-a", "--admin", l.url)
	if status != statusFailure || !strings.Contains(shown, "no member is \"host-a\"; want") ||
		strings.Contains(shown, "Type yes") {
		t.Errorf("the expelled one again: status %d, %s", status, shown)
	}
}

// Whoever expels a node is told what else it is: by the name that a machine tells or by the node's host, not by its
// name.
func TestWhatAnExpelledNodeIs(t *testing.T) {
	rates := func(last ...float64) (all []*float64) {
		for _, r := range last {
			all = append(all, &r)
		}
		return all
	}
	hour := calls.History{Nodes: []calls.HistoryNode{
		{Owner: "east-1", Rate: rates(8, 7)},
		{Owner: "b", Rate: append(rates(9, 6), nil)},
	}}
	s := calls.Status{
		Members: []calls.StatusMember{
			{ID: "a", Pulse: calls.Pulse{Owner: "east-1", Fresh: true, Vitals: &peer.Vitals{Rate: 1012}}},
			{ID: "b", Pulse: calls.Pulse{Owner: "b", Fresh: true, Vitals: new(peer.Vitals)}},
			{ID: "c", Pulse: calls.Pulse{Owner: "ids-1", Fresh: true, Vitals: new(peer.Vitals)}},
			{ID: "d", Pulse: calls.Pulse{Owner: "d"}},
		},
		Nodes: []calls.StatusNode{
			{Name: "east-1", Host: "ids-1", Members: []string{"x", "a"}},
			{Name: "b", Host: "h", Members: []string{"b"}},
			{Name: "ids-1", Host: "h", Members: []string{"c"}},
		},
		Quorum: &quorum.Status{Majority: true, Machines: []quorum.Machine{
			{Address: "ids-1:7420", Role: quorum.Voter},
			{Address: "10.0.0.2:7420", Node: "b", Role: quorum.Learner},
			{Address: "ids-3:7420", Role: quorum.Voter, Err: "no answer"},
			{Address: "ids-4:7420", Role: quorum.Voter},
		}},
	}
	for id, want := range map[string]string{
		"a": ", and gives 1 012 IDs a second. It is also the machine ids-1:7420 of the quorum, a voter, which ends " +
			"with it: 1 of 3 voters are left, no majority, and no node can reserve more time",
		"b": ", and gave 6 IDs a second in the last two minutes. It is also the machine 10.0.0.2:7420 of the quorum, " +
			"a learner, which ends with it",
		"c": ", and gives no IDs", "d": "", "e": "",
	} {
		c := calls.Candidate{ID: id}
		for _, m := range s.Members {
			if m.ID == id {
				c.Owner = m.Owner
			}
		}
		if have := alsoIs(s, c, hour); have != want {
			t.Errorf("%s: have %q, want %q", id, have, want)
		}
	}
	s.Members, s.Quorum.Machines[2].Err = s.Members[:1], ""
	const want = ", and gives 1 012 IDs a second. It is the only member: no node then gives IDs. It is also the " +
		"machine ids-1:7420 of the quorum, a voter, which ends with it: 2 of 3 voters are left"
	if have := alsoIs(s, calls.Candidate{ID: "a", Owner: "east-1"}, hour); have != want {
		t.Errorf("have %q, want %q", have, want)
	}
}

// Replace and remove show the machines, and want addresses typed before they ask for a change.
func TestQuorumChangesAsk(t *testing.T) {
	q := threeNamed()
	serves := httptest.NewServer(httpapi.New(calls.New(servertest.Join(t), calls.Options{Quorum: q}),
		&auth.Policy{Trusted: true}))
	defer serves.Close()
	for _, tt := range []struct {
		args, typed string
		status      int
		want        string
	}{
		{
			"replace ids-2:7420 ids-4:7420", "ids-4:7420\n", statusFailure,
			"nothing changed: \"ids-4:7420\" is not \"ids-2:7420\"\n",
		},
		{"replace east-2 ids-4:7420", "ids-2:7420\n", statusOK, "ids-4:7420 takes the place of ids-2:7420 once"},
		{"replace ids-2:7420 ids-4:7420", "\x04", statusUsage, "add --yes"},
		{"replace ids-2:7420 ids-4:7420", "ids-2:7420\n", statusOK, "ids-4:7420 takes the place of ids-2:7420 once"},
		{"remove ids-2:7420 ids-3:7420", "yes\n", statusFailure, "nothing changed"},
		{"remove ids-2:7420 ids-3:7420", " ids-2:7420  ids-3:7420\n", statusOK, "no longer keep data"},
	} {
		before := len(q.Asked())
		status, shown := onTerminal(t, []string{"NO_COLOR=1"}, tt.typed,
			append(strings.Fields("quorum "+tt.args), "--admin", serves.URL)...)
		changed := len(q.Asked()) > before
		if status != tt.status || !strings.Contains(shown, quorumStatusText) || !strings.Contains(shown, tt.want) ||
			changed != (status == statusOK) {
			t.Errorf("%s, %q: status %d, changed: %v, %s", tt.args, tt.typed, status, changed, shown)
		}
	}
	if status, shown := onTerminal(t, nil, "", "quorum", "backup", "-", "--admin", serves.URL); status != statusUsage ||
		!strings.Contains(shown, "standard output is a terminal") {
		t.Errorf("a backup on a terminal: %d %q", status, shown)
	}
	file := filepath.Join(t.TempDir(), "ids.backup")
	if status, shown := onTerminal(t, nil, "", "quorum", "backup", file, "--admin", serves.URL); status != 0 ||
		!strings.Contains(shown, "KiB") {
		t.Errorf("a backup: %d %q", status, shown)
	}
}
