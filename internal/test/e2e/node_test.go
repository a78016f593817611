//go:build unix

// Package e2e runs firn as a user would: real processes, a real etcd server, HTTP. It shows
// that no ID is given twice when processes are killed and frozen, when etcd is gone, and when clocks step.
package e2e

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/overlay"
	"github.com/firn-id/firn/internal/test/responsive"
)

// patience is how long anything may take that must happen. It is no claim about speed.
const patience = time.Minute

// binaries are built once: as shipped, with a wall clock that a test can step and a disk that it can slow down, and
// with drills.
var (
	firn          = sync.OnceValues(func() (string, error) { return build() })
	firnSteppable = sync.OnceValues(func() (string, error) { return build(overlay.SteppableClock(), slowDisk()) })
	firnDrilled   = sync.OnceValues(func() (string, error) { return build(drilled()) })
	binaries      string // where they are put
)

// atOnce is how many tests run at a time, unless the command line says otherwise: they mostly wait.
const atOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", atOnce)
	}
	dir, err := os.MkdirTemp("", "firn-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaries = dir
	responsive.Watch()
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// sources has the go command take this test as one of the sources of what it builds: it runs a test again when a file
// has changed that the test looked at, and else tells how it ended the last time.
func sources() error {
	root := filepath.Join("..", "..", "..")
	clients := filepath.Join(root, "clients") + string(filepath.Separator)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root &&
			(strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") || d.Name() == "go.sum" ||
			filepath.Ext(path) == ".tmpl",
			strings.HasPrefix(path, clients) && d.Type().IsRegular():
			_, err = os.Stat(path)
		}
		return err
	})
}

func build(replace ...map[string]string) (string, error) {
	if err := sources(); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(binaries, "firn")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "firn")
	args := []string{"build", "-o", path}
	if len(replace) > 0 {
		files := map[string]string{}
		for _, some := range replace {
			maps.Copy(files, some)
		}
		argument, err := overlay.Write(dir, files)
		if err != nil {
			return "", err
		}
		args = append(args, argument)
	}
	if out, err := exec.Command("go", append(args, "github.com/firn-id/firn/cmd/firn")...).
		CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
}

// node is one run of firn serve.
type node struct {
	t       testing.TB
	name    string
	cmd     *exec.Cmd
	url     string
	admin   string        // the URL of administrators
	exited  chan struct{} // closed when it has ended
	log     *lines
	clockAt string // the file that steps its wall clock
}

// listening finds the addresses in the log, from a line that is written once the ports are open.
var listening = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// serve starts a node on a port of its own, and returns once that is open. It is killed when the test ends.
func serve(t testing.TB, name string, args ...string) *node {
	t.Helper()
	return start(t, firn, name, "", args...)
}

// serveSteppable is serve with a wall clock that step steps.
func serveSteppable(t testing.TB, name string, args ...string) *node {
	t.Helper()
	return start(t, firnSteppable, name, "", args...)
}

func start(t testing.TB, binary func() (string, error), name, drills string, args ...string) *node {
	t.Helper()
	return startOff(t, binary, 0, name, drills, args...)
}

// startOff is start with a wall clock that is off from the beginning.
func startOff(t testing.TB, binary func() (string, error), off time.Duration, name, drills string,
	args ...string,
) *node {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{
		t: t, name: name, exited: make(chan struct{}), log: new(lines),
		clockAt: filepath.Join(t.TempDir(), "clock"),
	}
	n.step(off)
	// what a node answers says how it is itself
	own := []string{"serve", "--http-addr=127.0.0.1:0", "--no-forward", journaled(t, args)}
	n.cmd = exec.Command(path, append(own, args...)...)
	n.cmd.Env = append(os.Environ(), "FAKE_WALL_FILE="+n.clockAt, "DRILLS="+drills)
	stderr, err := n.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addresses := make(chan []string, 1)
	go func() {
		defer close(n.exited)
		n.read(stderr, addresses)
		_ = n.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = n.cmd.Process.Kill()
		<-n.exited
		if t.Failed() {
			t.Logf("the log of %s:\n%s", name, n.log)
		}
	})
	select {
	case at := <-addresses:
		n.url, n.admin = "http://"+at[0], "http://"+at[1]
	case <-n.exited:
		select {
		case at := <-addresses:
			n.url, n.admin = "http://"+at[0], "http://"+at[1]
		default:
			t.Fatalf("%s ended at the start:\n%s", name, n.log)
		}
	case <-time.After(patience):
		t.Fatalf("%s does not say where it listens:\n%s", name, n.log)
	}
	return n
}

func (n *node) read(stderr io.Reader, addresses chan<- []string) {
	scanner := bufio.NewScanner(stderr)
	for scanner.Scan() {
		n.log.add(scanner.Text())
		if at := listening.FindAllString(scanner.Text(), -1); len(at) > 1 &&
			strings.Contains(scanner.Text(), "msg=listening") {
			select {
			case addresses <- at:
			default:
			}
		}
	}
}

// newToken makes a token with firn token, and adds it to a file of tokens.
func newToken(t testing.TB, file string, args ...string) string {
	t.Helper()
	path, err := firn()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, append([]string{"token"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	token, entry, _ := strings.Cut(string(out), "\n\n")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(entry)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// listens is where a node listens that serve has returned: at its grpc_addr, for example.
func (n *node) listens(name string) string {
	n.t.Helper()
	m := regexp.MustCompile(`msg=listening .*\b` + name + `=(\S+)`).FindStringSubmatch(n.log.String())
	if m == nil {
		n.t.Fatalf("%s does not say what its %s is:\n%s", n.name, name, n.log)
	}
	return m[1]
}

func (n *node) signal(s syscall.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
}

// ended waits until the process has ended, and returns its exit status.
func (n *node) ended() int {
	n.t.Helper()
	select {
	case <-n.exited:
		return n.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		n.t.Fatalf("%s has not ended:\n%s", n.name, n.log)
		return 0
	}
}

func (n *node) kill() {
	n.t.Helper()
	n.signal(syscall.SIGKILL)
	n.ended()
}

// step sets how far the wall clock of a steppable node is off.
func (n *node) step(off time.Duration) {
	n.t.Helper()
	if err := os.WriteFile(n.clockAt, []byte(off.String()), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// lines is the beginning and the end of a log.
type lines struct {
	mu          sync.Mutex
	first, last []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.first) < 40:
		l.first = append(l.first, line)
	case len(l.last) < 40:
		l.last = append(l.last, line)
	default:
		l.last = append(l.last[1:], line)
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(append(append(l.first[:len(l.first):len(l.first)], "..."), l.last...), "\n")
}
