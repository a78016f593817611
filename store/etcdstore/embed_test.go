package etcdstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
const childDir = "FIRN_TEST_EMBED_DIR"

// A server whose process was killed has all that it confirmed, and its directory
// can be used at once.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		e := embed(t, etcdstore.EmbedConfig{Dir: dir})
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

	_, err := etcdstore.Embed(etcdstore.EmbedConfig{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "in use by another process") || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second process: %v, want an error that says so", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	confirmed := bytes.Count(out.all, []byte("\ncommitted "))

	e := embed(t, etcdstore.EmbedConfig{Dir: dir})
	kvs, err := e.List(t.Context(), "key/")
	if err != nil || len(kvs) < confirmed {
		t.Errorf("%d keys are left of %d, %v", len(kvs), confirmed, err)
	}
	works(t, open(t, etcdstore.Config{Endpoints: []string{e.Endpoint()}, Prefix: "/elsewhere"}))
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
	config := etcdstore.EmbedConfig{
		Dir: filepath.Join(t.TempDir(), "deep", "data"), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	first := embed(t, config)
	if _, err := etcdstore.Embed(config); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Embed of a directory in use: %v", err)
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
	second := embed(t, config)
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
	config := etcdstore.EmbedConfig{Dir: filepath.Join(t.TempDir(), "data")}
	first := embed(t, config)
	const sessions = 40
	for i := range sessions {
		session, err := first.OpenSession(t.Context(), time.Hour)
		if err != nil {
			t.Fatalf("OpenSession: %v", err)
		}
		mine := store.PutEphemeral(fmt.Sprintf("mine/%d", i), nil, session)
		if _, err := first.Commit(t.Context(), putting("key", mine)); err != nil {
			t.Fatalf("Commit: %v", err)
		}
	}
	etcdstore.Crash(first)
	second := embed(t, config)
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
	e := embed(t, etcdstore.EmbedConfig{Dir: t.TempDir()})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := etcdstore.EndSessions(ended, e)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "sessions of the process before") {
		t.Errorf("ending the sessions: %v, want an error that says so", err)
	}
}

// The path of a socket is short and plain; that of a data directory need not be.
func TestAwkwardDirectories(t *testing.T) {
	t.Parallel()
	for _, name := range []string{strings.Repeat("long/", 30), "with space", "per%20cent", "häuser"} {
		e := embed(t, etcdstore.EmbedConfig{Dir: filepath.Join(t.TempDir(), name)})
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

func TestEmbedErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		config etcdstore.EmbedConfig
		want   string
	}{
		"no directory":    {etcdstore.EmbedConfig{}, "no data directory"},
		"a file":          {etcdstore.EmbedConfig{Dir: file}, file},
		"below a file":    {etcdstore.EmbedConfig{Dir: filepath.Join(file, "data")}, file},
		"a wrong prefix":  {etcdstore.EmbedConfig{Dir: t.TempDir(), Prefix: "firn"}, `"firn"`},
		"a negative call": {etcdstore.EmbedConfig{Dir: t.TempDir(), CallDeadline: -1}, "call deadline"},
	} {
		if _, err := etcdstore.Embed(tt.config); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, tt.want)
		}
	}
}

// A session of another store is refused, not put under no lease at all.
func TestForeignSession(t *testing.T) {
	t.Parallel()
	e := embed(t, etcdstore.EmbedConfig{Dir: t.TempDir()})
	txn := store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, foreign{})}}
	if _, err := e.Commit(t.Context(), txn); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("Commit = %v, want it refused", err)
	}
}

type foreign struct{ store.Session }

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
	config := etcdstore.EmbedConfig{Dir: filepath.Join(t.TempDir(), "data")}
	for range 10 {
		if err := embed(t, config).Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
}
