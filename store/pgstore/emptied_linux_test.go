package pgstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/pgstore"
)

// damages are what somebody may do to tables in the schema that {s} stands for, with the tables that a floor then
// names.
var damages = map[string]struct{ do, names string }{
	"head is deleted":       {"DELETE FROM {s}.head", "head"},
	"latest is deleted":     {"DELETE FROM {s}.latest", "latest"},
	"keys is deleted":       {"DELETE FROM {s}.keys", "keys"},
	"log is truncated":      {"TRUNCATE {s}.log", "log"},
	"checkpoint is deleted": {"DELETE FROM {s}.checkpoint", "checkpoint"},
	"all is truncated": {
		"TRUNCATE {s}.head, {s}.latest, {s}.sessions, {s}.keys, {s}.log, {s}.checkpoint",
		"head, latest, keys, log, checkpoint",
	},
	"head is dropped":       {"DROP TABLE {s}.head", "head"},
	"latest is dropped":     {"DROP TABLE {s}.latest", "latest"},
	"keys is dropped":       {"DROP TABLE {s}.keys", "keys"},
	"log is dropped":        {"DROP TABLE {s}.log", "log"},
	"checkpoint is dropped": {"DROP TABLE {s}.checkpoint", "checkpoint"},
}

// Whoever empties or drops a table loses data of the store: each client is told once, the floor says what is gone, no
// version comes again, and the store works.
func TestATableIsEmptied(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := strings.ReplaceAll(name, " ", "_")
			config := pgstore.Config{URL: server.URL("postgres"), Schema: schema}
			s, other := open(t, config), open(t, config)
			before := fill(t, s)
			told := []<-chan error{follow(t, s), follow(t, other)}
			session, err := s.OpenSession(t.Context(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			server.SQL(t, strings.ReplaceAll(damage.do, "{s}", schema))
			for _, ended := range told {
				wantLoss(t, ended)
			}
			select {
			case <-session.Done():
			case <-time.After(patience):
				t.Error("the session is not over")
			}
			wantOpen(t, other, 0)
			wantGone(t, other, damage.names)
			for _, s := range []*pgstore.Store{s, other} {
				if _, err := s.Append(t.Context(), "after", nil); err != nil {
					t.Errorf("an Append, whose client was told: %v", err)
				}
			}
			if after := fill(t, other); after <= before {
				t.Errorf("a version is %d; one was %d before", after, before)
			}
		})
	}
}

// fill writes something into every table, and returns the latest version.
func fill(t *testing.T, s *pgstore.Store) store.Version {
	t.Helper()
	at, err := s.Append(t.Context(), "a", nil)
	if err == nil {
		err = s.Checkpoint(t.Context(), store.Checkpoint{Position: at, Value: []byte("value")})
	}
	if err == nil {
		_, err = s.Append(t.Context(), "b", nil)
	}
	version, err2 := s.Commit(t.Context(), putting("key", "1"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return version
}

// wantGone checks which tables the floor names.
func wantGone(t *testing.T, s *pgstore.Store, names string) {
	t.Helper()
	kv, err := s.Get(t.Context(), floor.Key)
	if err != nil {
		t.Fatal(err)
	}
	var f floor.Floor
	if err := json.Unmarshal(kv.Value, &f); err != nil || !strings.Contains(f.Why, "its tables "+names+",") {
		t.Errorf("the floor is there since %q, %v; want it to name %s", f.Why, err, names)
	}
}

// A client that was not there before finds it, too, when nobody is left that knows more.
func TestAStrangerFindsATableEmptied(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	for name, damage := range damages {
		schema := strings.ReplaceAll(name, " ", "_")
		config := pgstore.Config{URL: server.URL("postgres"), Schema: schema}
		first := open(t, config)
		before := fill(t, first)
		_ = first.Close()
		server.SQL(t, strings.ReplaceAll(damage.do, "{s}", schema))
		s := open(t, config)
		wantGone(t, s, damage.names)
		wantOpen(t, s, 0)
		if after := fill(t, s); after <= before {
			t.Errorf("%s: a version is %d; one was %d before", name, after, before)
		}
	}
}

// A table of sessions that was dropped takes the sessions with it, and their keys.
func TestTheSessionsAreDropped(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	s, other := open(t, pgstore.Config{URL: server.URL("postgres")}),
		open(t, pgstore.Config{URL: server.URL("postgres")})
	for i := range 2 {
		session, err := s.OpenSession(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(),
			store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, session)}}); err != nil {
			t.Fatal(err)
		}
		gone, err := other.Gone(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		server.SQL(t, []string{"DROP TABLE firn.sessions CASCADE", "DELETE FROM firn.sessions"}[i])
		for what, ended := range map[string]<-chan struct{}{"session": session.Done(), "key": gone} {
			select {
			case <-ended:
			case <-time.After(patience):
				t.Errorf("the %s is not gone", what)
			}
		}
	}
}

// Where firn's role may not make the tables, each call says at once which are gone, and goes on once they are there
// again.
func TestADroppedTableIsNamed(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	make := func() {
		server.SQL(t, pgstore.SQL(""), "GRANT USAGE ON SCHEMA firn TO app",
			"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA firn TO app")
	}
	server.SQL(t, "CREATE ROLE app LOGIN")
	make()
	s := open(t, pgstore.Config{URL: server.URL("app")})
	fill(t, s)
	ended := follow(t, s)
	for _, drop := range []struct{ do, says string }{
		{"DROP TABLE firn.log", "lacks the tables log, "},
		{"DROP SCHEMA firn CASCADE", "lacks the tables head, latest, sessions, keys, log, checkpoint, "},
	} {
		server.SQL(t, drop.do)
		eventually(t, "the refusal", func() error {
			if _, err := s.Get(t.Context(), "key"); !errors.Is(err, store.ErrRefused) {
				return fmt.Errorf("Get = %w", err)
			}
			return nil
		})
		wantRefused(t, s, store.ErrRefused, drop.says)
		wantRefused(t, s, store.ErrRefused, "firn gen sql --store")
		make()
		eventually(t, "Get", func() error { // the rights come after the tables
			_, err := s.Get(t.Context(), "key")
			return err
		})
		wantLoss(t, ended)
		ended = follow(t, s)
	}
}
