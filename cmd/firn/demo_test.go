package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/ops/demo"
	"github.com/firn-id/firn/internal/test/testenv"
)

// demoRun is a firn demo, as a user runs it who has firn on the path.
type demoRun struct {
	t      *testing.T
	env    []string
	dir    string // where it runs, and all that is tried
	cmd    *exec.Cmd
	intro  []string // the commands that it suggests
	rest   *bytes.Buffer
	ended  chan struct{} // closed when its output has
	admin  string
	node1  string  // its URL
	former firn.ID // that node 1 gave
}

// startDemo starts one on free ports, and waits until it says what to try.
func startDemo(t *testing.T, args ...string) *demoRun {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := t.TempDir(), t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "firn")); err != nil {
		t.Fatal(err)
	}
	d := &demoRun{t: t, dir: dir, rest: &bytes.Buffer{}, ended: make(chan struct{})}
	d.env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir,
		"GORACE=atexit_sleep_ms=0",
	}
	d.cmd = exec.Command(filepath.Join(bin, "firn"),
		append([]string{"demo", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}, args...)...)
	d.cmd.Env, d.cmd.Dir = d.env, dir
	var stderr bytes.Buffer
	d.cmd.Stderr = &stderr
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it has ended, when all is well
		<-d.ended
		_ = d.cmd.Wait() // until all of stderr is read; an error if it has been waited for
		if t.Failed() {
			t.Logf("the demo printed:\n%s\n%s", d.rest, &stderr)
		}
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "Ctrl-C ends it." {
		d.rest.WriteString(lines.Text() + "\n")
	}
	d.intro = suggested(d.rest.String())
	d.admin = firstMatch(t, `dashboard +(http://\S+)/ui/`, d.rest.String())
	d.node1 = firstMatch(t, `node 1 +(http://\S+)`, d.rest.String())
	go func() {
		defer close(d.ended)
		for lines.Scan() {
			d.rest.WriteString(lines.Text() + "\n")
		}
	}()
	return d
}

func firstMatch(t *testing.T, pattern, text string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in\n%s", pattern, text)
	}
	return m[1]
}

// suggested are the commands in a text: the lines that are indented by four.
func suggested(text string) (commands []string) {
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "    "); ok && !strings.HasPrefix(command, " ") {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}

// try runs a command as it was printed, and what that suggests beside other commands to the demo.
func (d *demoRun) try(command string) string {
	d.t.Helper()
	var out []byte
	var err error
	for deadline := time.Now().Add(patience); ; {
		cmd := exec.Command("sh", "-c", command)
		cmd.Env, cmd.Dir = d.env, d.dir
		out, err = cmd.CombinedOutput()
		if err == nil || !strings.Contains(command, "firn quorum status") || time.Now().After(deadline) {
			break
		} // it is a failure that there is no leader, for as long as a new one is elected
	}
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	for _, next := range suggested(string(out)) {
		if strings.Contains(command, "firn demo ") && !strings.Contains(next, "firn demo ") {
			d.try(next)
		}
	}
	return string(out)
}

func (d *demoRun) status() demo.Status {
	d.t.Helper()
	var s demo.Status
	if err := json.Unmarshal([]byte(d.try("firn demo status --json --admin "+d.admin)), &s); err != nil {
		d.t.Fatal(err)
	}
	if s.Load.Duplicates != 0 || s.Load.Disorder != 0 {
		d.t.Errorf("%d duplicates, and %d out of order; want none", s.Load.Duplicates, s.Load.Disorder)
	}
	return s
}

// until waits until the status is as it should be.
func (d *demoRun) until(what string, is func(s demo.Status) bool) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		s := d.status()
		if is(s) {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("it does not come to: %s; but %+v", what, s)
		}
	}
}

// all waits until so many members are in the cluster, and a node is in some state.
func (d *demoRun) all(members, node int, state string) {
	d.t.Helper()
	d.until(state, func(s demo.Status) bool { return s.Members == members && s.Nodes[node-1].State == state })
}

