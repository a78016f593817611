package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/node"
	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/store/memstore"
)

// shortDir returns a directory that other users can look into, and whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "firn-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// onSockets runs a node with all protocols on Unix sockets, http.sock and so on, until the test or stop ends it.
func onSockets(t *testing.T, dir string, change func(*node.Config)) (stop func()) {
	t.Helper()
	c := node.Defaults()
	at := func(name string) string { return "unix:" + filepath.Join(dir, name+".sock") }
	c.HTTPAddr, c.AdminAddr, c.GRPCAddr, c.RedisAddr, c.MetricsAddr = at("http"), at("admin"), at("grpc"),
		at("redis"), at("metrics")
	c.DataDir, c.DrainDelay = filepath.Join(t.TempDir(), "data"), 0
	c.Store = func() (node.Store, error) { return memstore.NewService().Client("node"), nil }
	if change != nil {
		change(&c)
	}
	n, err := node.New(c)
	if err == nil {
		err = n.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stop = func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	for deadline := time.Now().Add(patience); n.Ready() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(n.Ready())
		}
	}
	return stop
}

// Every protocol is served on a Unix socket, and whatever takes the URL of a server takes such an address.
func TestUnixSockets(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop := onSockets(t, dir, nil)
	at := func(name string) string { return "unix:" + filepath.Join(dir, name+".sock") }
	for _, tt := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"id", "--server", at("http")}, 0, ""},
		{[]string{"id", "--server", "unix://" + filepath.Join(dir, "http.sock")}, 0, ""},
		{[]string{"id", "--server", at("http") + "x"}, 1, "no answer from " + at("http") + "x: dial unix "},
		{[]string{"id", "--server", "unix:http.sock"}, 78, "want one with an absolute path"},
		{[]string{"id", "--server", at("http"), "--ca", "x"}, 78, "--ca: "},
		{
			[]string{"bench", "--server", at("http"), "--count", "100", "--batch", "7", "--concurrency", "2"},
			0,
			"none among 100 IDs",
		},
		{[]string{
			"bench", "--protocol", "grpc", "--server", at("grpc"), "--count", "100", "--batch", "7",
			"--concurrency", "2",
		}, 0, "none among 100 IDs"},
		{[]string{
			"bench", "--protocol", "redis", "--server", at("redis"), "--count", "100", "--batch", "7",
			"--concurrency", "2",
		}, 0, "none among 100 IDs"},
		{[]string{"cluster", "status", "--wide", "--admin", at("admin")}, 0, "http=" + at("http")},
		{[]string{"sequencer", "create", "orders", "--admin", at("admin")}, 0, ""}, // with the node's own secret
		{[]string{"id", "--server", at("http"), "--sequencer", "orders"}, 0, ""},
		{[]string{"cluster", "dashboard", "--admin", at("admin")}, 78, "browsers do not open Unix sockets"},
		{
			[]string{
				"doctor", "--http-addr", at("http"), "--admin-addr", at("admin"), "--redis-addr", at("redis"),
				"--grpc-addr", at("free"), "--data-dir", filepath.Join(dir, "d"),
			},
			0,
			at("redis") + ": a node serves there",
		},
		{[]string{
			"doctor", "--http-addr", at("free"), "--admin-addr", at("none/admin"), "--data-dir",
			filepath.Join(dir, "d"),
		}, 1, "no such file or directory"},
		{
			[]string{"serve", "--http-addr", at("http"), "--data-dir", filepath.Join(dir, "d")},
			1,
			"can't listen on " + at("http") +
				": another process listens there; end it, or choose another path; --http-addr sets another address",
		},
		{
			[]string{"serve", "--http-addr", at("a"), "--redis-addr", at("a")},
			78,
			"--redis-addr: --http-addr is " + at("a") + ", too; want another socket for each",
		},
		{
			[]string{"serve", "--http-addr", "unix:/" + strings.Repeat("a", 107)},
			78,
			"has 108 bytes; a Unix socket's can have at most 107",
		},
		{
			[]string{"serve", "--socket-mode", "0660"},
			78,
			"--socket-mode has no effect without an address such as unix:",
		},
		{[]string{"serve", "--http-addr", at("a"), "--socket-mode", "0666x"}, 78, `"0666x" is not a mode of a socket`},
		{[]string{"serve", "--http-addr", at("a"), "--socket-mode", "1777"}, 78, `"1777" is not a mode`},
		{[]string{"serve", "--http-addr", at("a"), "--socket-mode", "0060"}, 78, `"0060" is not a mode`},
		{
			[]string{"serve", "--http-addr", "systemd:http"},
			1,
			"can't listen on systemd:http: systemd passes no socket to the process; want one with " +
				"FileDescriptorName=http",
		},
	} {
		if status, out := types(t, tt.args...); status != tt.status || !strings.Contains(out, tt.says) {
			t.Errorf("firn %s ends with %d: %s\nwant %d, and %q", strings.Join(tt.args, " "), status, out,
				tt.status, tt.says)
		}
	}
	c, err := client.New([]string{at("http"), at("nowhere")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Fill(t.Context(), make([]firn.ID, 1000)); err != nil {
		t.Error(err)
	}
	stop()
	left, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	if len(left) > 0 || err != nil {
		t.Errorf("after the end: %q, %v", left, err)
	}
}

// Another user of the machine can connect only if the mode says so.
func TestSocketMode(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	programs := shortDir(t) // where others get at it
	copied := filepath.Join(programs, "firn")
	self, err := os.Executable()
	if err == nil {
		err = exec.Command("cp", self, copied).Run()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		mode   os.FileMode
		status int
		says   string
	}{{0, 1, "permission denied"}, {0o600, 1, "permission denied"}, {0o660, 1, "permission denied"}, {0o666, 0, ""}} {
		dir := shortDir(t)
		stop := onSockets(t, dir, func(c *node.Config) {
			if tt.mode != 0 { // else the default
				c.SocketMode = tt.mode
			}
		})
		c := exec.Command(copied, "id", "--server", "unix:"+filepath.Join(dir, "http.sock"))
		c.Args[0], c.Dir = "firn", "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := c.CombinedOutput()
		if c.ProcessState == nil {
			t.Fatal(err)
		}
		if got := c.ProcessState.ExitCode(); got != tt.status || !strings.Contains(string(out), tt.says) {
			t.Errorf("mode %04o: nobody's firn id ends with %d: %s; want %d", tt.mode, got, out, tt.status)
		}
		stop()
	}
}

// A Unix socket takes no TLS: its mode says who can connect. The other addresses of the same node do.
func TestNoTLSOverUnixSockets(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	ca := certtest.NewAuthority(t, "firn")
	cert, key := ca.Issue("firn", x509.ExtKeyUsageServerAuth, time.Time{})
	files := conns.TLSFiles{
		Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"),
		ClientCA: filepath.Join(dir, "ca"),
	}
	for path, data := range map[string][]byte{files.Cert: cert, files.Key: key, files.ClientCA: ca.PEM} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := proxytest.FixedAddress(t)
	onSockets(t, dir, func(c *node.Config) { c.TLS, c.MetricsAddr = files, port })
	for protocol, name := range map[string]string{"http": "http", "grpc": "grpc", "redis": "redis"} {
		if status, out := types(t, "bench", "--protocol", protocol, "--server",
			"unix:"+filepath.Join(dir, name+".sock"), "--count", "2", "--concurrency", "1"); status != 0 {
			t.Errorf("%s: %d: %s", protocol, status, out)
		}
	}
	if status, _, err := request(http.MethodGet, "http://"+port+"/livez"); err == nil && status == http.StatusOK {
		t.Errorf("without TLS, %s answers %d", port, status)
	}
	if _, err := http.Get("https://" + port + "/livez"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with TLS: %v", err)
	}
}

// started starts firn as systemd does, with sockets under these names, and returns its log once a line has a text.
func started(t *testing.T, names string, sockets []net.Listener, text string, args ...string) (log string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "firn")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "sh",
		append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, link}, args...)...)
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "LISTEN_FDNAMES="+names, fmt.Sprintf("LISTEN_FDS=%d", len(sockets)))
	for _, l := range sockets {
		f, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c.ExtraFiles = append(c.ExtraFiles, f)
	}
	out, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	defer time.AfterFunc(patience, func() { _ = c.Process.Kill() }).Stop() // so that its log ends
	for lines := bufio.NewScanner(out); lines.Scan(); {
		log += lines.Text() + "\n"
		if strings.Contains(lines.Text(), text) {
			go func() {
				for lines.Scan() { // so that it does not wait
				}
			}()
			return log
		}
	}
	t.Fatalf("it does not say %q:\n%s", text, log)
	return log
}

