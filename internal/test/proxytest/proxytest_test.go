package proxytest_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/proxytest"
)

const soon, long = 100 * time.Millisecond, 30 * time.Second

// echo is a server that answers each line with itself, and counts them.
type echo struct {
	address string
	lines   atomic.Int32
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	e := &echo{address: listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					e.lines.Add(1)
					_, _ = io.WriteString(conn, lines.Text()+"\n")
				}
			}()
		}
	}()
	return e
}

func (e *echo) wants(t *testing.T, lines int32) {
	t.Helper()
	for deadline := time.Now().Add(long); e.lines.Load() != lines; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the server has got %d lines, want %d", e.lines.Load(), lines)
		}
	}
}

func dial(t *testing.T, p *proxytest.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, line string) {
	t.Helper()
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// answer reads a line.
func answer(conn net.Conn, patience time.Duration) (string, error) {
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func wantAnswer(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	if got, err := answer(conn, long); err != nil || got != want {
		t.Fatalf("the answer is %q, %v; want %q", got, err, want)
	}
}

func TestCutOneWay(t *testing.T) {
	server := newEcho(t)
	p := proxytest.New(t, server.address)
	conn := dial(t, p)
	send(t, conn, "a")
	wantAnswer(t, conn, "a")
	server.wants(t, 1)

	p.CutOneWay(proxytest.ToClient, true)
	send(t, conn, "b")
	server.wants(t, 2)
	if got, err := answer(conn, soon); err == nil {
		t.Errorf("an answer %q comes through the cut", got)
	}
	p.CutOneWay(proxytest.ToClient, false)
	wantAnswer(t, conn, "b")

	p.CutOneWay(proxytest.ToServer, true)
	send(t, conn, "c")
	if got, err := answer(conn, soon); err == nil || server.lines.Load() != 2 {
		t.Errorf("the server has got %d lines through the cut, and answers %q", server.lines.Load(), got)
	}
	p.CutOneWay(proxytest.ToServer, false)
	wantAnswer(t, conn, "c")
}

func TestReset(t *testing.T) {
	p := proxytest.New(t, newEcho(t).address)
	conn := dial(t, p)
	send(t, conn, "a")
	wantAnswer(t, conn, "a")
	p.Reset()
	if _, err := answer(conn, long); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a read after the reset: %v, want %v", err, syscall.ECONNRESET)
	}
	again := dial(t, p)
	send(t, again, "b")
	wantAnswer(t, again, "b")
}

func TestInspect(t *testing.T) {
	tests := []struct {
		name    string
		at      proxytest.Direction
		fate    proxytest.Fate
		arrives int32 // lines at the server
	}{
		{"request dropped", proxytest.ToServer, proxytest.ResetBefore, 0},
		{"request delivered", proxytest.ToServer, proxytest.ResetAfter, 1},
		{"answer dropped", proxytest.ToClient, proxytest.ResetBefore, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := newEcho(t)
			p := proxytest.New(t, server.address)
			p.Inspect(func(d proxytest.Direction, data []byte) proxytest.Fate {
				if d == tt.at && strings.Contains(string(data), "commit") {
					return tt.fate
				}
				return proxytest.Forward
			})
			conn := dial(t, p)
			send(t, conn, "commit")
			if got, err := answer(conn, long); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the answer is %q, %v; want a reset", got, err)
			}
			again := dial(t, p)
			send(t, again, "begin")
			wantAnswer(t, again, "begin")
			server.wants(t, tt.arrives+1)
		})
	}
}

// An address belongs to one test, of whatever process, until that ends; and a server can listen there.
func TestFixedAddress(t *testing.T) {
	var address string
	t.Run("has it", func(t *testing.T) {
		address = proxytest.FixedAddress(t)
		if other, err := net.ListenPacket("udp", address); err == nil {
			_ = other.Close()
			t.Errorf("another test can have %s, too", address)
		}
		server, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = server.Close()
	})
	again, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatalf("the test that had %s has ended: %v", address, err)
	}
	_ = again.Close()
}