// ascends takes an ID from node 1, which must be above the one before.
func (d *demoRun) ascends() firn.ID {
	d.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		status, body, err := request(http.MethodPost, d.node1+"/api/v1/id")
		var answer struct {
			ID firn.ID `json:"id_str"`
		}
		if err == nil && status == http.StatusOK && json.Unmarshal(body, &answer) == nil {
			if answer.ID <= d.former {
				d.t.Errorf("node 1 gives %d after %d", answer.ID, d.former)
			}
			d.former = answer.ID
			return answer.ID
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("node 1 gives no ID: %d %s, %v", status, body, err)
		}
	}
}

// end stops it as Ctrl-C does.
func (d *demoRun) end() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		d.t.Fatal(err)
	}
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Fatal("it does not end")
	}
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("its end: %v", err)
	}
	want := regexp.MustCompile(`(?m)^In [0-9ms]+: [1-9][\d ]* IDs?, [\d ]+ errors?, 0 duplicates, none out of ` +
		`order\. ` +
		`Nothing is left behind\.$`)
	if !want.MatchString(d.rest.String()) {
		d.t.Errorf("it does not end with %v", want)
	}
	left, err := os.ReadDir(d.dir)
	if err != nil || len(left) > 0 {
		d.t.Errorf("it left %v, %v", left, err)
	}
}

// Every command that a demo suggests works as it is printed, and has the effect that it is there for.
func TestDemo(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	testenv.Program(t, "curl", "curl")
	d := startDemo(t, "--ttl", "1s", "--window", "6s", "--load", "500")
	ready := func(s demo.Status) bool {
		return s.Members == 3 && !slices.ContainsFunc(s.Nodes, func(n demo.NodeStatus) bool {
			return n.State != demo.Ready
		})
	}
	effects := []struct {
		command string // a part of it
		effect  func(out string)
	}{
		{"curl", func(out string) {
			if !strings.Contains(out, `"id_str"`) {
				t.Errorf("curl prints %s", out)
			}
		}},
		{"firn decode", nil},
		{"firn id --sequencer invoices", func(out string) {
			if n, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || n < 1 || n > 100_000 {
				t.Errorf("the next number is %q", out)
			}
		}},
		{"firn id --sequencer receipts", func(out string) {
			if len(out) != len("20261126000123\n") {
				t.Errorf("the next number of a date is %q", out)
			}
		}},
		{"firn id --sequencer events", nil},
		{"firn sequencer create orders", nil},
		{"firn id --sequencer orders", nil},
		{"firn cluster status", func(out string) {
			if strings.Count(out, "\nnode-") != 3 {
				t.Errorf("of 3 members it shows\n%s", out)
			}
		}},
		{"firn cluster log", nil},
		{"firn bench", func(out string) {
			if !strings.Contains(out, "\nduplicates  none among ") || !strings.Contains(out, "\nerrors      none\n") {
				t.Errorf("it prints\n%s", out)
			}
		}},
		{"firn demo kill 2", func(string) { d.all(2, 2, demo.Down) }},
		{"firn demo start 2", func(string) { d.all(3, 2, demo.Ready) }},
		{"firn demo pause 2", func(string) { d.all(2, 2, demo.Paused) }},
		{"firn demo resume 2", func(string) { d.all(3, 2, demo.Ready) }},
		{"firn demo step-clock all +1h", func(string) {
			d.until("IDs of an hour later", func(s demo.Status) bool {
				return ready(s) && time.Until(timeOf(t, d.ascends())) > 59*time.Minute
			})
		}},
		{"firn demo step-clock 1 +2h", func(string) {
			d.all(3, 1, demo.NotReady)
			for _, n := range d.status().Nodes {
				switch {
				case n.Node > 1 && n.State != demo.Ready:
					t.Errorf("node %d, whose clock is right, is %s: %s", n.Node, n.State, n.Why)
				case n.Node == 1 && !strings.Contains(n.Why, "2h0m ahead of 2 of 2 others"):
					t.Errorf("node 1 does not say by how much its clock is ahead: %s", n.Why)
				}
			}
		}},
		{"firn demo step-clock 1 -2h", func(string) {
			d.until("all are ready", ready)
			d.ascends()
		}},
		{"firn demo stop-store", func(string) {
			d.ascends() // there is time left that was written down
			d.until("no node is ready", func(s demo.Status) bool {
				return !slices.ContainsFunc(s.Nodes, func(n demo.NodeStatus) bool { return n.State != demo.NotReady })
			})
			if status, body, err := request(http.MethodPost,
				d.node1+"/api/v1/id"); status != http.StatusServiceUnavailable {
				t.Errorf("a node without a store answers %d %s, %v; want 503", status, body, err)
			}
		}},
		{"firn demo start-store", func(string) {
			d.until("all are ready", ready)
			d.ascends()
		}},
		{"firn demo status", func(out string) {
			if !strings.Contains(out, "\nstore    running\nmembers  3\n") {
				t.Errorf("it prints\n%s", out)
			}
		}},
	}
	if len(d.intro) != len(effects) {
		t.Fatalf("it suggests %d commands, and %d are known here:\n%s", len(d.intro), len(effects),
			strings.Join(d.intro, "\n"))
	}
	d.ascends()
	for i, e := range effects {
		if !strings.Contains(d.intro[i], e.command) {
			t.Fatalf("it suggests %s, want %s", d.intro[i], e.command)
		}
		out := d.try(d.intro[i])
		if e.effect != nil {
			e.effect(out)
		}
	}

	// Who looks at the cluster is answered as long as a node runs.
	for _, n := range []string{"1", "2"} {
		d.try("firn demo kill " + n + " --admin " + d.admin)
		if out := d.try("firn cluster status --admin " + d.admin); !strings.Contains(out, "node-3") {
			t.Errorf("without node %s it shows\n%s", n, out)
		}
	}
	d.end()
}

