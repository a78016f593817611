package dbtest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// PostgresServer is a PostgreSQL server that keeps what it commits, on a loopback port that stays its own.
type PostgresServer struct {
	*server
	bin, port string
	settings  []string // such as "fsync=off"
	daemon    *exec.Cmd
}

// template is the data of a new server, which others are copies of: making it takes longer than a copy.
var template struct {
	sync.Mutex
	dir string
}

// StartPostgres starts a server with settings such as "max_connections=300", until the test ends. Its superuser and its
// database are called postgres; nobody needs a password. The test is skipped where PostgreSQL is not installed.
func StartPostgres(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	s := newPostgres(t, settings)
	s.run(t, "cp", "-r", postgresTemplate(t, s), s.path("data"))
	s.Start(t)
	return s
}

func newPostgres(t testing.TB, settings []string) *PostgresServer {
	t.Helper()
	return &PostgresServer{server: newServer(t), bin: postgresPrograms(t), port: freePort(t), settings: settings}
}

// postgresPrograms is the folder of the server's programs: Debian keeps them off the path.
func postgresPrograms(t testing.TB) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		testenv.Missing(t, "PostgreSQL", "postgresql")
	}
	return slices.Max(found)
}

// postgresTemplate makes the template at its first call. It is removed at a reboot at the latest: no test is the last.
func postgresTemplate(t testing.TB, s *PostgresServer) string {
	t.Helper()
	template.Lock()
	defer template.Unlock()
	if template.dir == "" {
		dir := s.path("template")
		s.run(t, filepath.Join(s.bin, "initdb"), "-D", dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
			"--no-sync", "--wal-segsize=1")
		kept, err := os.MkdirTemp("", "firn-db-template-")
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-a", dir, kept).CombinedOutput(); err != nil {
			t.Fatalf("copying the template: %v\n%s", err, out)
		}
		if err := os.Chmod(kept, 0o755); err != nil {
			t.Fatal(err)
		}
		template.dir = filepath.Join(kept, "template")
	}
	return template.dir
}

// RemoveTemplates removes what the servers were copies of. A TestMain that starts servers calls it at its end.
func RemoveTemplates() {
	template.Lock()
	defer template.Unlock()
	if template.dir != "" {
		_ = os.RemoveAll(filepath.Dir(template.dir))
		template.dir = ""
	}
}

// freePort is one that no connection of another program takes while the server is down.
func freePort(t testing.TB) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(proxytest.FixedAddress(t))
	return port
}

// Address is where the server listens, as host:port.
func (s *PostgresServer) Address() string { return "127.0.0.1:" + s.port }

// URL is that of its database, for a user.
func (s *PostgresServer) URL(user string) string {
	return fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", user, s.Address())
}

// Set changes settings from the next Start on.
func (s *PostgresServer) Set(settings ...string) { s.settings = append(s.settings, settings...) }

// Start starts the server with its data, and waits until it answers.
func (s *PostgresServer) Start(t testing.TB) {
	t.Helper()
	args := []string{"-D", s.path("data"), "-k", s.dir, "-p", s.port}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1", "shared_buffers=16MB", "max_wal_senders=4",
		"wal_level=replica", "hot_standby=on", "log_min_messages=error",
	}, s.settings...) {
		args = append(args, "-c", setting)
	}
	s.daemon = exec.Command(filepath.Join(s.bin, "postgres"), args...)
	s.serve(t, syscall.SIGQUIT, s.daemon, s.psql(t, "SELECT"))
}

func (s *PostgresServer) psql(t testing.TB, statements ...string) *exec.Cmd {
	t.Helper()
	args := []string{"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", s.dir, "-p", s.port, "-U", "postgres"}
	for _, statement := range statements {
		args = append(args, "-c", statement)
	}
	return exec.Command(testenv.Program(t, "psql", "postgresql-client"), args...)
}

// SQL runs statements as the superuser, and returns what they print.
func (s *PostgresServer) SQL(t testing.TB, statements ...string) string {
	t.Helper()
	out, err := s.psql(t, statements...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", statements, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Reload runs statements such as ALTER SYSTEM and has the server read its configuration, and waits until new
// connections are made by it. The processes that there are read it when they get to it.
func (s *PostgresServer) Reload(t testing.TB, statements ...string) {
	t.Helper()
	loaded := func() string { return s.SQL(t, "SELECT pg_conf_load_time()") }
	before := loaded()
	s.SQL(t, append(statements, "SELECT pg_reload_conf()")...)
	eventually(t, "the server reads its configuration", func() bool { return loaded() != before })
}

// Part ends what a standby copies, once it copies.
func (s *PostgresServer) Part(t testing.TB) {
	t.Helper()
	receives := func() bool { return s.SQL(t, "SELECT status FROM pg_stat_wal_receiver") == "streaming" }
	eventually(t, "the standby copies", receives)
	s.Reload(t, "ALTER SYSTEM SET primary_conninfo = ''")
	eventually(t, "the standby is parted", func() bool {
		return s.SQL(t, "SELECT count(*) FROM pg_stat_wal_receiver") == "0"
	})
}

// Kill ends the server at once, without writing what it has in memory.
func (s *PostgresServer) Kill(t testing.TB) {
	t.Helper()
	if err := s.daemon.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-s.finished
}

// Pause freezes all processes of the server; Resume lets them go on.
func (s *PostgresServer) Pause(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *PostgresServer) Resume(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *PostgresServer) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	pid := s.daemon.Process.Pid
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	for child := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, signal) // it may have ended
		}
	}
}