// Sockets that systemd passes are served under their names, and stay when the node ends.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "redis.sock")
	listen := func(network, at string) net.Listener {
		l, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	web, redis, spare := listen("tcp", "127.0.0.1:0"), listen("unix", path), listen("tcp", "127.0.0.1:0")
	t.Run("all", func(t *testing.T) {
		log := started(t, "web:redis:spare", []net.Listener{web, redis, spare}, "msg=listening",
			"serve", "--http-addr", "systemd:web", "--redis-addr", "systemd:redis", "--admin-addr", "none",
			"--drain-delay", "0s")
		for _, want := range []string{
			"addr=" + web.Addr().String(), "redis_addr=unix:" + path,
			`msg="systemd passes sockets that no flag names" names=[spare]`,
		} {
			if !strings.Contains(log, want) {
				t.Errorf("the log has no %s:\n%s", want, log)
			}
		}
		if err := becomesReady("http://" + web.Addr().String()); err != nil {
			t.Error(err)
		}
		if status, out := types(t, "bench", "--protocol", "redis", "--server", "unix:"+path, "--count", "10",
			"--concurrency", "1"); status != 0 {
			t.Errorf("%d: %s", status, out)
		}
	})
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("systemd's socket: %v", err)
	}
	for name, want := range map[string]string{
		"systemd:api": `can't listen on systemd:api: systemd passes only web to the process; want one with ` +
			`FileDescriptorName=api`,
		"systemd:two": `systemd passes 2 sockets of this name; want one`,
	} {
		names := map[string]string{"systemd:api": "web:web", "systemd:two": "two:two"}[name]
		started(t, names, []net.Listener{web, spare}, want, "serve", "--http-addr", name, "--admin-addr", "none")
	}
	all := listen("tcp", "0.0.0.0:0") // for administrators, without tokens
	started(t, "admin", []net.Listener{all}, "others can reach ", "serve", "--http-addr", "127.0.0.1:0", "--admin-addr",
		"systemd:admin")
}
