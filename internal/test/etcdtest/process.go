//go:build unix

package etcdtest

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const startDeadline = 60 * time.Second

// process is one run of the server.
type process struct {
	cmd     *exec.Cmd
	address chan string   // gets the address for clients, once
	exited  chan struct{} // closed when the process has ended
	log     *tail
}

func launch(t testing.TB, path string, args []string) *process {
	t.Helper()
	p := &process{
		cmd:     exec.Command(path, args...),
		address: make(chan string, 1), exited: make(chan struct{}), log: &tail{},
	}
	p.cmd.SysProcAttr = attributes()
	stderr, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatalf("etcdtest: starting the server: %v", err)
	}
	go func() {
		p.read(stderr)
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	return p
}

// read follows the server's log to its end.
func (p *process) read(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.log.add(lines.Text())
		var line struct{ Msg, Address string }
		_ = json.Unmarshal(lines.Bytes(), &line)
		if strings.HasPrefix(line.Msg, "serving client traffic") {
			select {
			case p.address <- line.Address:
			default:
			}
		}
	}
}

// serving waits until the server serves, and returns its address for clients.
func (p *process) serving(t testing.TB) string {
	t.Helper()
	select {
	case address := <-p.address:
		if _, _, err := net.SplitHostPort(address); err != nil {
			t.Fatalf("etcdtest: the server logs the address %q: %v", address, err)
		}
		return address
	case <-p.exited:
		t.Fatalf("etcdtest: the server ended at its start:\n%s", p.log)
	case <-time.After(startDeadline):
		t.Fatalf("etcdtest: the server does not serve after %v:\n%s", startDeadline, p.log)
	}
	return ""
}

// tail keeps the last lines of a log. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *tail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	l.lines = l.lines[max(0, len(l.lines)-10):]
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
