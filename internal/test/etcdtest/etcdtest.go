//go:build unix

// Package etcdtest runs the real etcd server as its own process, for tests of any
// package that stop, kill, freeze and restart it. It is not for production code.
package etcdtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/proxytest"
)

const stopDeadline = 30 * time.Second

// binary is the path of the server, which the first call builds from the module's tool
// line. That takes a minute, unless the go command has it in its cache.
var binary = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "tool", "-n", "go.etcd.io/etcd/server/v3").Output()
	if exit, ok := err.(*exec.ExitError); ok {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
})

// Binary is the path of the server.
func Binary() (string, error) { return binary() }

// Options configures a server. The zero value is for fast tests.
type Options struct {
	// Heartbeat and Election are the timing of raft, in milliseconds. Zero is 10
	// and 100: ready at once, and sessions of one second. Etcd's own default is
	// 100 and 1000, with sessions of two seconds at least.
	Heartbeat, Election int

	// Certs makes the server speak TLS and demand a client certificate.
	Certs *certtest.Files

	// Args are further flags of the server.
	Args []string
}

// Server is one server process with data of its own. Its methods end the test
// when they fail, and must not be called concurrently.
type Server struct {
	options Options
	dir     string
	address string // host:port, chosen at the first start and kept
	process *process

	// What the other servers of its cluster call it.
	name, peer, cluster string
}

// Start starts a server and waits until it serves. It is killed when the test ends.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	options.Heartbeat, options.Election = cmp.Or(options.Heartbeat, 10), cmp.Or(options.Election, 100)
	return start(t, options, "http://127.0.0.1:0")[0] // nobody connects to the peer port, so any will do
}

// StartCluster starts servers that form one cluster, and waits until all of them serve.
// Zero timing is etcd's own here: with less, servers on a busy machine elect leaders all
// the time.
func StartCluster(t testing.TB, servers int, options Options) []*Server {
	t.Helper()
	options.Heartbeat, options.Election = cmp.Or(options.Heartbeat, 100), cmp.Or(options.Election, 1000)
	peers := make([]string, servers)
	for i := range peers {
		peers[i] = "http://" + proxytest.FixedAddress(t)
	}
	return start(t, options, peers...)
}

// start starts one cluster of servers, which find each other at these URLs.
func start(t testing.TB, options Options, peers ...string) []*Server {
	t.Helper()
	all := make([]*Server, len(peers))
	cluster := make([]string, len(peers))
	for i, peer := range peers {
		name := fmt.Sprintf("etcdtest-%d", i)
		all[i] = &Server{options: options, dir: t.TempDir(), address: proxytest.FixedAddress(t), name: name, peer: peer}
		cluster[i] = name + "=" + peer
		t.Cleanup(all[i].end)
	}
	for _, s := range all {
		s.cluster = strings.Join(cluster, ",")
		s.launch(t)
	}
	for _, s := range all {
		s.address = s.process.serving(t)
	}
	return all
}

// Endpoint is the URL that clients connect to. It stays the same over restarts.
func (s *Server) Endpoint() string {
	if s.options.Certs != nil {
		return "https://" + s.address
	}
	return "http://" + s.address
}

// Address is the host:port of Endpoint.
func (s *Server) Address() string { return s.address }

// Start starts the server after Stop or Kill, on its port and data, and waits
// until it serves.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.launch(t)
	s.address = s.process.serving(t)
}

// launch starts the process.
func (s *Server) launch(t testing.TB) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatalf("etcdtest: building the server: %v", err)
	}
	client := s.Endpoint()
	args := []string{
		"--name=" + s.name, "--data-dir=" + s.dir, "--log-level=info", "--logger=zap",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + s.peer, "--initial-advertise-peer-urls=" + s.peer,
		"--initial-cluster=" + s.cluster,
		fmt.Sprintf("--heartbeat-interval=%d", s.options.Heartbeat),
		fmt.Sprintf("--election-timeout=%d", s.options.Election),
	}
	if c := s.options.Certs; c != nil {
		args = append(args, "--cert-file="+c.ServerCert, "--key-file="+c.ServerKey,
			"--trusted-ca-file="+c.CA, "--client-cert-auth")
	}
	s.process = launch(t, path, append(args, s.options.Args...))
}

// Stop ends the server cleanly, with SIGTERM.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.stop(t, syscall.SIGTERM)
}

// Kill ends the server at once, with SIGKILL.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.stop(t, syscall.SIGKILL)
}

// Restart kills the server and starts it again.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill(t)
	s.Start(t)
}

// Backup stops the server for a moment, copies its data, and returns a function that
// restores them.
func (s *Server) Backup(t *testing.T) (restore func(t *testing.T)) {
	t.Helper()
	kept := t.TempDir()
	copyOver := func(to, from string) {
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
			t.Fatalf("etcdtest: copying the data: %v", err)
		}
	}
	s.Stop(t)
	copyOver(kept, s.dir)
	s.Start(t)
	return func(t *testing.T) {
		t.Helper()
		s.Kill(t)
		copyOver(s.dir, kept)
		s.Start(t)
	}
}

// Wipe restarts the server without its data.
func (s *Server) Wipe(t testing.TB) {
	t.Helper()
	s.Kill(t)
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatalf("etcdtest: removing the data: %v", err)
	}
	s.Start(t)
}

// Pause freezes the server, with SIGSTOP: connections stay open and are silent.
// When it returns, every thread of the server has stopped.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(s.process.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || !status.Stopped() {
			t.Fatalf("etcdtest: the server did not stop: %v, %v", status, err)
		}
		return
	}
}

// Resume ends a Pause.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGCONT)
}

func (s *Server) signal(t testing.TB, signal os.Signal) {
	t.Helper()
	if s.process == nil {
		t.Fatalf("etcdtest: sending %v: the server does not run", signal)
	}
	if err := s.process.cmd.Process.Signal(signal); err != nil {
		t.Fatalf("etcdtest: sending %v: %v", signal, err)
	}
}

// stop sends a signal and waits until the process has ended.
func (s *Server) stop(t testing.TB, signal os.Signal) {
	t.Helper()
	s.signal(t, signal)
	select {
	case <-s.process.exited:
		s.process = nil
	case <-time.After(stopDeadline):
		t.Fatalf("etcdtest: the server did not end within %v", stopDeadline)
	}
}

// end kills the process if it still runs, even frozen.
func (s *Server) end() {
	if s.process != nil {
		_ = s.process.cmd.Process.Kill()
		<-s.process.exited
	}
}
