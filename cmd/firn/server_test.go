package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// servers is the key of a script's servers by name.
type servers struct{}

// process is a firn that runs, with its log.
type process struct {
	cmd *exec.Cmd
	url string
	end chan struct{} // closed when its log has ended

	mu  sync.Mutex // guards log
	log bytes.Buffer
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+)(?: admin_addr=(\S+))?(?: grpc_addr=(\S+))?(?: ` +
	`redis_addr=(\S+))?(?: metrics_addr=(\S+))?|"msg":"listening","addr":"([^"]+)"`)

func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || args[1] != "firn" {
		ts.Fatalf("usage: start NAME firn serve ARGS...")
	}
	self, err := os.Executable()
	ts.Check(err)
	s := &process{cmd: exec.Command(self), end: make(chan struct{})}
	s.cmd.Args = args[1:]
	s.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{
		"HOME", "TMPDIR", "GORACE", "FIRN_LOG_FORMAT", "FIRN_HTTP_ADDR", "FIRN_HTTP_ADR",
		"FIRN_CONFIG", "NOTIFY_SOCKET", "WATCHDOG_USEC",
	} {
		s.cmd.Env = append(s.cmd.Env, name+"="+ts.Getenv(name))
	}
	stderr, err := s.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	ts.Defer(func() {
		_ = s.cmd.Process.Kill() // it has ended, when all is well
		<-s.end
		_ = s.cmd.Wait()
		ts.Logf("log of %s:\n%s", args[0], s.read())
	})
	addresses := make(chan []string, 1)
	go s.follow(stderr, addresses)
	select {
	case a := <-addresses:
		s.url = "http://" + a[1] + a[6]
		ts.Setenv(args[0]+"_ADMIN", "http://"+a[2])
		ts.Setenv(args[0]+"_GRPC", a[3])
		ts.Setenv(args[0]+"_REDIS", a[4])
		ts.Setenv(args[0]+"_METRICS", "http://"+a[5])
	case <-s.end:
		ts.Fatalf("%s has ended before it listened:\n%s", args[0], s.read())
	case <-time.After(patience):
		ts.Fatalf("%s does not listen:\n%s", args[0], s.read())
	}
	ts.Value(servers{}).(map[string]*process)[args[0]] = s
	ts.Setenv(args[0], s.url)
}

// follow keeps the log, and tells the addresses that it names.
func (s *process) follow(stderr io.Reader, addresses chan<- []string) {
	defer close(s.end)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		s.mu.Lock()
		s.log.WriteString(lines.Text() + "\n")
		s.mu.Unlock()
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			addresses <- m
		}
	}
}

func (s *process) read() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func find(ts *testscript.TestScript, name string) *process {
	s := ts.Value(servers{}).(map[string]*process)[name]
	if s == nil {
		ts.Fatalf("no server is named %q", name)
	}
	return s
}

func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ready NAME")
	}
	s := find(ts, args[0])
	if err := becomesReady(s.url); err != nil {
		ts.Fatalf("%s is not ready: %v\n%s", args[0], err, s.read())
	}
}

func unready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unready NAME TEXT")
	}
	s := find(ts, args[0])
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		status, body, err := request(http.MethodGet, s.url+"/readyz")
		if status == http.StatusServiceUnavailable && strings.Contains(string(body), args[1]) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s answers %d %s, %v; want why it is not ready: %s\n%s", args[0], status, body, err,
				args[1], s.read())
		}
	}
}

// becomesReady waits until a node gives IDs.
func becomesReady(url string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		status, body, err := request(http.MethodGet, url+"/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func end(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: end NAME STATUS [SIGNAL|itself]")
	}
	s := find(ts, args[0])
	if name := append(args, "TERM")[2]; name != "itself" {
		s.signal(ts, name)
	}
	select {
	case <-s.end:
	case <-time.After(patience):
		ts.Fatalf("%s does not end:\n%s", args[0], s.read())
	}
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Check(err)
	}
	if got := s.cmd.ProcessState.ExitCode(); strconv.Itoa(got) != args[1] {
		ts.Fatalf("%s ends with status %d:\n%s", args[0], got, s.read())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".log"), []byte(s.read()), 0o600))
}

func signalServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: signal NAME SIGNAL TEXT")
	}
	s := find(ts, args[0])
	s.signal(ts, args[1])
	s.says(ts, args[2])
}

// logs waits until a server has logged a text.
func logs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: logs NAME TEXT")
	}
	find(ts, args[0]).says(ts, args[1])
}

func (s *process) says(ts *testscript.TestScript, text string) {
	for deadline := time.Now().Add(patience); !strings.Contains(s.read(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("the log does not say %q:\n%s", text, s.read())
		}
	}
}

func (s *process) signal(ts *testscript.TestScript, name string) {
	known := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}
	if known[name] == nil {
		ts.Fatalf("unknown signal %s", name)
	}
	ts.Check(s.cmd.Process.Signal(known[name]))
}
