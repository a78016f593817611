package pgstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/pgstore"
)

// works uses all of the port once.
func works(t *testing.T, s *pgstore.Store) {
	t.Helper()
	ctx := t.Context()
	session, err := s.OpenSession(ctx, time.Minute)
	if err != nil {
		t.Fatalf("OpenSession: %v", err)
	}
	if _, err := s.Commit(ctx, store.Txn{Then: []store.Op{
		store.Put("key", nil),
		store.PutEphemeral("mine", nil, session), store.Delete("none"),
	}}); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	gone, err := s.Gone(ctx, "mine")
	if err != nil {
		t.Fatalf("Gone: %v", err)
	}
	at, err := s.Append(ctx, "a", []byte("1"))
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	if err := errors.Join(s.Checkpoint(ctx, store.Checkpoint{Position: at, Value: []byte("v")}), s.Trim(ctx),
		session.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("Gone does not fire")
	}
}

// A role with the rights that SQL names, and no others, can do everything; and one without any is told what to do.
func TestLeastPrivileges(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	server.SQL(t, "REVOKE ALL ON DATABASE postgres FROM PUBLIC", "REVOKE ALL ON SCHEMA public FROM PUBLIC",
		"CREATE ROLE app LOGIN; GRANT CONNECT ON DATABASE postgres TO app")
	stranger := open(t, pgstore.Config{URL: server.URL("app")})
	_, err := stranger.Get(t.Context(), "key")
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "firn gen sql") ||
		!strings.Contains(err.Error(), "permission denied") {
		t.Errorf("without any right: %v; want ErrRefused and what to do", err)
	}
	sql := pgstore.SQL("")
	for line := range strings.Lines(sql) { // the rights stand at its end, as comments
		if grant, ok := strings.CutPrefix(line, "-- GRANT"); ok {
			sql += "GRANT" + strings.ReplaceAll(grant, "the_role", "app")
		}
	}
	server.Restore(t, []byte(sql))
	server.Restore(t, []byte(sql)) // "It is safe to run them again."
	s := open(t, pgstore.Config{URL: server.URL("app")})
	works(t, s)
	if report, err := s.Examine(t.Context()); err != nil || len(report.Servers) != 1 || report.Servers[0].Err != nil ||
		report.Size == 0 ||
		!strings.HasPrefix(report.Servers[0].Version, "1") || report.Servers[0].MaxConns != 100 ||
		report.Servers[0].Connections == 0 {
		t.Errorf("Examine = %+v, %v", report, err)
	}
	server.SQL(t, "REVOKE DELETE ON firn.log FROM app")
	if _, err := s.Examine(t.Context()); !errors.Is(err, store.ErrRefused) ||
		!strings.Contains(err.Error(), "log (DELETE)") {
		t.Errorf("Examine without a right: %v; want ErrRefused and the right", err)
	}
	if err := s.Trim(t.Context()); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Trim without a right: %v, want ErrRefused", err)
	}
}

// Examine tells what each server is.
func TestExamineSeveralServers(t *testing.T) {
	t.Parallel()
	primary := dbtest.StartPostgres(t)
	replica := primary.Replica(t)
	gone := dbtest.StartPostgres(t)
	gone.Kill(t)
	s := open(t, pgstore.Config{URL: fmt.Sprintf("postgres://postgres@%s,%s,%s/postgres?sslmode=disable",
		gone.Address(), replica.Address(), primary.Address())})
	report, err := s.Examine(t.Context())
	if err != nil || len(report.Servers) != 3 {
		t.Fatalf("Examine = %+v, %v", report, err)
	}
	if r := report.Servers; r[0].Err == nil || !r[1].Standby || r[2].Standby || r[2].Err != nil ||
		r[2].Server != primary.Address() {
		t.Errorf("Examine = %+v", r)
	}
	works(t, s)
}

// Two clusters in one database know nothing of each other.
func TestTwoClustersInOneDatabase(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	one, other := open(t, pgstore.Config{URL: server.URL("postgres")}),
		open(t, pgstore.Config{URL: server.URL("postgres"), Schema: "firn_2"})
	version, err := one.Commit(t.Context(), putting("key", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if kv, err := other.Get(t.Context(), "key"); err != nil || kv.Version != 0 {
		t.Errorf("the other has %+v, %v", kv, err)
	}
	works(t, other)
	if kv, err := one.Get(t.Context(), "key"); err != nil || kv.Version != version {
		t.Errorf("the one has %+v, %v", kv, err)
	}
}

// A password is read from its file for each connection.
func TestThePasswordIsReadAgain(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t, "password_encryption=scram-sha-256")
	server.SQL(t, "CREATE ROLE app LOGIN PASSWORD 'first'; GRANT CREATE ON DATABASE postgres TO app")
	server.RequirePasswords(t)
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong")
	s := open(t, pgstore.Config{URL: server.URL("app"), PasswordFile: file})
	_, err := s.Get(t.Context(), "key")
	if !errors.Is(err, store.ErrRefused) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong password: %v; want ErrRefused without the password", err)
	}
	write("first")
	eventually(t, "Get with the password", func() error {
		_, err := s.Get(t.Context(), "key")
		return err
	})
	server.SQL(t, "ALTER ROLE app PASSWORD 'second'",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")
	write("second")
	eventually(t, "Get with the new password", func() error {
		_, err := s.Get(t.Context(), "key")
		return err
	})
}

// Wrong configurations are told by Open, without the password.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config pgstore.Config
		want   string
	}{
		{pgstore.Config{}, `not a URL like "postgres://`},
		{pgstore.Config{URL: "mysql://u:hush@h/d"}, `not a URL like "postgres://`},
		{pgstore.Config{URL: "postgres://u:hush@h:port/d"}, `not a URL like "postgres://`},
		{pgstore.Config{URL: "postgres://u:hush@h/d", Schema: "Firn"}, `"Firn"; want 1 to 63 characters`},
		{pgstore.Config{URL: "postgres://u:hush@h/d", Schema: `a"b`}, `want 1 to 63 characters`},
		{pgstore.Config{URL: "postgres://u:hush@h/d", CallDeadline: -1}, "the call deadline is -1ns"},
		{pgstore.Config{URL: "postgres://u:hush@h/d", CertFile: "c"}, "both or neither"},
		{pgstore.Config{URL: "postgres://u:hush@h/d", CAFile: "/none.pem"}, "none.pem"},
		{pgstore.Config{URL: "postgres://u:hush@h/d", PasswordFile: "/none"}, "the password file can't be read"},
		{pgstore.Config{URL: "postgres://u:hush@h/d?sslmode=perhaps"}, "sslmode"},
	} {
		s, err := pgstore.Open(c.config)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("Open(%+v) = %v; want %q, and no password", c.config, err, c.want)
		}
	}
}
