package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Another user of the machine can't connect to a quorum of one, neither while it starts nor while it runs, even if
// the data directory can be entered: it listens on no TCP port at all, and on one unix socket in a directory that only
// its owner can enter. It does not run beside other tests of this package, whose servers listen.
func TestNobodyElseCanConnect(t *testing.T) {
	for name, dir := range map[string]string{
		"in the data directory": "data",
		"in a temporary one":    strings.Repeat("long/", 30),
	} {
		t.Run(name, func(t *testing.T) {
			top := openDir(t)
			config := Config{Dir: filepath.Join(top, dir)}
			if err := os.MkdirAll(config.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			control := filepath.Join(top, "control")
			listener, err := net.Listen("unix", control)
			if err == nil {
				err = os.Chmod(control, 0o777)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()

			seen := &listeners{tcp: make(map[string]bool), unix: make(map[string]bool)}
			looked, connected := make(chan struct{}), make(chan struct{})
			var looking, connecting sync.WaitGroup
			looking.Go(func() { repeat(t, looked, seen.look) })
			if os.Getuid() == 0 {
				connecting.Go(func() {
					becomeNobody(t)
					repeat(t, connected, seen.connect)
				})
			} else {
				t.Log("not run as root: nobody tries to connect as another user")
			}
			e := openOne(t, config)
			works(t, e)
			close(looked)
			looking.Wait()
			close(connected) // after a last try of all that was seen
			connecting.Wait()

			socket := strings.TrimPrefix(e.Endpoint(), "unix://")
			if len(seen.tcp) > 0 || len(seen.unix) != 2 || !seen.unix[socket] || !seen.unix[control] {
				t.Errorf("the process listens on the TCP addresses %v and the unix sockets %v; want no address, "+
					"%s and %s",
					seen.tcp, seen.unix, socket, control)
			}
			if os.Getuid() == 0 &&
				(len(seen.connected) != 1 || seen.connected[control] == 0 || seen.denied[socket] == 0) {
				t.Errorf("another user connected to %v, and was refused by %v; want only %s and only %s",
					seen.connected, seen.denied, control, socket)
			}
		})
	}
}

// openDir makes a directory that everybody can enter, as t.TempDir does not.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "firn-open-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// repeat calls look until stop is closed, and then once more.
func repeat(t *testing.T, stop <-chan struct{}, look func() error) {
	for last := false; ; {
		if err := look(); err != nil {
			t.Error(err)
			return
		}
		if last {
			return
		}
		select {
		case <-stop:
			last = true
		case <-time.After(time.Millisecond):
		}
	}
}

// becomeNobody makes the calling goroutine, and no other, act as the user nobody. The thread that it ran on ends with
// the goroutine.
func becomeNobody(t *testing.T) {
	const nobody = 65534
	runtime.LockOSThread() // and never unlocked
	for _, call := range []uintptr{syscall.SYS_SETRESGID, syscall.SYS_SETRESUID} {
		if _, _, errno := syscall.RawSyscall(call, nobody, nobody, nobody); errno != 0 {
			t.Errorf("becoming nobody: %v", errno)
		}
	}
}

// listeners are what this process was seen to listen on, and how another user fared there.
type listeners struct {
	mu                sync.Mutex // guards unix
	tcp, unix         map[string]bool
	connected, denied map[string]int
}

// look adds what the process listens on now.
func (l *listeners) look() error {
	inodes := make(map[string]bool)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil &&
			strings.HasPrefix(target, "socket:[") {
			inodes[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	for _, file := range []string{"tcp", "tcp6", "unix"} {
		table, err := os.ReadFile("/proc/self/net/" + file)
		if errors.Is(err, fs.ErrNotExist) { // without IPv6
			continue
		}
		if err != nil {
			return err
		}
		for line := range bytes.Lines(table) {
			fields := strings.Fields(string(line))
			switch {
			case file == "unix" && len(fields) > 7 && fields[3] == "00010000" && inodes[fields[6]]:
				l.mu.Lock()
				l.unix[fields[7]] = true
				l.mu.Unlock()
			case file != "unix" && len(fields) > 9 && fields[3] == "0A" && inodes[fields[9]]:
				l.tcp[fields[1]] = true
			}
		}
	}
	return nil
}

// connect tries every socket that was seen.
func (l *listeners) connect() error {
	if l.connected == nil {
		l.connected, l.denied = make(map[string]int), make(map[string]int)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for socket := range l.unix {
		conn, err := net.Dial("unix", socket)
		switch {
		case err == nil:
			l.connected[socket]++
			_ = conn.Close()
		case errors.Is(err, fs.ErrPermission):
			l.denied[socket]++
		case !errors.Is(err, fs.ErrNotExist): // it was taken away again
			return fmt.Errorf("connecting to %s: %w", socket, err)
		}
	}
	return nil
}
