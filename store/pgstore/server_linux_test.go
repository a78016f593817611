package pgstore_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/indoubt"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/pgstore"
)

func TestACommitInDoubt(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	proxy := proxytest.New(t, server.Address())
	s, other := open(t, pgstore.Config{URL: through(server, proxy)}),
		open(t, pgstore.Config{URL: server.URL("postgres")})
	indoubt.Test(t, proxy, s, other, func(value string) []byte { return []byte(hex.EncodeToString([]byte(value))) })
}

// A frozen server answers nothing; when it goes on, a Commit in doubt may be applied or not.
func TestAFrozenServer(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	patient := open(t, pgstore.Config{URL: server.URL("postgres")})
	version, err := patient.Commit(t.Context(), putting("key", "before"))
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, pgstore.Config{URL: server.URL("postgres"), CallDeadline: 500 * time.Millisecond})
	eventually(t, "a connection", func() error {
		_, err := s.Get(t.Context(), "key")
		return err
	})
	next := func(value string) store.Txn {
		return store.Txn{
			If:   []store.Condition{{Key: "key", Version: version}},
			Then: []store.Op{store.Put("key", []byte(value))},
		}
	}
	server.Pause(t)
	// Unavailable: a poll had the connection, so that nothing was sent.
	_, err = s.Commit(t.Context(), next("during"))
	sent := errors.Is(err, store.ErrAmbiguous)
	if !sent && !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Commit = %v, want ErrAmbiguous or ErrUnavailable, and its cause", err)
	}
	if _, err := s.Get(t.Context(), "key"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get = %v, want ErrUnavailable", err)
	}
	server.Resume(t)
	want := "after"
	eventually(t, "the settling Commit", func() error {
		_, err := patient.Commit(t.Context(), next("after"))
		sent = sent || errors.Is(err, store.ErrAmbiguous)
		if sent && errors.Is(err, store.ErrConflict) {
			want = "during"
			return nil
		}
		return err
	})
	eventually(t, "Get", func() error {
		kv, err := patient.Get(t.Context(), "key")
		if got := string(kv.Value); err == nil && got != want && (!sent || got != "after") {
			t.Errorf("the key has %q, want %q", got, want)
		}
		return err
	})
}

// A server that is silent, as one whose machine is gone, does not keep clients from the next one of the URL.
func TestTheFirstServerIsSilent(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	silent := proxytest.New(t, server.Address())
	silent.Cut(true)
	s := open(t, pgstore.Config{URL: fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable", silent.Address(),
		server.Address())})
	if kv, err := s.Get(t.Context(), "key"); err != nil {
		t.Errorf("the first Get = %+v, %v; want an answer from the second server", kv, err)
	}
	report, err := s.Examine(t.Context())
	if err != nil || len(report.Servers) != 2 || report.Servers[0].Err == nil || report.Servers[1].Err != nil {
		t.Errorf("Examine = %+v, %v; want that the first server does not answer, and the second does", report, err)
	}
}

// A client that hears nothing, and one that nobody hears, know within the TTL that their sessions may be over.
func TestCutInOneDirection(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	other := open(t, pgstore.Config{URL: server.URL("postgres")})
	for name, direction := range map[string]proxytest.Direction{
		"it hears nothing": proxytest.ToClient,
		"nobody hears it":  proxytest.ToServer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := proxytest.New(t, server.Address())
			s := open(t, pgstore.Config{URL: through(server, proxy)})
			session, err := s.OpenSession(t.Context(), 3*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			key := "key " + strconv.Itoa(int(direction))
			if _, err := s.Commit(t.Context(),
				store.Txn{Then: []store.Op{store.PutEphemeral(key, nil, session)}}); err != nil {
				t.Fatal(err)
			}
			gone, err := other.Gone(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			proxy.CutOneWay(direction, true)
			select {
			case <-session.Done():
			case <-gone:
				t.Error("the key was gone before its owner knew")
			case <-time.After(patience):
				t.Fatal("the session is not over")
			}
			select {
			case <-gone:
			case <-time.After(patience):
				t.Error("the key is not gone")
			}
			proxy.CutOneWay(direction, false)
		})
	}
}

var writes = flag.Int("writes", 10_000, "how many transactions TestTheTablesStaySmall sends")

