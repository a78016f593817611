package doctest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
)

// patience is how long a block may take, and what serves until it is ready.
const patience = 4 * time.Minute

// hosts are the addresses, and the names, that the pages speak of. One machine has them all.
const hosts = `127.0.0.1 localhost
10.0.0.1 etcd-1 ids-1 node-1 firn-1
10.0.0.2 etcd-2 ids-2 node-2 firn-2
10.0.0.3 etcd-3 ids-3 node-3 firn-3
10.0.0.10 etcd ids
`

// keeper is the first process on that machine. It makes the machine, and then runs the scripts whose names it reads:
// those that serve beside the rest. When it ends, everything ends.
const keeper = `
set -eu
page=$1 root=$2
mount -t tmpfs none /mnt
mkdir /mnt/page && mount --bind "$page" /mnt/page
over() {
  mkdir -p /mnt/over$1/new /mnt/over$1/work
  mount -t overlay overlay -o lowerdir="$1",upperdir=/mnt/over$1/new,workdir=/mnt/over$1/work "$1"
}
for folder in /etc /var /run /opt /tmp "$root"; do over "$folder"; done
cd "$root" && rm -rf firn-data
cp /mnt/page/hosts /etc/hosts
ip link set lo up
awk '{ print $1 }' /etc/hosts | grep -v ^127 | while read -r address; do ip address add "$address/32" dev lo; done
echo ready
while read -r what name; do
  case $what in
  run) install -m 600 /dev/null /mnt/page/$name.out # secrets are printed to no file for others
    bash /mnt/page/$name.sh >/mnt/page/$name.out 2>/mnt/page/$name.err </dev/null && echo 0 || echo $? ;;
  serve)
    { bash /mnt/page/$name.sh >/mnt/page/$name.out 2>/mnt/page/$name.err </dev/null ||
      echo $? >/mnt/page/$name.ended; } &
    echo 0
    ;;
  end)
    kill -TERM -1 2>/dev/null || true
    for i in {1..300}; do
      set -- /proc/[0-9]*
      [ $# -le 1 ] && break # only this shell is left
      sleep 0.1
    done
    kill -KILL -1 2>/dev/null || true
    echo 0
    ;;
  esac
done
`

// house is a machine for one page.
type house struct {
	dir     string // /mnt/page on that machine
	orders  io.WriteCloser
	answers chan string
	log     *bytes.Buffer
	count   int
}

// build makes a house, or skips the test where it may not.
func build(t *testing.T) *house {
	t.Helper()
	for name, debian := range map[string]string{
		"unshare": "util-linux", "ip": "iproute2", "bash": "bash",
		"awk": "gawk", "curl": "curl",
	} {
		testenv.Program(t, name, debian)
	}
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	h := &house{dir: t.TempDir(), answers: make(chan string), log: new(bytes.Buffer)}
	for _, folder := range []string{"bin", "home"} {
		if err := os.Mkdir(filepath.Join(h.dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.write(t, "hosts", hosts)
	h.write(t, "keeper", keeper)
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--net", "--mount", "--pid", "--fork", "--mount-proc", "--uts", "--kill-child"}
	if os.Getuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	c := exec.Command("unshare", append(args, "bash", filepath.Join(h.dir, "keeper"), h.dir, top)...)
	c.Env = append(os.Environ(), "HOME=/mnt/page/home", "GOBIN=/mnt/page/bin", "GOPROXY=off", "GOFLAGS=",
		"PATH=/mnt/page/bin:"+bin+":"+os.Getenv("PATH"))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		c.Env = append(c.Env, name+"="+strings.TrimSpace(string(value)))
	}
	c.Stderr = h.log
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if h.orders, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Skipf("no network namespace can be made here: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(h.answers)
		for s := bufio.NewScanner(out); s.Scan(); {
			h.answers <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill() // with --kill-child the keeper ends, and all in its house with it
		go func() {
			for range h.answers { //nolint:revive // the answers are not read any more
			}
		}()
		<-ended
		_ = c.Wait()
	})
	if answer, ok := <-h.answers; !ok || answer != "ready" {
		<-ended
		_ = c.Wait()
		t.Skipf("no namespaces of its own can be made here, root's or a user's: %s", h.log)
	}
	return h
}

// built is the folder of programs; empty, if none was needed.
var built string

// programs is a folder with those that the pages use and that the repository can build: firn, etcd and grpcurl.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "doctest")
	if err != nil {
		return "", err
	}
	built = dir
	build := func(name, module, what string) error {
		out, err := exec.Command("go", "-C", filepath.Join(root, module), "build", "-o", filepath.Join(dir, name),
			what).CombinedOutput()
		if err != nil {
			return fmt.Errorf("building %s: %w: %s", name, err, out)
		}
		return nil
	}
	return dir, errors.Join(
		os.WriteFile(filepath.Join(dir, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755), // who is root already
		build("firn", ".", "./cmd/firn"),
		build("etcd", ".", "go.etcd.io/etcd/server/v3"),
		build("grpcurl", "tools", "github.com/fullstorydev/grpcurl/cmd/grpcurl"))
})

func TestMain(m *testing.M) {
	responsive.Watch()
	status := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(status)
}

func (h *house) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// order has the keeper do something, and returns its answer.
func (h *house) order(what string) (string, error) {
	if _, err := io.WriteString(h.orders, what+"\n"); err != nil {
		return "", fmt.Errorf("%w: %s", err, h.log)
	}
	select {
	case answer, ok := <-h.answers:
		if !ok {
			return "", fmt.Errorf("the house has come down: %s", h.log)
		}
		return answer, nil
	case <-time.After(patience):
		return "", fmt.Errorf("no end after %v", patience)
	}
}

// ran is what came of a script.
type ran struct {
	status, out, errs string
}

// run runs a script to its end, or with serve only starts it.
func (h *house) run(t *testing.T, what, script string) (name string, r ran, err error) {
	t.Helper()
	h.count++
	name = fmt.Sprintf("script-%d", h.count)
	h.write(t, name+".sh", script)
	r.status, err = h.order(what + " " + name)
	r.out, r.errs = h.read(name+".out"), h.read(name+".err")
	return name, r, err
}

// read is what is in a file by now; nothing, if it is not there.
func (h *house) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(h.dir, name)) //nolint:errcheck // as said
	return string(data)
}
