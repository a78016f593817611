//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store/etcdstore"
)

// patience bounds each wait. It is no claim about speed.
const patience = time.Minute

var names = []string{"orders", "invoices"}

// The example makes IDs of both sequencers until the horizon when etcd is gone, goes on by itself when it is back,
// repeats none, and leaves the cluster in order.
func TestItSurvivesARestartOfEtcd(t *testing.T) {
	testenv.Slow(t)
	server := etcdtest.Start(t, etcdtest.Options{})
	file := filepath.Join(t.TempDir(), "ids")
	p := start(t, "-etcd", server.Address(), "-window", "3s", "-ids", file)
	p.says(t, "is now attached, node ID [0-9]+")
	p.says(t, "[1-9][0-9]* IDs/s, the last [0-9]+ made at .* by node [0-9]+")
	server.Kill(t)
	killed := count(t, file)
	p.says(t, "no IDs at present: "+member.ErrNotReady.Error()+": the horizon is reached")
	silent := count(t, file)
	server.Start(t)
	p.says(t, "[1-9][0-9]* IDs/s, the last [0-9]+ made at")
	p.stop(t)
	all := count(t, file)
	for _, name := range names {
		if killed[name] == 0 || silent[name] <= killed[name] || all[name] <= silent[name] {
			t.Errorf("%s: %d IDs before etcd was killed, %d until the horizon, %d at the end; want more each time",
				name, killed[name], silent[name], all[name])
		}
	}
	nobodyIsLeft(t, server)
}

// program is the example as it runs.
type program struct {
	cmd    *exec.Cmd
	lines  chan string  // of standard output; closed when it has ended
	err    error        // how it ended
	stderr bytes.Buffer // to be read once it has ended
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "orders")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := &program{cmd: exec.Command(binary, args...), lines: make(chan string)}
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.lines <- lines.Text()
		}
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		for range p.lines { // until it has ended
		}
		if t.Failed() {
			t.Logf("standard error:\n%s", &p.stderr)
		}
	})
	return p
}

// says waits until the program has printed a line of this pattern for each of the sequencers.
func (p *program) says(t *testing.T, pattern string) {
	t.Helper()
	line := regexp.MustCompile("^(" + strings.Join(names, "|") + "): " + pattern)
	late := time.After(patience)
	said := map[string]bool{}
	var seen []string
	for len(said) < len(names) {
		select {
		case text, more := <-p.lines:
			if !more {
				t.Fatalf("it ended, with %v, and did not say %q of all, but:\n%s", p.err, pattern,
					strings.Join(seen, "\n"))
			}
			if found := line.FindStringSubmatch(text); found != nil {
				said[found[1]] = true
			}
			seen = append(seen, text)
		case <-late:
			t.Fatalf("it does not say %q of all, but:\n%s", pattern, strings.Join(seen, "\n"))
		}
	}
}

// stop ends it with SIGTERM, which is no failure.
func (p *program) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	for range p.lines { // until it has ended
	}
	if p.err != nil {
		t.Fatalf("it ended with %v", p.err)
	}
}

// count is how many IDs of each sequencer there are in the file. They ascend, so that there is none twice.
func count(t *testing.T, file string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, last := map[string]int{}, map[string]firn.ID{}
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var name string
		var id firn.ID
		if _, err := fmt.Sscan(line, &name, &id); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if id <= last[name] {
			t.Fatalf("%s: %v came after %v", name, id, last[name])
		}
		all[name]++
		last[name] = id
	}
	return all
}

// nobodyIsLeft shows that a new member is the only one, at once, and has no node ID to wait for.
func nobodyIsLeft(t *testing.T, server *etcdtest.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	store, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	m, err := peer.Join(ctx, store, peer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Leave()
	if all := m.Value().Members(); len(all) != 1 {
		t.Errorf("members %v, want one", all)
	}
	for _, name := range names {
		q, _ := m.Value().Sequencer(name)
		if q.Free() != q.Definition().Capacity() {
			t.Errorf("%d of the %d node IDs of %s are free, want all", q.Free(), q.Definition().Capacity(), name)
		}
	}
}
