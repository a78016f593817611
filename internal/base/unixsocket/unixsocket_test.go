//go:build unix

package unixsocket

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	long := "/" + strings.Repeat("a", 106)
	for address, want := range map[string]string{ // want: the path, or the beginning of the error
		"unix:/run/firn.sock":   "/run/firn.sock",
		"unix:///run/firn.sock": "/run/firn.sock",
		"unix:/run/../a/":       "/a",
		"unix:" + long:          long,
		"unix:" + long + "b":    "the path " + long + "b has 108 bytes; a Unix socket's can have at most 107",
		"unix:firn.sock":        `"unix:firn.sock" is not the address of a Unix socket; want one with an absolute path`,
		"unix:":                 `"unix:" is not the address`,
		"unix:@firn":            `"unix:@firn" is not the address`,
		"/run/firn.sock":        `"/run/firn.sock" is not the address`,
		"localhost:8080":        `"localhost:8080" is not the address`,
		"unix:/run/a b":         `the path "/run/a b" has a space`,
		"unix:/run/a\x00":       `the path "/run/a\x00" has a space or a character that can't be printed`,
	} {
		path, err := Parse(address)
		if err == nil && path != want || err != nil && (!strings.HasPrefix(err.Error(), want) || path != "") {
			t.Errorf("%q: %q, %v; want %s", address, path, err, want)
		}
	}
}

// place returns a path that is short enough for a socket.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "firn")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func mustListen(t *testing.T, path string, mode fs.FileMode) net.Listener {
	t.Helper()
	l, err := Listen(path, mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// dead leaves the socket of a process that was killed.
func dead(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// The mode is the one asked for, whatever the umask, and nobody can connect before the file has it.
func TestModeIsNeverWider(t *testing.T) {
	defer func(before func(string, fs.FileMode) error) { chmod = before }(chmod)
	for _, umask := range []int{0, 0o022, 0o777} {
		for _, want := range []fs.FileMode{0o600, 0o660, 0o666} {
			path := place(t)
			asked := false
			chmod = func(name string, mode fs.FileMode) error {
				asked = true
				if c, err := net.Dial("unix", path); !errors.Is(err, syscall.ECONNREFUSED) &&
					!errors.Is(err, syscall.EACCES) {
					t.Errorf("%v, %v before the socket has its mode", c, err)
				}
				return os.Chmod(name, mode)
			}
			before := syscall.Umask(umask)
			l := mustListen(t, path, want)
			syscall.Umask(before)
			if got := mode(t, path); got != want|fs.ModeSocket || !asked {
				t.Errorf("umask %04o: %v, want %v", umask, got, want)
			}
			c, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			_ = l.Close()
		}
	}
}

func TestSocketOfADeadProcessIsReplaced(t *testing.T) {
	path := place(t)
	dead(t, path)
	l := mustListen(t, path, 0o600)
	if there, err := Living(path); !there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

// A process that listens goes on, and so does what is no socket.
func TestOthersAreLeftAlone(t *testing.T) {
	path := place(t)
	l := mustListen(t, path, 0o600)
	if _, err := Listen(path, 0o600); err == nil || !strings.HasPrefix(err.Error(), "another process listens there; ") {
		t.Error(err)
	}
	if there, err := Living(path); !there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	_ = l.Close()
	for what, make := range map[string]func() error{
		"a file":      func() error { return os.WriteFile(path, []byte("precious"), 0o600) },
		"a directory": func() error { return os.Mkdir(path, 0o700) },
		"a link":      func() error { return os.Symlink("/dev/null", path) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		before := mode(t, path)
		if _, err := Listen(path, 0o600); err == nil ||
			!strings.HasPrefix(err.Error(), "what is there is not a socket; ") || mode(t, path) != before {
			t.Errorf("%s: %v", what, err)
		}
		_ = os.Remove(path)
	}
	if _, err := Listen(filepath.Join(path, "s"), 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

// Of many that start at once one listens, although each of them finds the socket of a dead process.
func TestOneListens(t *testing.T) {
	path := place(t)
	dead(t, path)
	var all sync.WaitGroup
	listeners := make(chan net.Listener, 20)
	for range cap(listeners) {
		all.Go(func() {
			if l, err := Listen(path, 0o600); err == nil {
				listeners <- l
			} else if !strings.HasPrefix(err.Error(), "another process listens there") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(listeners); n != 1 {
		t.Fatalf("%d listen, want 1", n)
	}
	defer func() { _ = (<-listeners).Close() }()
	if there, err := Living(path); !there || err != nil {
		t.Errorf("the one that listens can't be reached: %v, %v", there, err)
	}
}

// Who comes while another is about to listen waits for it, and does not take its new socket for that of a dead process.
func TestOthersWait(t *testing.T) {
	defer func(mode func(string, fs.FileMode) error, within time.Duration) {
		chmod, lockWithin = mode, within
	}(chmod, lockWithin)
	path, came := place(t), false
	lockWithin = 20 * time.Millisecond
	chmod = func(name string, mode fs.FileMode) error {
		if !came { // the second does not come so far
			came = true
			if _, err := Listen(path, 0o600); err == nil ||
				!strings.HasPrefix(err.Error(), "another process has locked "+path+".lock") {
				t.Errorf("it did not wait: %v", err)
			}
		}
		return os.Chmod(name, mode)
	}
	mustListen(t, path, 0o600)
	if there, err := Living(path); !came || !there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
}

// Whoever may read the directory can lock it, and keeps nobody from listening there. The lock that counts is a file
// that is gone afterwards; one of another user is refused, and not waited for.
func TestNobodyElseHoldsTheLock(t *testing.T) {
	path := place(t)
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	l := mustListen(t, path, 0o600)
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v; want the socket alone", left, err)
	}
	_ = l.Close()
	lock, err := os.Create(path + ".lock") // of a process that was killed
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	_ = mustListen(t, path, 0o600).Close()
	if os.Geteuid() != 0 {
		return // only root can give files away
	}
	if err := errors.Join(os.WriteFile(path+".lock", nil, 0o666), os.Chown(path+".lock", 4711, 4711)); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, 0o600); err == nil || !strings.Contains(err.Error(), ".lock belongs to user 4711") {
		t.Error(err)
	}
}

// A listener removes its own socket, and no other that has come there meanwhile.
func TestCloseRemovesOnlyItsOwn(t *testing.T) {
	path := place(t)
	first := mustListen(t, path, 0o600)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second := mustListen(t, path, 0o600)
	_ = first.Close()
	if there, err := Living(path); !there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	_ = second.Close()
	_ = second.Close() // does no harm
}

func TestTransport(t *testing.T) {
	l := mustListen(t, place(t), 0o600)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host)
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	defer s.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	transport := Transport(&http.Transport{Proxy: http.ProxyFromEnvironment}, l.Addr().String())
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); string(body) != "localhost" || err != nil {
		t.Errorf("%s, %v", body, err)
	}
}

// A connection tells who is at the other end.
func TestPeer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	l := mustListen(t, place(t), 0o600)
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if got, want := WithPeer(accepted).RemoteAddr().String(),
		"user "+strconv.Itoa(os.Getuid())+", process "+strconv.Itoa(os.Getpid()); got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