// The tables stay small, however much is written.
func TestTheTablesStaySmall(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := dbtest.StartPostgres(t, "autovacuum_naptime=1s")
	const clients, live = 4, 200
	each := *writes / clients
	var all sync.WaitGroup
	for i := range clients {
		s := open(t, pgstore.Config{URL: server.URL("postgres")})
		all.Go(func() {
			value := bytes.Repeat([]byte{byte(i)}, 100)
			for n := range each {
				if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(fmt.Sprintf("fence/%d",
					(n*clients+i)%live), value)}}); err != nil {
					t.Error(err)
					return
				}
				if n%50 != 0 {
					continue
				}
				at, err := s.Append(t.Context(), fmt.Sprintf("e-%d-%d", i, n), value)
				if n%500 == 0 {
					err = errors.Join(err, s.Checkpoint(t.Context(),
						store.Checkpoint{Position: at, Value: bytes.Repeat(value, 500)}), s.Trim(t.Context()))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for table, most := range map[string]int{
		"head": 1 << 18, "latest": 16 << 20, "sessions": 1 << 19, "keys": 2 << 20,
		"log": 4 << 20, "checkpoint": 16 << 20,
	} {
		size, err := strconv.Atoi(server.SQL(t, "SELECT pg_total_relation_size('firn."+table+"')"))
		if err != nil || size > most {
			t.Errorf("%s has %d bytes, %v; want at most %d", table, size, err, most)
		}
		t.Logf("%s has %d KiB", table, size>>10)
	}
}

// Nothing is put under a session whose owner was told that it is over, even if the server still knows it.
func TestALostSessionIsOver(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	proxy := proxytest.New(t, server.Address())
	s := open(t, pgstore.Config{URL: through(server, proxy)})
	session, err := s.OpenSession(t.Context(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Cut(true)
	server.SQL(t, "UPDATE firn.sessions SET ttl = 3600000, expires = now() + interval '1 hour'")
	select {
	case <-session.Done():
	case <-time.After(patience):
		t.Fatal("the session is not over")
	}
	proxy.Cut(false)
	eventually(t, "Commit", func() error {
		_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, session)}})
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrAmbiguous) {
			return err
		}
		if !errors.Is(err, store.ErrSessionEnded) {
			t.Errorf("Commit = %v, want ErrSessionEnded", err)
		}
		return nil
	})
	if kv, err := s.Get(t.Context(), "key"); err != nil || kv.Version != 0 {
		t.Errorf("Get = %+v, %v; want no key", kv, err)
	}
}

// A renewal that the server refuses is not tried again and again at once: each is an error in the server's log.
func TestRefusedRenewalsAreFew(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	server.SQL(t, "CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE postgres TO app", pgstore.SQL(""),
		"GRANT USAGE ON SCHEMA firn TO app", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA firn TO app")
	proxy := proxytest.New(t, server.Address())
	s := open(t, pgstore.Config{URL: strings.Replace(server.URL("app"), server.Address(), proxy.Address(), 1)})
	session, err := s.OpenSession(t.Context(), 4*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	server.SQL(t, "REVOKE UPDATE ON firn.sessions FROM app")
	var tries atomic.Int64
	proxy.Inspect(func(d proxytest.Direction, data []byte) proxytest.Fate {
		if d == proxytest.ToServer && bytes.Contains(data, []byte("UPDATE sessions")) {
			tries.Add(1)
		}
		return proxytest.Forward
	})
	select {
	case <-session.Done():
	case <-time.After(patience):
		t.Fatal("the session is not over")
	}
	if n := tries.Load(); n == 0 || n > 12 {
		t.Errorf("%d renewals were tried in a second, want 1 to 12", n)
	}
}

// A session whose owner is gone ends within its TTL, also when the server's clock is set back.
func TestTheServersClockIsSetBack(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	proxy := proxytest.New(t, server.Address())
	owner, other := open(t, pgstore.Config{URL: through(server, proxy)}),
		open(t, pgstore.Config{URL: server.URL("postgres")})
	session, err := owner.OpenSession(t.Context(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Commit(t.Context(),
		store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, session)}}); err != nil {
		t.Fatal(err)
	}
	gone, err := other.Gone(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	proxy.Cut(true)
	server.SQL(t, "UPDATE firn.sessions SET expires = expires + interval '1 hour'") // as the clock sees it from then on
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the session of a client that was cut off lives on")
	}
}

// Over 100 members' worth of sessions that end at once, each client sees each key go.
func TestManySessionsEndAtOnce(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	s, other := open(t, pgstore.Config{URL: server.URL("postgres")}),
		open(t, pgstore.Config{URL: server.URL("postgres")})
	var watches []<-chan struct{}
	for i := range 100 {
		session, err := s.OpenSession(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint("key ", i)
		if _, err := s.Commit(t.Context(),
			store.Txn{Then: []store.Op{store.PutEphemeral(key, nil, session)}}); err != nil {
			t.Fatal(err)
		}
		gone, err := other.Gone(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		watches = append(watches, gone)
	}
	server.SQL(t, "UPDATE firn.sessions SET expires = now()")
	for i, gone := range watches {
		select {
		case <-gone:
		case <-time.After(patience):
			t.Fatalf("key %d is not gone", i)
		}
	}
}

// A commit that a standby was to confirm, and whose wait was cancelled, is in doubt: it is there, and may be lost with
// this server.
func TestAnUnconfirmedCommitIsInDoubt(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	server.SQL(t, "ALTER ROLE postgres SET client_min_messages = error") // the server tells by a warning
	s := open(t, pgstore.Config{URL: server.URL("postgres"), CallDeadline: patience})
	if _, err := s.Commit(t.Context(), putting("key", "1")); err != nil {
		t.Fatal(err)
	}
	server.Reload(t, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	committed := make(chan error)
	go func() { // the first commits may not wait: the processes of the server that decide it read the setting later
		for t.Context().Err() == nil {
			_, err := s.Commit(t.Context(), putting("key", "2"))
			select {
			case committed <- err:
			case <-t.Context().Done():
			}
		}
	}()
	eventually(t, "a commit that waits", func() error {
		select {
		case err := <-committed:
			if err != nil {
				t.Fatalf("Commit that does not wait: %v", err)
			}
		default:
		}
		waiting := "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
		if server.SQL(t, "SET synchronous_commit = local", waiting) == "0" {
			return errors.New("not yet")
		}
		return nil
	})
	select {
	case err := <-committed:
		if !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("Commit = %v, want ErrAmbiguous", err)
		}
	case <-time.After(patience):
		t.Fatal("Commit does not end")
	}
}
