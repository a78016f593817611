package pgstore_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/pgstore"
)

// begin begins a transaction in a session of its own that sees the database as it is now, until the test ends.
func begin(t *testing.T, server *dbtest.PostgresServer) {
	t.Helper()
	other, err := pgconn.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close(t.Context()) })
	if _, err := other.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1").
		ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// A transaction of somebody else that stays open keeps the server from removing former versions of rows. Writes and
// polls look at no more pages for that, but those of a key that was written often meanwhile.
func TestALongTransactionElsewhere(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t, "autovacuum=off")
	pages := func() (n int) {
		n, err := strconv.Atoi(server.SQL(t,
			"SELECT coalesce(sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read), 0) FROM "+
				"pg_statio_user_tables WHERE relname <> 'keys'"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const live = 100
	n := 0
	cost := func(times int) int { // of one transaction, with the polls meanwhile
		before := pages()
		s := open(t, pgstore.Config{URL: server.URL("postgres")})
		session, err := s.OpenSession(t.Context(), time.Second) // it is renewed every sixth of that
		if err != nil {
			t.Fatal(err)
		}
		for range times {
			n++
			if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{
				store.Put(fmt.Sprint("fence/", n%live), nil),
				store.PutEphemeral(fmt.Sprint("pulse/", n%live), nil, session),
			}}); err != nil && !errors.Is(err, store.ErrSessionEnded) { // by a busy machine
				t.Fatal(err)
			}
		}
		_ = s.Close()
		eventually(t, "the end of the connection", func() error { // it counts its pages then
			if server.SQL(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'firn'") != "0" {
				return errors.New("it is there")
			}
			return nil
		})
		return (pages() - before) / times
	}
	cost(live)
	before := cost(live)
	begin(t, server)
	cost(1000)
	after := cost(live)
	t.Logf("a transaction looks at %d pages, and at %d after a thousand others", before, after)
	if after > before+before/2 {
		t.Error("want about as many")
	}
}

// A client knows how long a transaction has been open, and whose it is.
func TestTheOldestTransactionIsKnown(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	if report, err := open(t, pgstore.Config{URL: server.URL("postgres")}).Examine(t.Context()); err != nil ||
		report.Oldest != 0 {
		t.Errorf("Examine = %+v, %v; want that no transaction is open", report, err)
	}
	begin(t, server)
	s := open(t, pgstore.Config{URL: server.URL("postgres")})
	eventually(t, "the age", func() error {
		if is, known := s.Traits().OldestTransaction(); !known || is == 0 {
			return fmt.Errorf("the oldest is %v old, known %v", is, known)
		}
		return nil
	})
	report, err := s.Examine(t.Context())
	if err != nil || report.Oldest == 0 ||
		!regexp.MustCompile(`^process \d+, ".*", idle in transaction$`).MatchString(report.Who) {
		t.Errorf("Examine = %+v, %v; want a transaction and whose it is", report, err)
	}
}
