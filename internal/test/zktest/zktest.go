//go:build unix

// Package zktest runs real ZooKeeper servers as processes of their own, for tests of any package that kill,
// freeze, restart and set them back. It is not for production code.
package zktest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// program is ZooKeeper as Debian packages it: its manifest names the libraries that it needs.
const program = "/usr/share/java/zookeeper.jar"

const startDeadline, stopDeadline = 60 * time.Second, 30 * time.Second

// Tick is the tickTime of the servers, a tenth of the default. They grant sessions of two to 200 ticks.
const Tick = 200 * time.Millisecond

// Server is one server process with data of its own. Its methods end the test when they fail, and must not be
// called concurrently.
type Server struct {
	dir, address string
	java         []string // further options
	cmd          *exec.Cmd
	exited       chan struct{} // closed when the process has ended
	output       *tail
}

// Start starts a server and waits until it serves. Options are further options of Java, such as
// "-Dzookeeper.maxCnxns=1". The server is killed when the test ends. The test is skipped where ZooKeeper is not
// installed.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	s := newServer(t, options)
	s.configure(t, "")
	s.Start(t)
	return s
}

// StartQuorum starts servers that form one ensemble, and waits until all of them serve.
func StartQuorum(t testing.TB, servers int, options ...string) []*Server {
	t.Helper()
	all := make([]*Server, servers)
	var members strings.Builder
	for i := range all {
		all[i] = newServer(t, options)
		_, peers, _ := net.SplitHostPort(proxytest.FixedAddress(t))
		_, elections, _ := net.SplitHostPort(proxytest.FixedAddress(t))
		fmt.Fprintf(&members, "server.%d=127.0.0.1:%s:%s\n", i+1, peers, elections)
	}
	for i, s := range all {
		s.configure(t, members.String())
		s.write(t, "data/myid", fmt.Sprint(i+1))
		s.launch(t)
	}
	for _, s := range all {
		s.serves(t)
	}
	return all
}

func newServer(t testing.TB, options []string) *Server {
	t.Helper()
	testenv.Program(t, "java", "default-jre-headless")
	if _, err := os.Stat(program); err != nil {
		testenv.Missing(t, program, "libzookeeper-java")
	}
	s := &Server{dir: t.TempDir(), address: proxytest.FixedAddress(t), java: options}
	t.Cleanup(func() {
		if s.cmd != nil {
			_ = s.cmd.Process.Kill()
			<-s.exited
		}
	})
	return s
}

func (s *Server) configure(t testing.TB, members string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.address)
	// What a killed process wrote is in the system's memory: there is no need to wait for the disk.
	s.write(t, "zoo.cfg",
		fmt.Sprintf("dataDir=%s\nclientPortAddress=%s\nclientPort=%s\ntickTime=%d\ninitLimit=50\nsyncLimit=10\n"+
			"maxSessionTimeout=%d\nmaxClientCnxns=0\nadmin.enableServer=false\nforceSync=no\n"+
			"4lw.commands.whitelist=srvr\n%s",
			filepath.Join(s.dir, "data"), host, port, Tick.Milliseconds(), 200*Tick.Milliseconds(), members))
}

func (s *Server) write(t testing.TB, name, text string) {
	t.Helper()
	name = filepath.Join(s.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatalf("zktest: %v", err)
	}
}

// Address is where clients connect to, as host:port. It stays the same over restarts.
func (s *Server) Address() string { return s.address }

// Start starts the server after Kill, on its port and data, and waits until it serves.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.launch(t)
	s.serves(t)
}

func (s *Server) launch(t testing.TB) {
	t.Helper()
	args := append([]string{
		"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dzookeeper.preAllocSize=1024",
		"-cp", program + ":/usr/share/java/slf4j-simple.jar",
	}, s.java...)
	s.cmd = exec.Command("java",
		append(args, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.dir, "zoo.cfg"))...)
	s.cmd.Dir, s.cmd.SysProcAttr = s.dir, attributes()
	s.exited, s.output = make(chan struct{}), &tail{}
	output, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatalf("zktest: starting the server: %v", err)
	}
	go func(cmd *exec.Cmd, exited chan<- struct{}, lines *tail) {
		lines.read(output)
		_ = cmd.Wait()
		close(exited)
	}(s.cmd, s.exited, s.output)
}

// serves waits until the server serves clients.
func (s *Server) serves(t testing.TB) {
	t.Helper()
	deadline := time.Now().Add(startDeadline)
	for s.Mode() == "" {
		select {
		case <-s.exited:
			t.Fatalf("zktest: the server ended at its start:\n%s", s.output)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("zktest: the server does not serve after %v:\n%s", startDeadline, s.output)
		}
	}
}

// Mode is what the server says it is: "standalone", "leader" or "follower". It is empty when the server does not
// serve clients.
func (s *Server) Mode() string {
	conn, err := net.DialTimeout("tcp", s.address, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(conn)
	for line := range strings.Lines(string(answer)) {
		if mode, is := strings.CutPrefix(line, "Mode: "); is {
			return strings.TrimSpace(mode)
		}
	}
	return ""
}

// Leader is the index of the server that leads.
func Leader(t testing.TB, servers []*Server) int {
	t.Helper()
	deadline := time.Now().Add(startDeadline)
	for time.Now().Before(deadline) {
		for i, s := range servers {
			if s.cmd != nil && s.Mode() == "leader" {
				return i
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("zktest: no server leads")
	return 0
}

// Kill ends the server at once, with SIGKILL.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGKILL)
	select {
	case <-s.exited:
		s.cmd = nil
	case <-time.After(stopDeadline):
		t.Fatalf("zktest: the server did not end within %v", stopDeadline)
	}
}

// Pause freezes the server, with SIGSTOP: connections stay open and are silent. When it returns, every thread of
// the server has stopped.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(s.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || !status.Stopped() {
			t.Fatalf("zktest: the server did not stop: %v, %v", status, err)
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
	if s.cmd == nil {
		t.Fatalf("zktest: sending %v: the server does not run", signal)
	}
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatalf("zktest: sending %v: %v", signal, err)
	}
}

// Wipe restarts servers without their data: all of an ensemble at once.
func Wipe(t testing.TB, servers ...*Server) {
	t.Helper()
	swap(t, servers, func(s *Server) error { return os.RemoveAll(filepath.Join(s.dir, "data", "version-2")) })
}

// Backup stops servers for a moment, copies their data, and returns a function that restores them: all of an
// ensemble at once.
func Backup(t testing.TB, servers ...*Server) (restore func(t testing.TB)) {
	t.Helper()
	replace := func(to, from string) error { return errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))) }
	swap(t, servers, func(s *Server) error {
		return replace(filepath.Join(s.dir, "kept"), filepath.Join(s.dir, "data"))
	})
	return func(t testing.TB) {
		t.Helper()
		swap(t, servers, func(s *Server) error {
			return replace(filepath.Join(s.dir, "data"), filepath.Join(s.dir, "kept"))
		})
	}
}

// swap does something with the data while no server runs.
func swap(t testing.TB, servers []*Server, do func(*Server) error) {
	t.Helper()
	for _, s := range servers {
		s.Kill(t)
	}
	for _, s := range servers {
		if err := do(s); err != nil {
			t.Fatalf("zktest: %v", err)
		}
		s.launch(t)
	}
	for _, s := range servers {
		s.serves(t)
	}
}

// tail keeps the last lines of a log. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *tail) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		l.mu.Lock()
		l.lines = append(l.lines, lines.Text())
		l.lines = l.lines[max(0, len(l.lines)-40):]
		l.mu.Unlock()
	}
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