// Every command that a demo of a quorum suggests works as it is printed: the loss of one machine is not noticed, that
// of a second one is when the time that was reserved is used up, and both come back.
func TestDemoOfAQuorum(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	testenv.Program(t, "curl", "curl")
	d := startDemo(t, "--quorum")
	errors := func() (n int64) { return d.status().Load.Errors }
	var quorum []string // what is about it
	for _, command := range d.intro {
		switch {
		case strings.Contains(command, "firn quorum ") || strings.Contains(command, "firn demo "):
			quorum = append(quorum, command)
		case !strings.Contains(command, "firn bench"):
			d.try(command)
		}
	}
	for i, e := range []struct {
		command string // a part of it
		effect  func(out string)
	}{
		{"firn quorum status", func(out string) {
			if strings.Count(out, "voter") != 3 || strings.Count(out, "leader") != 1 {
				t.Errorf("of 3 machines it shows\n%s", out)
			}
		}},
		{"firn demo kill 3", func(out string) {
			if !strings.Contains(out, "2 of 3 machines are a majority") {
				t.Errorf("it prints\n%s", out)
			}
			d.all(2, 3, demo.Down) // the other members write that down
			before := d.ascends()
			d.until("IDs beyond the horizons at that time", func(demo.Status) bool {
				return timeOf(t, d.ascends()).Sub(timeOf(t, before)) > 11*time.Second
			})
			if n := errors(); n != 0 {
				t.Errorf("%d calls failed", n)
			}
		}},
		{"firn demo kill 2", func(out string) {
			if !strings.Contains(out, "1 of 3 machines is no majority") {
				t.Errorf("it prints\n%s", out)
			}
			d.ascends() // there is time left that was written down
			d.until("it has no majority and is not ready", func(s demo.Status) bool {
				return s.Store == demo.StoreLost && s.Nodes[0].State == demo.NotReady
			})
			if status, body, err := request(http.MethodPost,
				d.node1+"/api/v1/id"); status != http.StatusServiceUnavailable {
				t.Errorf("a node without a majority answers %d %s, %v; want 503", status, body, err)
			}
		}},
		{"firn demo start 3", nil},
		{"firn demo start 2", func(string) {
			d.until("all are ready", func(s demo.Status) bool {
				return s.Members == 3 && s.Store == demo.StoreRunning &&
					!slices.ContainsFunc(s.Nodes, func(n demo.NodeStatus) bool { return n.State != demo.Ready })
			})
			d.ascends()
		}},
		{"firn demo status", nil},
	} {
		if i >= len(quorum) || !strings.Contains(quorum[i], e.command) {
			t.Fatalf("it suggests %q; want as number %d %s", quorum, i, e.command)
		}
		out := d.try(quorum[i])
		if e.effect != nil {
			e.effect(out)
		}
	}
	for _, command := range []string{"pause 1", "stop-store"} {
		cmd := exec.Command("sh", "-c", "firn demo "+command+" --admin "+d.admin)
		cmd.Env, cmd.Dir = d.env, d.dir
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "keep") {
			t.Errorf("%s: %v, %s", command, err, out)
		}
	}
	d.try("firn demo kill 1 --admin " + d.admin) // and the demo ends with two
	d.end()
}

