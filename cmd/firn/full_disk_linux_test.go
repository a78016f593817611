package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// onSmallDisk is firn serve whose data directory is on a file system of its own, of so many bytes, that nobody else
// sees. The directory is also returned as this process finds it while that one runs.
func onSmallDisk(t *testing.T, bytes int) (serve *exec.Cmd, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	disk := t.TempDir()
	script := fmt.Sprintf(`mount --make-rprivate / && mount -t tmpfs -o size=%d firn %s || exit 99
		exec firn serve --http-addr 127.0.0.1:0 --data-dir %[2]s/data`, bytes, disk)
	serve = exec.Command("sh", "-c", script)
	serve.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	return serve, disk
}

// endsWithOneLine wants a process to have ended with status 1, and the last line that it wrote, with none like those of
// a panic, to say so. It skips the test where no file system could be mounted.
func endsWithOneLine(t *testing.T, err error, said []byte, want string) {
	t.Helper()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if ok && exit.ExitCode() == 99 {
		t.Skipf("no file system can be mounted: %s", said)
	}
	lines := regexp.MustCompile(`(?m)^[^t].*\n|^t[^i].*\n`).FindAll(said, -1) // all but those of the log, time=...
	if !ok || exit.ExitCode() != 1 || len(lines) != 1 || !regexp.MustCompile(want).Match(lines[0]) {
		t.Errorf("firn serve: %v, want status 1; it said\n%s\nwant one line besides the log: %s", err, said, want)
	}
}

// A full disk at the start.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	serve, dir := onSmallDisk(t, 6<<20)
	said, err := serve.CombinedOutput()
	endsWithOneLine(t, err, said, `^firn: data directory "`+dir+
		`/data": etcd needs 9437184 bytes more for its log and database: no space left on device; free some space on `+
		`its file system, and start again\n$`)
}

// A disk that becomes full while a node runs: etcd must not go on, and the process ends.
func TestTheDiskBecomesFull(t *testing.T) {
	t.Parallel()
	serve, dir := onSmallDisk(t, 32<<20)
	var said bytes.Buffer
	stderr, err := serve.StderrPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = serve.Process.Kill() })
	defer late.Stop()
	var filling sync.WaitGroup
	defer filling.Wait()
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), `msg="claimed a node ID"`) {
			filling.Go(func() { fill(t, filepath.Join("/proc", fmt.Sprint(serve.Process.Pid), "root", dir)) })
		}
	}
	endsWithOneLine(t, serve.Wait(), said.Bytes(), `^firn: data directory "`+dir+
		`/data": .*no space left on device; free some space on its file system, and start again\n$`)
}

// fill takes all room of a disk, and has the etcd there write until it can't.
func fill(t *testing.T, disk string) {
	_ = os.WriteFile(filepath.Join(disk, "large"), make([]byte, 64<<20), 0o600) // as much of it as there is room for
	etcd, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{"unix://" +
		filepath.Join(disk, "data/run/etcd.sock")}})
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = etcd.Close() }()
	for err == nil {
		_, err = etcd.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("large", make([]byte, 500<<10))}})
	}
}
