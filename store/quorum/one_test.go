package quorum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// childDir asks TestKilled to be the process that is killed.
const childDir = "FIRN_TEST_ONE_DIR"

// A server whose process was killed has all that it confirmed, and its directory
// can be used at once.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		e := openOne(t, Config{Dir: dir})
		for i := 0; ; i++ {
			if _, err := e.Commit(t.Context(), putting(fmt.Sprintf("key/%06d", i))); err != nil {
				t.Fatal(err)
			}
			fmt.Printf("\ncommitted %d\n", i)
		}
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	var out output
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), childDir+"="+dir)
	out.until, out.seen = []byte("committed 20\n"), make(chan struct{})
	child.Stdout = &out
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-out.seen:
	case <-time.After(patience):
		t.Errorf("the child is not ready: %s", out.all)
	}

	_, err := tryOne(Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "in use by another process") ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("a second process: %v, want an error that says so", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	confirmed := bytes.Count(out.all, []byte("\ncommitted "))

	e := openOne(t, Config{Dir: dir})
	if e.Traits().Shared {
		t.Error("it says that it is shared; its first member would wait")
	}
	kvs, err := e.List(t.Context(), "key/")
	if err != nil || len(kvs) < confirmed {
		t.Errorf("%d keys are left of %d, %v", len(kvs), confirmed, err)
	}
	works(t, clientOf(t, etcdstore.Config{Endpoints: []string{e.Endpoint()}, Prefix: "/elsewhere"}))
}

// output keeps what is written and tells when a line was seen.
type output struct {
	all, until []byte
	seen       chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	had := bytes.Contains(o.all, o.until)
	o.all = append(o.all, p...)
	if !had && bytes.Contains(o.all, o.until) {
		close(o.seen)
	}
	return len(p), nil
}

// One process at a time; one that closes it leaves it free and clean.
func TestDataDirectory(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	config := Config{
		Dir: filepath.Join(t.TempDir(), "deep", "data"), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	first := openOne(t, config)
	if _, err := tryOne(config); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Open of a directory in use: %v", err)
	}
	for path, want := range map[string]os.FileMode{
		config.Dir: 0o700 | os.ModeDir,
		strings.TrimPrefix(first.Endpoint(), "unix://"):               0o600 | os.ModeSocket,
		filepath.Dir(strings.TrimPrefix(first.Endpoint(), "unix://")): 0o700 | os.ModeDir,
	} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	works(t, first)
	for range 2 {
		if err := first.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	second := openOne(t, config)
	if kv, err := second.Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
		t.Errorf("Get after a restart = %+v, %v", kv, err)
	}
	if err := second.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if log.Len() > 0 {
		t.Errorf("a life without errors was logged:\n%s", &log)
	}
}

// A process that was killed and started again need not wait until its former
// sessions expire.
func TestSessionsEndWithTheirProcess(t *testing.T) {
	t.Parallel()
	config := Config{Dir: filepath.Join(t.TempDir(), "data")}
	first := openOne(t, config)
	other := clientOf(t, etcdstore.Config{Endpoints: []string{first.Endpoint()}})
	const sessions = 40
	for i := range sessions {
		session, err := other.OpenSession(t.Context(), time.Hour)
		if err != nil {
			t.Fatalf("OpenSession: %v", err)
		}
		mine := store.PutEphemeral(fmt.Sprintf("mine/%d", i), nil, session)
		if _, err := other.Commit(t.Context(), putting("key", mine)); err != nil {
			t.Fatalf("Commit: %v", err)
		}
	}
	if err := first.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	second := openOne(t, config)
	if kvs, err := second.List(t.Context(), "mine/"); err != nil || len(kvs) != 0 {
		t.Errorf("%d of %d ephemeral keys are left, %v", len(kvs), sessions, err)
	}
	if kv, err := second.Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
		t.Errorf("Get of what stays = %+v, %v", kv, err)
	}
	works(t, second)
}

