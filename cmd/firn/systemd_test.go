package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// notes is the key of what a script's servers tell systemd.
type notes struct{}

// manager is systemd, as far as servers can tell.
type manager struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func systemd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: systemd WATCHDOG")
	}
	watchdog, err := time.ParseDuration(args[0])
	ts.Check(err)
	dir, err := os.MkdirTemp("", "firn") // a socket's path must be short
	ts.Check(err)
	ts.Defer(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	ts.Check(err)
	ts.Defer(func() { _ = socket.Close() })
	ts.Setenv("NOTIFY_SOCKET", path)
	ts.Setenv("WATCHDOG_USEC", strconv.FormatInt(watchdog.Microseconds(), 10))
	go ts.Value(notes{}).(*manager).listen(socket)
}

func (m *manager) listen(socket *net.UnixConn) {
	message := make([]byte, 4096)
	for {
		n, err := socket.Read(message)
		if err != nil {
			return // it is closed
		}
		m.mu.Lock()
		m.lines = append(m.lines, strings.Split(string(message[:n]), "\n")...)
		m.mu.Unlock()
	}
}

// has tells whether it was told these lines, in this order, others between them.
func (m *manager) has(wanted []string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.lines {
		if len(wanted) > 0 && strings.Contains(line, wanted[0]) {
			wanted = wanted[1:]
		}
	}
	return len(wanted) == 0
}

func toldSystemd(ts *testscript.TestScript, neg bool, args []string) {
	m := ts.Value(notes{}).(*manager)
	if neg {
		if m.has(args) {
			ts.Fatalf("systemd was told %q:\n%s", args, strings.Join(m.lines, "\n"))
		}
		return
	}
	for deadline := time.Now().Add(patience); !m.has(args); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("systemd was not told %q, in this order, but\n%s", args, strings.Join(m.lines, "\n"))
		}
	}
}