func timeOf(t *testing.T, id firn.ID) time.Time {
	t.Helper()
	at, err := firn.Default.Time(id)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Ctrl-C ends a demo in which nothing goes any more.
func TestDemoEndsWhenNothingGoes(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--nodes", "2")
	d.try("firn demo pause 1 --admin " + d.admin)
	d.try("firn demo stop-store --admin " + d.admin)
	d.end()
}

// What can't be done is an error, and changes nothing.
func TestDemoRefuses(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--nodes", "1", "--load", "0")
	for _, tt := range []struct{ command, want string }{
		{"kill 2", `firn: there is no node "2"; want 1 to 1`},
		{"start 1", "firn: node 1 is running already"},
		{"resume 1", "firn: node 1 is not paused"},
		{"start-store", "firn: the store is not stopped"},
		{"step-clock 1 +25h", "firn: the clock of node 1 would be wrong by +25h; want at most 24h"},
	} {
		cmd := exec.Command("sh", "-c", "firn demo "+tt.command+" --admin "+d.admin)
		cmd.Env, cmd.Dir = d.env, d.dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != statusFailure || strings.TrimSpace(string(out)) != tt.want {
			t.Errorf("%s: %v, %s; want status 1, and %s", tt.command, err, out, tt.want)
		}
	}
	for _, r := range []struct {
		method, path, host, origin string
		want                       int
	}{
		{http.MethodPost, demo.StorePath + "start", "evil.example", "", http.StatusForbidden},
		{http.MethodPost, demo.StorePath + "start", "", "https://evil.example", http.StatusForbidden},
		// who has not started it, and shows no secret
		{http.MethodPost, demo.StorePath + "stop", "", "", http.StatusUnauthorized},
		{http.MethodPost, demo.NodesPath + "1/kill", "", "", http.StatusUnauthorized},
		{http.MethodGet, "/api/v1/cluster", "evil.example", "", http.StatusForbidden}, // a node answers
		{http.MethodGet, "/api/v1/cluster", "", "", http.StatusOK},
	} {
		request, err := http.NewRequestWithContext(t.Context(), r.method, d.admin+r.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = r.host
		if r.origin != "" {
			request.Header.Set("Origin", r.origin)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != r.want {
			t.Errorf("a browser of %q at %q is answered %d, want %d", r.origin, r.host, response.StatusCode, r.want)
		}
	}
	d.until("it runs", func(s demo.Status) bool { return s.Members == 1 && s.Nodes[0].State == demo.Ready })
	d.end()
}