// Backup copies all data of the server, and returns a function that restores them, with a restart.
func (s *PostgresServer) Backup(t testing.TB) (restore func(t testing.TB)) {
	t.Helper()
	s.Kill(t)
	copied := s.path("backup")
	s.run(t, "cp", "-a", s.path("data"), copied)
	s.Start(t)
	return func(t testing.TB) {
		t.Helper()
		s.Kill(t)
		s.run(t, "rm", "-rf", s.path("data"))
		s.run(t, "cp", "-a", copied, s.path("data"))
		s.Start(t)
	}
}

// Replica starts a standby that copies what this server does.
func (s *PostgresServer) Replica(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	r := newPostgres(t, settings)
	r.run(t, filepath.Join(s.bin, "pg_basebackup"), "-D", r.path("data"), "-h", s.dir, "-p", s.port, "-U", "postgres",
		"-R", "-c", "fast", "-N")
	r.Start(t)
	return r
}

// Promote makes a standby a primary, and waits until it is one.
func (s *PostgresServer) Promote(t testing.TB) {
	t.Helper()
	if s.SQL(t, "SELECT pg_promote(true, 60)") != "t" {
		t.Fatal("the standby was not promoted")
	}
}

// Pgbouncer starts a pooler before the server, in a mode such as "transaction", and returns its address as host:port.
func (s *PostgresServer) Pgbouncer(t testing.TB, mode string) string {
	t.Helper()
	program := testenv.Program(t, "pgbouncer", "pgbouncer")
	p := newServer(t)
	port := freePort(t)
	config := fmt.Sprintf(`[databases]
postgres = host=127.0.0.1 port=%s dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
auth_type = any
pool_mode = %s
unix_socket_dir =
ignore_startup_parameters = extra_float_digits
`, s.port, port, mode)
	config = strings.Replace(config, "dbname=postgres", "dbname=postgres user=postgres", 1)
	if err := os.WriteFile(p.path("pgbouncer.ini"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	p.serve(t, syscall.SIGQUIT,
		exec.Command(program, p.path("pgbouncer.ini")),
		exec.Command(testenv.Program(t, "psql", "postgresql-client"), "-X", "-h", "127.0.0.1", "-p", port, "-U",
			"postgres", "-d", "postgres", "-c", "SELECT"))
	return "127.0.0.1:" + port
}

// Dump returns a dump of a schema.
func (s *PostgresServer) Dump(t testing.TB, schema string) []byte {
	t.Helper()
	out, err := exec.Command(filepath.Join(s.bin, "pg_dump"), "-h", s.dir, "-p", s.port, "-U", "postgres", "-n",
		schema).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return out
}

// Restore applies a dump, in one transaction.
func (s *PostgresServer) Restore(t testing.TB, dump []byte) {
	t.Helper()
	c := s.psql(t)
	c.Args = append(c.Args, "-1")
	c.Stdin = strings.NewReader(string(dump))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("restoring the dump: %v\n%s", err, out)
	}
}

// RequirePasswords has the server ask for a password on its port from now on, but not on its socket.
func (s *PostgresServer) RequirePasswords(t testing.TB) {
	t.Helper()
	s.rules(t, "host all all 127.0.0.1/32 scram-sha-256")
	s.Reload(t)
}

// RequireCertificates has the server accept only TLS on its port from now on, and only from a user whom a certificate
// of an authority names. The arguments are paths of files in PEM.
func (s *PostgresServer) RequireCertificates(t testing.TB, authority, cert, key string) {
	t.Helper()
	for name, from := range map[string]string{
		"data/ca.pem": authority, "data/server.pem": cert,
		"data/server.key": key,
	} {
		pem, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command("sh", "-c", `umask 077 && cat >"$0"`, s.path(name))
		c.Stdin, c.SysProcAttr = bytes.NewReader(pem), &syscall.SysProcAttr{Credential: s.nobody}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	s.rules(t, "hostssl all all 127.0.0.1/32 cert")
	s.Reload(t, "ALTER SYSTEM SET ssl_ca_file = 'ca.pem'", "ALTER SYSTEM SET ssl_cert_file = 'server.pem'",
		"ALTER SYSTEM SET ssl_key_file = 'server.key'", "ALTER SYSTEM SET ssl = on")
}

// rules says who may connect to the server's port, once it has read its configuration again. On its socket everybody
// may.
func (s *PostgresServer) rules(t testing.TB, port string) {
	t.Helper()
	if err := os.WriteFile(s.path("data/pg_hba.conf"), []byte("local all all trust\n"+port+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
