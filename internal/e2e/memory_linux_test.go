package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What many at once do to the memory of a node that has as much as a pod. The table of docs/security.md is what this
// prints with -v. The node lives through each, well below its limit, and serves a probe and an ID meanwhile.

// siege takes memory of a node for as long as it lasts.
type siege struct {
	name  string
	files uint64   // that this process needs open for it
	args  []string // of firn serve, in addition
	begin func(t *testing.T, n *node) (end func())
}

func sieges() []siege {
	return []siege{
		{"2 000 idle HTTP connections", 2_000, nil, func(t *testing.T, n *node) func() {
			return occupy(t, strings.TrimPrefix(n.url, "http://"), 2_000, askOnce)
		}},
	}
}

// occupy opens so many connections, has each do something, and holds them until it is told to end. Those that the
// node closes are no failures.
func occupy(t *testing.T, address string, count int, do func(net.Conn) error) (end func()) {
	t.Helper()
	const dialers = 8
	conns := make([]net.Conn, count)
	var failed sync.Once
	var dialling sync.WaitGroup
	for part := range dialers {
		dialling.Go(func() {
			for i := part; i < count; i += dialers {
				c, err := net.DialTimeout("tcp", address, patience)
				if err != nil {
					failed.Do(func() { t.Errorf("connection %d: %v", i, err) })
					return
				}
				conns[i] = c
				_ = c.SetDeadline(time.Now().Add(patience))
				_ = do(c)
			}
		})
	}
	dialling.Wait()
	return func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}
}

// askOnce has a request answered, and keeps the connection.
func askOnce(c net.Conn) error {
	if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: firn\r\n\r\n"); err != nil {
		return err
	}
	_, err := http.ReadResponse(bufio.NewReader(c), nil)
	return err
}

// probed has the node's probes answered, over connections of their own, and returns how long the slower one took.
func (n *node) probed() (slowest time.Duration) {
	n.t.Helper()
	for _, path := range []string{"/livez", "/readyz"} {
		client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
		began := time.Now()
		_, err := exchange(client, http.MethodGet, n.url+path, "", nil)
		slowest = max(slowest, time.Since(began))
		client.CloseIdleConnections()
		if err != nil {
			n.t.Errorf("%s: %v", path, err)
		}
	}
	return slowest
}

func TestMemoryUnderAttack(t *testing.T) {
	for _, s := range sieges() {
		t.Run(s.name, func(t *testing.T) {
			var limit syscall.Rlimit
			if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < s.files+500 {
				t.Skipf("a process may have %d files open here, and %d connections are wanted (%v)", limit.Cur, s.files, err)
			}
			p := newPod(t, podMemory)
			n := p.serve("node", append([]string{
				"--data-dir=" + filepath.Join(t.TempDir(), "data"), "--grpc-addr=127.0.0.1:0", "--redis-addr=127.0.0.1:0",
			}, s.args...)...)
			n.ready(t, new(ledger))
			before := p.used()
			end := s.begin(t, n)
			during := p.used()
			slowest := n.probed()
			healthy(t, n, "")
			end()
			n.probed()
			healthy(t, n, "")
			after := p.used()
			t.Logf("| %s | %d | %d, at most %d | %d | (a probe took %v)", s.name, before>>20, during>>20, p.peak()>>20, after>>20, slowest)
			if killed := p.killed(); killed != 0 {
				t.Errorf("the node was killed for want of memory")
			}
			if most := int64(podMemory - room); p.peak() > most {
				t.Errorf("it used %d MiB; want at most %d MiB of %d", p.peak()>>20, most>>20, podMemory>>20)
			}
			if log := n.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "level=ERROR") {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
}

// room is what a node leaves free of its memory, whatever is done to it.
const room = 16 << 20
