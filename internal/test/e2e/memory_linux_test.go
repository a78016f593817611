package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// What many at once do to the memory of a node that has as much as a pod. docs/security.md sums up what this prints
// with -v. The node lives through each, well below its limit, and serves a probe and an ID meanwhile.

// siege takes memory of a node for as long as it lasts. Those who lay it come from 127.0.0.1.
type siege struct {
	name   string
	conns  uint64 // that this process needs for it
	tokens bool   // the node wants tokens, and the callers have none
	args   string // of firn serve, in addition; empty: none
	begin  func(t testing.TB, n *node) (end func())
}

// httpConns, adminConns and redisConns have so many connections each do something.
func httpConns(count int, do func(net.Conn) error) func(t testing.TB, n *node) func() {
	return func(t testing.TB, n *node) func() { return occupy(t, strings.TrimPrefix(n.url, "http://"), count, do) }
}

func adminConns(count int, do func(net.Conn) error) func(t testing.TB, n *node) func() {
	return func(t testing.TB, n *node) func() {
		return occupy(t, strings.TrimPrefix(n.admin, "http://"), count, do)
	}
}

func redisConns(count int, do func(net.Conn) error) func(t testing.TB, n *node) func() {
	return func(t testing.TB, n *node) func() { return occupy(t, n.listens("redis_addr"), count, do) }
}

// What connections do.
func nothing(net.Conn) error { return nil }

func write(text string) func(net.Conn) error {
	return func(c net.Conn) error {
		_, err := io.WriteString(c, text)
		return err
	}
}

var (
	half       = strings.Repeat("a", 15<<10)
	halfHeader = write("GET / HTTP/1.1\r\nX: " + half)
)

func sieges() []siege {
	return []siege{
		{"13 700 HTTP connections that have asked once", 13_700, false, "", httpConns(13_700, askOnce)},
		{"16 390 HTTP connections that send nothing", 16_390, false, "", httpConns(16_390, nothing)},
		{"10 000 HTTP connections with half a header of 15 KiB", 10_000, false, "", httpConns(10_000, halfHeader)},
		{
			"10 000 connections of Redis clients with half a command of 15 KiB", 10_000, false, "",
			redisConns(10_000, write(half)),
		},
		{"18 600 health watches on 186 gRPC connections", 186, false, "", calls(186, 100, watchHealth)},
		{"the same, with tokens", 186, true, "", calls(186, 100, watchHealth)},
		{
			"18 600 gRPC calls whose request never comes, on 186 connections", 186, false, "",
			calls(186, 100, announceCall),
		},
		{"3000 gRPC connections that have asked once", 3000, false, "", calls(3000, 1, askHealth)},
		{"1000 gRPC streams that nobody reads, on 10 connections", 10, false, "", calls(10, 100, openStream)},
		{"200 000 gRPC calls for an ID that nobody takes, on 2000 connections", 2000, false, "", untakenIDs(2000)},
		{
			"6000 connections to the admin listener with half a header of 15 KiB, --max-connections=100000",
			6000, false,
			"--max-connections=100000", adminConns(6000, halfHeader),
		},
		{
			"13 700 HTTP connections, with --max-connections=100000", 13_700, false, "--max-connections=100000",
			httpConns(13_700, askOnce),
		},
	}
}

// untakenIDs has each of so many gRPC connections ask a hundred times for an ID, and allow none to be sent.
func untakenIDs(conns int) func(t testing.TB, n *node) (end func()) {
	text := func(s string) string { return string(rune(len(s))) + s }
	headers := "\x83\x86\x04" + text(firnv1.Firn_Next_FullMethodName) + "\x01" + text("firn") +
		"\x00" + text("content-type") + text("application/grpc") + "\x00" + text("te") + text("trailers")
	var b strings.Builder
	b.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(6, 4, 0, 0, "\x00\x04\x00\x00\x00\x00"))
	for i := range uint32(100) {
		b.WriteString(frame(len(headers), 1, 4, 2*i+1, headers) + frame(5, 0, 1, 2*i+1, "\x00\x00\x00\x00\x00"))
	}
	return func(t testing.TB, n *node) func() {
		return occupy(t, n.listens("grpc_addr"), conns, write(b.String()))
	}
}

// calls has each of so many gRPC connections begin so many calls.
func calls(conns, each int, begin func(context.Context, *grpc.ClientConn) error) func(t testing.TB,
	n *node) (end func()) {
	return func(t testing.TB, n *node) func() {
		ctx, end := context.WithCancel(t.Context())
		address := n.listens("grpc_addr")
		var all sync.WaitGroup
		for range conns {
			conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithReadBufferSize(1<<10), grpc.WithWriteBufferSize(1<<10))
			if err != nil {
				t.Fatal(err)
			}
			context.AfterFunc(ctx, func() { conn.Close() })
			all.Go(func() {
				for range each {
					if begin(ctx, conn) != nil {
						return // the node has closed the connection, or refuses more
					}
				}
			})
		}
		all.Wait()
		return end
	}
}

