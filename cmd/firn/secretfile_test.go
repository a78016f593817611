//go:build unix

package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/admit/secretfile"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/node"
	"github.com/firn-id/firn/store/memstore"
)

// administered starts a node with a store in memory, which runs until the test ends, and returns where it is
// administered and the file of its secret.
func administered(t *testing.T) (admin, file string) {
	t.Helper()
	c := node.Defaults()
	c.HTTPAddr, c.AdminAddr, c.DataDir, c.DrainDelay = "127.0.0.1:0", "127.0.0.1:0",
		filepath.Join(t.TempDir(), "data"), 0
	c.Store = func() (node.Store, error) { return memstore.NewService().Client("node"), nil }
	n, err := node.New(c)
	if err == nil {
		err = n.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := becomesReady("http://" + n.Addr(node.Public)); err != nil {
		t.Fatal(err)
	}
	return n.AdminURL(), filepath.Join(c.DataDir, secretfile.Name)
}

// types runs a command as its user would, and returns its status and what it prints.
func types(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var b strings.Builder
	status = run(t.Context(), args, nil, strings.NewReader(""), &b, &b)
	return status, b.String()
}

// Who has started a node administers it, and finds its secret without being told where it is. Another user of this
// machine may look, and no more. The secret is gone when the node is.
func TestAdministration(t *testing.T) {
	t.Parallel()
	var file string
	t.Run("while it runs", func(t *testing.T) {
		var admin string
		admin, file = administered(t)
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("the file of the secret: %v, %v", info, err)
		}
		for _, method := range []string{http.MethodPost, http.MethodDelete} { // without the secret
			path := map[string]string{
				http.MethodPost:   "/api/v1/sequencers/orders/attach",
				http.MethodDelete: "/api/v1/sequencers/orders",
			}[method]
			status, body, err := sendAs("", method, admin+path, "")
			var answer httpapi.Locked
			if err != nil || status != http.StatusUnauthorized || json.Unmarshal(body, &answer) != nil ||
				answer.Error.Code != codes.Unauthenticated || answer.SecretFile != file ||
				!strings.Contains(answer.Error.Message, file) {
				t.Errorf("%s %s = %d %s, %v", method, path, status, body, err)
			}
		}
		for _, path := range []string{
			"/api/v1/cluster", "/api/v1/sequencers", "/api/v1/cluster/log", "/metrics",
			"/ui/", "/api/v1/sequencers/default/nodes", "/debug/pprof/goroutine",
		} {
			if status, body, err := sendAs("", http.MethodGet, admin+path, ""); err != nil || status != http.StatusOK {
				t.Errorf("GET %s = %d %s, %v", path, status, body, err)
			}
		}
		for _, at := range []string{admin, strings.Replace(admin, "127.0.0.1", "localhost", 1)} {
			// Where the page is opened is where the node listens, and not whatever else has its name.
			status, out := types(t, "cluster", "dashboard", "--admin", at)
			base, code, ok := strings.Cut(strings.TrimSpace(out), "/ui/#login=")
			if status != 0 || !ok || base != admin {
				t.Errorf("firn cluster dashboard --admin %s ends with %d: %s", at, status, out)
			}
			for _, want := range []int{http.StatusOK, http.StatusUnauthorized} { // once
				if status, body, err := sendAs("", http.MethodPost, admin+"/ui/login",
					`{"code":"`+code+`"}`); err != nil || status != want {
					t.Errorf("the login is answered %d %s, %v; want %d", status, body, err, want)
				}
			}
			for _, command := range []string{
				"create orders --nodes 16", "attach orders", "detach orders",
				"destroy orders --yes",
			} {
				if status, out := types(t,
					append(append([]string{"sequencer"}, strings.Fields(command)...), "--admin", at)...); status != 0 {
					t.Errorf("firn sequencer %s --admin %s ends with %d: %s", command, at, status, out)
				}
			}
		}
		t.Run("another user", func(t *testing.T) { testAnotherUser(t, admin) })
	})
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file of the secret is still there: %v", err)
	}
}

// testAnotherUser has nobody try to administer.
func testAnotherUser(t *testing.T, admin string) {
	const nobody = 65534
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	// The program must be where others get at it.
	dir, err := os.MkdirTemp("", "firn-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	copied := filepath.Join(dir, "firn")
	if err == nil {
		err = exec.Command("cp", self, copied).Run()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{"cluster status", 0, "position"},
		{"sequencer list", 0, "default"},
		{"sequencer create orders", 1, "(unauthenticated); that file: permission denied"},
		{"sequencer destroy default", 1, "(unauthenticated); that file: permission denied"},
	} {
		c := exec.Command(copied, append(strings.Fields(tt.args), "--admin", admin)...)
		c.Args[0], c.Dir = "firn", "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := c.CombinedOutput()
		if c.ProcessState == nil {
			t.Fatal(err)
		}
		if got := c.ProcessState.ExitCode(); got != tt.status || !strings.Contains(string(out), tt.says) {
			t.Errorf("nobody's firn %s ends with %d: %s\nwant %d, and %q", tt.args, got, out, tt.status, tt.says)
		}
	}
}

// squatter listens where a node might, and hopes to be shown its secret.
type squatter struct {
	*httptest.Server
	mu    sync.Mutex // guards what follows
	file  string     // that it says the secret is in
	shown []string
}

func newSquatter(t *testing.T, l net.Listener) *squatter {
	q := &squatter{}
	q.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if token := httpapi.Token(r); token != "" {
			q.shown = append(q.shown, token)
		}
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(httpapi.Locked{
			Failure: httpapi.Failure{Error: httpapi.Error{
				Code:    codes.Unauthenticated,
				Message: "show me the secret",
			}},
			SecretFile: q.file,
		})
	}))
	if l != nil {
		_ = q.Listener.Close() // it has another
		q.Listener = l
	}
	q.Start()
	t.Cleanup(q.Close)
	return q
}

