package pgstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/pgstore"
)

const patience = 30 * time.Second

// eventually repeats a call until it succeeds.
func eventually(t *testing.T, what string, call func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := call()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func putting(key, value string) store.Txn {
	return store.Txn{Then: []store.Op{store.Put(key, []byte(value))}}
}

// wantRefused checks that every kind of call fails in one way, and says why.
func wantRefused(t *testing.T, s *pgstore.Store, want error, why string) {
	t.Helper()
	_, get := s.Get(t.Context(), "key")
	_, commit := s.Commit(t.Context(), putting("key", "1"))
	_, append := s.Append(t.Context(), "a", nil)
	_, session := s.OpenSession(t.Context(), time.Second)
	for call, err := range map[string]error{"Get": get, "Commit": commit, "Append": append, "OpenSession": session} {
		if !errors.Is(err, want) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %v and %q", call, err, want, why)
		}
	}
}

// A server that may forget what it has committed is refused.
func TestServersThatForgetAreRefused(t *testing.T) {
	t.Parallel()
	for setting, why := range map[string]string{
		"fsync=off":            "fsync is off",
		"full_page_writes=off": "full_page_writes is off",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			server := dbtest.StartPostgres(t, setting)
			wantRefused(t, open(t, pgstore.Config{URL: server.URL("postgres")}), store.ErrRefused, why)
			if got := server.SQL(t, "SELECT count(*) FROM pg_namespace WHERE nspname = 'firn'"); got != "0" {
				t.Error("it has made the schema there")
			}
		})
	}
}

// So is one that does not say on which timeline it is, as services that only look like PostgreSQL.
func TestAServerThatDoesNotSayWhereItIsIsRefused(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	server.SQL(t, "CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE postgres TO app",
		"REVOKE EXECUTE ON FUNCTION pg_current_wal_lsn() FROM PUBLIC")
	wantRefused(t, open(t, pgstore.Config{URL: server.URL("app")}), store.ErrRefused, "does not say which one it is")
}

// The same when it is told to forget while a client uses it; and it is used again when that is undone.
func TestAServerThatBeginsToForgetIsRefused(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	s := open(t, pgstore.Config{URL: server.URL("postgres")})
	if _, err := s.Commit(t.Context(), putting("key", "1")); err != nil {
		t.Fatal(err)
	}
	server.Reload(t, "ALTER SYSTEM SET full_page_writes = off")
	eventually(t, "the refusal", func() error {
		if _, err := s.Get(t.Context(), "key"); !errors.Is(err, store.ErrRefused) {
			return errors.New("Get is not refused")
		}
		return nil
	})
	wantRefused(t, s, store.ErrRefused, "full_page_writes is off")
	server.Reload(t, "ALTER SYSTEM RESET full_page_writes")
	eventually(t, "a Get when it forgets nothing", func() error {
		_, err := s.Get(t.Context(), "key")
		return err
	})
}

// A standby is not used, and is once it was promoted.
func TestAStandbyIsNotUsed(t *testing.T) {
	t.Parallel()
	primary := dbtest.StartPostgres(t)
	replica := primary.Replica(t)
	s := open(t, pgstore.Config{URL: replica.URL("postgres"), CallDeadline: 3 * time.Second})
	_, err := s.Get(t.Context(), "key")
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "is a standby") {
		t.Errorf("Get: %v; want ErrUnavailable and that it is a standby", err)
	}
	replica.Promote(t)
	eventually(t, "Get after the promotion", func() error {
		_, err := s.Get(t.Context(), "key")
		return err
	})
}

// Poolers are refused, whatever their mode.
func TestPoolersAreRefused(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	for _, mode := range []string{"transaction", "session"} {
		address := server.Pgbouncer(t, mode)
		s := open(t, pgstore.Config{URL: strings.Replace(server.URL("postgres"), server.Address(), address, 1)})
		wantRefused(t, s, store.ErrRefused, "pooler")
	}
}

// Tables of a later version are refused, and left alone.
func TestLaterTablesAreRefused(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	server.SQL(t, pgstore.SQL(""), "UPDATE firn.head SET format = 3, origin = 'elsewhere'")
	wantRefused(t, open(t, pgstore.Config{URL: server.URL("postgres")}), store.ErrRefused, "format 3")
	if got := server.SQL(t, "SELECT origin FROM firn.head"); got != "elsewhere" {
		t.Errorf("it has written the origin %q", got)
	}
}

// What is committed is on the disk, whatever the role has as its own setting.
func TestItSetsItsOwnDurability(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t, "synchronous_commit=off")
	server.SQL(t, "CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE postgres TO app",
		"ALTER ROLE app SET synchronous_commit = off",
		"ALTER ROLE app SET default_transaction_isolation = 'serializable'", "ALTER ROLE app SET search_path = nowhere",
		"ALTER ROLE app SET bytea_output = escape")
	s := open(t, pgstore.Config{URL: server.URL("app")})
	if _, err := s.Commit(t.Context(), putting("key", "\x00\xff")); err != nil {
		t.Fatal(err)
	}
	if kv, err := s.Get(t.Context(), "key"); err != nil || string(kv.Value) != "\x00\xff" {
		t.Errorf("Get: %q, %v", kv.Value, err)
	}
	for setting, want := range map[string]string{
		"synchronous_commit":            "on",
		"default_transaction_isolation": "read committed", "transaction_isolation": "repeatable read",
		"tcp_keepalives_idle": "10", "tcp_user_timeout": "25000",
	} {
		if got, err := pgstore.Setting(s, setting); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", setting, got, err, want)
		}
	}
}