// A server whose former sessions can't be ended is not used.
func TestSessionsThatCantBeEnded(t *testing.T) {
	t.Parallel()
	e := openOne(t, Config{Dir: t.TempDir()})
	if _, err := e.OpenSession(t.Context(), time.Hour); err != nil {
		t.Fatalf("OpenSession: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := endLeases(ended, e.quorum.server.Server); err == nil ||
		!strings.Contains(err.Error(), "sessions of the process before") {
		t.Errorf("ending the sessions: %v, want an error that says so", err)
	}
}

// The path of a socket is short and plain; that of a data directory need not be.
func TestAwkwardDirectories(t *testing.T) {
	t.Parallel()
	for _, name := range []string{strings.Repeat("long/", 30), "with space", "per%20cent", "häuser"} {
		e := openOne(t, Config{Dir: filepath.Join(t.TempDir(), name)})
		if _, err := e.Commit(t.Context(), putting("key")); err != nil {
			t.Errorf("Commit in %q: %v", name, err)
		}
		socket := strings.TrimPrefix(e.Endpoint(), "unix://")
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if _, err := os.Stat(filepath.Dir(socket)); !os.IsNotExist(err) {
			t.Errorf("%s is left behind", filepath.Dir(socket))
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		config Config
		want   string
	}{
		"no directory": {Config{}, "no data directory"},
		"a file":       {Config{Dir: file}, file},
		"below a file": {Config{Dir: filepath.Join(file, "data")}, file},
	} {
		if _, err := tryOne(tt.config); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, tt.want)
		}
	}
}

// A process that another part of the program is starting has copies of all open files for a moment, and with them the
// locks. A directory can be used again all the same when Close has returned.
func TestTheDirectoryCanBeUsedAgainWhileProcessesStart(t *testing.T) {
	t.Parallel()
	starting, end := context.WithCancel(t.Context())
	var starters sync.WaitGroup
	defer starters.Wait()
	defer end()
	for range 4 {
		starters.Go(func() {
			for starting.Err() == nil {
				if err := exec.Command("true").Run(); err != nil {
					t.Errorf("true: %v", err)
					return
				}
			}
		})
	}
	config := Config{Dir: filepath.Join(t.TempDir(), "data")}
	for range 10 {
		if err := openOne(t, config).Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
}

// The data of several machines is not used by one, which would wait for a majority for ever, and is as it was.
func TestOneRefusesTheDataOfSeveral(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := `{"state":"started","cluster":"x","known":["a:1","b:1","c:1"]}`
	if err := os.WriteFile(filepath.Join(dir, diskFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if o, err := tryOne(Config{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "belongs to the quorum of a:1, b:1, c:1") {
		t.Errorf("Open = %v, %v", o, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || InUse(dir) { // quorum.json and the lock
		t.Errorf("it leaves %v, %v, and the lock: %t", left, err, InUse(dir))
	}
}

// What is for other machines is refused: who leaves out the machines by mistake must not get a second cluster.
func TestOneWithoutOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{Machines: []string{"a:7420"}},
		{Self: "a:7420"},
		{Listen: ":7420"},
		{KeyFile: "key"},
		{CAFile: "ca"},
		{CertFile: "cert"},
		{CertKeyFile: "cert"},
	} {
		c.Dir = t.TempDir()
		if _, err := One(c); err == nil || !strings.Contains(err.Error(), "a quorum of one") {
			t.Errorf("One(%+v): %v", c, err)
		}
	}
	if _, err := New(Config{Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no machine is named") {
		t.Errorf("New without machines: %v", err)
	}
	o := openOne(t, Config{Dir: t.TempDir(), Version: "v1", Node: func() string { return "east-1" }})
	q := o.quorum
	for what, err := range map[string]error{
		"Replace": q.Replace(t.Context(), "a:1", "b:1"), "Remove": q.Remove(t.Context(), "a:1"),
		"Backup": q.Backup(t.Context(), io.Discard),
	} {
		if err == nil || !strings.Contains(err.Error(), "this is a quorum of one") {
			t.Errorf("%s: %v", what, err)
		}
	}
	s := q.Status(t.Context())
	if len(s.Machines) != 1 || !s.Majority || s.Waiting != "" || s.Self != "" || q.Addr() != "" {
		t.Fatalf("Status = %+v, at %q", s, q.Addr())
	}
	if m := s.Machines[0]; m.Role != Voter || !m.Leader || m.Size == 0 || m.Index == 0 || m.Disk == nil ||
		m.Node != "east-1" || m.Version != "v1" {
		t.Errorf("its machine: %+v", m)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if s := q.Status(t.Context()); s.Majority {
		t.Errorf("Status after Close = %+v", s)
	}
	if _, err := q.Open(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Open after Close: %v", err)
	}
}