func (q *squatter) takes() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	shown := q.shown
	q.shown = nil
	return shown
}

// A process that listens where no node does never learns the secret of a running node, whatever file it names: the
// command does not show a file that is for another address or another network, or that holds no secret. All that the
// process can learn is the secret of a node that has ended.
func TestSquatter(t *testing.T) {
	t.Parallel()
	admin, file := administered(t)
	q := newSquatter(t, nil)
	at := strings.TrimPrefix(q.URL, "http://")
	dir := t.TempDir()
	dead := auth.NewSecret().Token()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		return path
	}
	secret := func(address string) string {
		path := filepath.Join(dir, "secret")
		if err := secretfile.Write(path, dead, []string{address}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	good := secret(at)
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := os.Symlink(write("linked", good, 0o600), link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ what, file, says string }{
		{"the secret of a node that lives", file, "it is for another address than " + at},
		{"a secret in another network", write("network",
			regexp.MustCompile(" in .*").ReplaceAllString(good, " in net:[1]"), 0o600), "in another network"},
		{"a secret that others can read", write("read", good, 0o644), "others can get at it (mode 0644)"},
		{"a secret that others can write", write("written", good, 0o620), "others can get at it (mode 0620)"},
		{"a link to one", link, "too many levels of symbolic links"},
		{"a pipe", pipe, "it is not a regular file"},
		{"a token of firn token", write("token", dead+"\n", 0o600), "it is not the secret of a node"},
		{
			"a short token", write("short", strings.Replace(good, dead, "firn_short", 1), 0o600),
			"it is not the secret of a node",
		},
		{"an address elsewhere", write("elsewhere", secret("192.0.2.1:9080"), 0o600), "it is not the secret of a node"},
		{"anything", "/etc/passwd", ""},
		{"nothing", filepath.Join(dir, "nothing"), "no such file"},
		{"a path from where one is", "admin.token", "it is no full path"},
	} {
		q.file = tt.file
		status, out := types(t, "sequencer", "destroy", "orders", "--yes", "--admin", q.URL)
		if status == 0 || !strings.Contains(out, "show me the secret") || !strings.Contains(out, tt.says) {
			t.Errorf("%s: firn ends with %d: %s; want %q", tt.what, status, out, tt.says)
		}
		if shown := q.takes(); len(shown) > 0 {
			t.Errorf("%s: it was shown", tt.what)
		}
	}

	// This one was at the squatter's address before it, and is good for nothing any more.
	q.file = write("dead", good, 0o600)
	if status, out := types(t, "sequencer", "destroy", "orders", "--yes", "--admin", q.URL); status == 0 {
		t.Errorf("firn ends with %d: %s", status, out)
	}
	if shown := q.takes(); len(shown) != 1 || shown[0] != dead {
		t.Errorf("a dead secret was shown %d times", len(shown))
	}

	// By name a machine has two addresses. Here the node is at one, and somebody else at the other.
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(admin, "http://"))
	l, err := net.Listen("tcp", "[::1]:"+port)
	if err != nil {
		t.Logf("not tried with ::1: %v", err)
		return
	}
	other := newSquatter(t, l)
	other.file = file
	if status, out := types(t, "sequencer", "destroy", "orders", "--yes", "--admin",
		"http://[::1]:"+port); status == 0 || !strings.Contains(out, "it is for another address") {
		t.Errorf("firn asks ::1, and ends with %d: %s", status, out)
	}
	if status, out := types(t, "sequencer", "create", "orders", "--admin", "http://localhost:"+port); status != 0 {
		t.Errorf("firn asks localhost, and ends with %d: %s", status, out)
	}
	if shown := other.takes(); len(shown) > 0 {
		t.Error("who is at ::1 was shown the secret of the node at 127.0.0.1")
	}
}

// A token file may hold the secret of a node as it is, copied from another machine.
func TestSecretAsTokenFile(t *testing.T) {
	t.Parallel()
	token := auth.NewSecret().Token()
	path := filepath.Join(t.TempDir(), "admin.token")
	if err := secretfile.Write(path, token, []string{"127.0.0.1:9080"}); err != nil {
		t.Fatal(err)
	}
	s := remote.Access{TokenFile: path}
	if got, _, err := s.Load(); err != nil || got != token {
		t.Errorf("it holds %d characters, %v", len(got), err)
	}
}
