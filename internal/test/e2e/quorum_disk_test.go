//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/quorum"
)

// A window that is soon used up: what no longer reaches the quorum refuses after it.
const (
	soon       = 9 * time.Second
	soonWindow = "--window=9s"
)

// slowDisk is package syscall with a disk that takes 200 ms longer to sync while a file is there, beside the one that
// steps the clock. Only Linux has it.
func slowDisk() map[string]string {
	if runtime.GOOS != "linux" {
		return nil
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		panic(err)
	}
	file := filepath.Join(strings.TrimSpace(string(root)), "src", "syscall", "zsyscall_linux_"+runtime.GOARCH+".go")
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	edited := string(text)
	for _, old := range []string{"func Fsync(fd int) (err error) {", "func Fdatasync(fd int) (err error) {"} {
		if !strings.Contains(edited, old) {
			panic("this Go's package syscall has another shape: no " + old)
		}
		edited = strings.Replace(edited, old, old+"\n\tsyncSlowly()", 1)
	}
	return map[string]string{file: edited + syncing}
}

const syncing = `
func syncSlowly() {
	name, _ := Getenv("FAKE_WALL_FILE")
	if name == "" || Access(name+".slow-disk", 0) != nil {
		return
	}
	for left := NsecToTimespec(200e6); Nanosleep(&left, &left) == EINTR; {
	}
}
`

// slowDisk has every sync of a steppable node take 200 ms longer.
func (n *node) slowDisk() {
	n.t.Helper()
	if err := os.WriteFile(n.clockAt+".slow-disk", nil, 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// With disks that take 200 ms to sync, each machine is ready, callers notice nothing, horizons are written on, and the
// leader stays: also while a machine is down, and when it comes back.
func TestQuorumOnSlowDisks(t *testing.T) {
	testenv.Slow(t)
	if runtime.GOOS != "linux" {
		t.Skip("disks are slow on Linux alone")
	}
	t.Parallel()
	q := newKeepers(t, 3, soonWindow)
	for _, k := range q.list {
		k.launch = func(args ...string) (process, *lines) {
			n := start(t, firnSteppable, k.name, "", args...)
			n.slowDisk()
			return n, n.log
		}
	}
	if _, err := firnSteppable(); err != nil { // building it takes minutes
		t.Fatal(err)
	}
	begun := time.Now()
	q.start()
	q.lasted("three machines with slow disks are ready", begun, 10*time.Second)
	leads := q.leader()
	c := q.callers()
	for range 3 {
		begun := time.Now()
		q.extendAgain(q.list...)
		q.lasted("each node with a slow disk has written a horizon", begun, soon/3)
	}
	other := q.others(leads)[0]
	other.stop()
	q.extendAgain(q.others(other)...)
	begun = time.Now()
	other.start()
	other.ready()
	q.lasted("a machine with a slow disk is back", begun, 10*time.Second)
	q.extendAgain(q.list...)
	q.whole()
	if now := q.leader(); now != leads {
		t.Errorf("%s led, and now %s does", leads.name, now.name)
	}
	s, err := leads.status()
	fast := slices.ContainsFunc(s.Machines, func(m quorum.Machine) bool { return m.Sync < 200*time.Millisecond })
	if err != nil || fast {
		t.Errorf("not all disks are slow: %+v, %v", s, err)
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}
