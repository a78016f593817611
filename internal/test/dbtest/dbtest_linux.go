package dbtest

import (
	"bytes"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

// Postgres starts PostgreSQL, and returns the folder of its socket, as PGHOST takes it. The user and the database are
// called postgres, and no password is wanted. The test is skipped where PostgreSQL is not installed.
func Postgres(t testing.TB) string {
	t.Helper()
	bin := postgresPrograms(t)
	client := testenv.Program(t, "psql", "postgresql-client")
	s := newServer(t)
	s.run(t, filepath.Join(bin, "initdb"), "-D", s.path("data"), "-U", "postgres", "-A", "trust", "-E", "UTF8",
		"--locale=C", "--no-sync")
	s.serve(t, syscall.SIGQUIT, // at once, and yet it frees its shared memory
		exec.Command(filepath.Join(bin, "postgres"), "-D", s.path("data"), "-k", s.dir, "-c", "listen_addresses=",
			"-c", "fsync=off"),
		exec.Command(client, "-X", "-h", s.dir, "-U", "postgres", "-c", "SELECT"))
	return s.dir
}

// MariaDB starts MariaDB, and returns the path of its socket. The user is called root and the database test, and no
// password is wanted. The test is skipped where MariaDB is not installed.
func MariaDB(t testing.TB) string {
	t.Helper()
	install := testenv.Program(t, "mariadb-install-db", "mariadb-server")
	daemon := testenv.Program(t, "mariadbd", "mariadb-server")
	client := testenv.Program(t, "mariadb", "mariadb-client")
	s := newServer(t)
	s.run(t, install, "--no-defaults", "--datadir="+s.path("data"), "--auth-root-authentication-method=normal",
		"--skip-name-resolve")
	socket := s.path("mariadb.sock")
	s.serve(t, syscall.SIGKILL,
		exec.Command(daemon, "--no-defaults", "--datadir="+s.path("data"), "--socket="+socket,
			"--pid-file="+s.path("pid"),
			"--skip-networking", "--innodb-flush-log-at-trx-commit=0", "--tmpdir="+s.dir),
		exec.Command(client, "--no-defaults", "--socket="+socket, "-u", "root", "-e",
			"CREATE DATABASE IF NOT EXISTS test"))
	return socket
}

// server is one with its folder.
type server struct {
	dir      string
	nobody   *syscall.Credential // nil: whoever runs the test, who is not root
	finished chan struct{}       // closed when the program that was started last has ended
	output   bytes.Buffer        // to be read then
}

func newServer(t testing.TB) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "firn-db-") // shorter than t.TempDir: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{dir: dir}
	if os.Geteuid() == 0 { // the servers refuse to run as root
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(nobody.Uid)
		gid, _ := strconv.Atoi(nobody.Gid)
		s.nobody = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *server) path(name string) string { return filepath.Join(s.dir, name) }

// run waits for a program that prepares the server.
func (s *server) run(t testing.TB, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir, c.SysProcAttr = s.dir, &syscall.SysProcAttr{Credential: s.nobody}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c, err, out)
	}
}

// serve starts the server, and waits until a client succeeds. The signal ends the server, with the test. It may be
// called again when the server has ended.
func (s *server) serve(t testing.TB, end syscall.Signal, daemon, client *exec.Cmd) {
	t.Helper()
	daemon.Dir, daemon.Stdout, daemon.Stderr = s.dir, &s.output, &s.output
	daemon.SysProcAttr = &syscall.SysProcAttr{Credential: s.nobody, Pdeathsig: end}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	finished := make(chan struct{})
	s.finished = finished
	go func() {
		_ = daemon.Wait()
		close(finished)
	}()
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGCONT) // if it is frozen
		_ = daemon.Process.Signal(end)
		<-finished
	})
	deadline := time.After(time.Minute)
	for {
		again := exec.Command(client.Path, client.Args[1:]...)
		out, err := again.CombinedOutput()
		if err == nil {
			return
		}
		select {
		case <-finished:
			t.Fatalf("%v has ended:\n%s", daemon, s.output.Bytes())
		case <-deadline:
			t.Fatalf("%v does not serve: %s", daemon, out)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// eventually waits until something is true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("within a minute it is not so that %s", what)
		}
	}
}