// Calls, each as far as it is to go.
var (
	askHealth = func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := healthpb.NewHealthClient(c).Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
	watchHealth = func(ctx context.Context, c *grpc.ClientConn) error {
		w, err := healthpb.NewHealthClient(c).Watch(ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			return err
		}
		_, _ = w.Recv() // it may be one too many
		return nil
	}
	announceCall = func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := c.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, firnv1.Firn_Next_FullMethodName)
		return err
	}
	openStream = func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := firnv1.NewFirnClient(c).Stream(ctx, &firnv1.StreamRequest{})
		return err
	}
)

// occupy opens so many connections, has each do something, and holds them until it is told to end. Those that the
// node closes are no failures.
func occupy(t testing.TB, address string, count int, do func(net.Conn) error) (end func()) {
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
		began := time.Now()
		_, err := exchange(once("127.0.0.1"), http.MethodGet, n.url+path, "", nil)
		slowest = max(slowest, time.Since(began))
		if err != nil {
			n.t.Errorf("%s: %v", path, err)
		}
	}
	return slowest
}

func TestMemoryUnderAttack(t *testing.T) {
	testenv.Slow(t)
	for _, s := range sieges() {
		t.Run(s.name, func(t *testing.T) {
			var limit syscall.Rlimit
			if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < s.conns+500 {
				t.Skipf("a process may have %d files open here, and %d connections are wanted (%v)",
					limit.Cur, s.conns, err)
			}
			p := newPod(t, podMemory)
			args, token := []string{
				"--data-dir=" + filepath.Join(t.TempDir(), "data"), "--grpc-addr=127.0.0.1:0",
				"--redis-addr=127.0.0.1:0",
			}, ""
			if s.tokens {
				file := filepath.Join(t.TempDir(), "tokens.yaml")
				token = newToken(t, file, "--name=app", "--allow=issue")
				args = append(args, "--tokens="+file)
			}
			if s.args != "" {
				args = append(args, s.args)
			}
			n := p.serve("node", args...)
			n.opens()
			before := p.used()
			end := s.begin(t, n)
			during := p.settled()
			slowest := n.probed()
			healthy(t, n, token)
			healthyFrom(t, n, token, "127.0.0.2")
			end()
			n.probed()
			healthy(t, n, token)
			t.Logf("| %s | %d | %d, at most %d | %d |", s.name, before>>20, during>>20, p.peak()>>20, p.used()>>20)
			t.Logf("a probe took %v", slowest)
			if p.killed() != 0 {
				t.Error("the node was killed for want of memory")
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

// opens waits until the node is ready, tokens or not.
func (n *node) opens() {
	n.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		_, err := exchange(caller, http.MethodGet, n.url+"/readyz", "", nil)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatal(err)
		}
	}
}

// room is what a node leaves free of its memory, whatever is done to it.
const room = 16 << 20

// BenchmarkMemory measures what one of each takes, of the kernel too, without a limit: package limits has the figures.
//
//	go test -run '^$' -bench Memory -benchtime 1x ./internal/test/e2e
func BenchmarkMemory(b *testing.B) {
	certs := certtest.WriteFiles(b, b.TempDir())
	secured := func(protocol string, do func(net.Conn) error) func(net.Conn) error {
		return func(c net.Conn) error {
			return do(tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}))
		}
	}
	preface := func(c net.Conn) error {
		if err := write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(0, 4, 0, 0, ""))(c); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 9))
		return err
	}
	batch := func(c net.Conn) error {
		if err := write("POST /api/v1/ids?count=1000 HTTP/1.1\r\nHost: firn\r\n\r\n")(c); err != nil {
			return err
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		return err
	}
	for _, k := range []struct {
		name  string
		count int
		tls   bool
		begin func(t testing.TB, n *node) (end func())
	}{
		{"HTTP, nothing sent", 2000, false, httpConns(2000, nothing)},
		{"HTTP, asked", 2000, false, httpConns(2000, askOnce)},
		{"HTTP, asked for 1000 IDs", 2000, false, httpConns(2000, batch)},
		{"HTTP, half a header", 2000, false, httpConns(2000, halfHeader)},
		{"HTTP over TLS, asked", 1000, true, httpConns(1000, secured("http/1.1", askOnce))},
		{"HTTP 2 over TLS", 1000, true, httpConns(1000, secured("h2", preface))},
		{"Redis, half a command", 2000, false, redisConns(2000, write(half))},
		{"gRPC, asked", 1000, false, calls(1000, 1, askHealth)},
		{"a health watch", 9000, false, calls(90, 100, watchHealth)},
		{"a gRPC call without its request", 9000, false, calls(90, 100, announceCall)},
	} {
		b.Run(k.name, func(b *testing.B) {
			p := newPod(b, 4<<30)
			args := []string{
				"--data-dir=" + filepath.Join(b.TempDir(), "data"), "--grpc-addr=127.0.0.1:0",
				"--redis-addr=127.0.0.1:0",
			}
			if k.tls {
				args = append(args, "--tls-cert="+certs.ServerCert, "--tls-key="+certs.ServerKey)
			}
			for range b.N {
				n := p.serve("node", args...)
				before := p.settled()
				end := k.begin(b, n)
				b.ReportMetric(float64(p.settled()-before)/1024/float64(k.count), "KiB/each")
				end()
				n.kill()
			}
			b.ReportMetric(0, "ns/op") // it says nothing here
		})
	}
}
