package pgstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/pgstore"
)

// follow runs a Follow until it ends, and returns a channel of its error.
func follow(t *testing.T, s *pgstore.Store) <-chan error {
	t.Helper()
	ended, begun := make(chan error, 1), make(chan struct{})
	go func() {
		first := true
		for _, err := range s.Follow(t.Context(), 0) {
			if err != nil {
				ended <- err
				return
			}
			if first {
				close(begun)
			}
			first = false
		}
	}()
	select {
	case <-begun:
	case <-time.After(patience):
		t.Fatal("Follow does not begin")
	}
	return ended
}

// wantLoss waits until a Follow ends because the store has lost data.
func wantLoss(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrRolledBack) {
			t.Errorf("Follow ended with %v, want ErrRolledBack", err)
		}
	case <-time.After(patience):
		t.Fatal("Follow does not end")
	}
}

// wantOpen checks that nobody may claim a node ID, and that the longest window is kept.
func wantOpen(t *testing.T, s *pgstore.Store, window time.Duration) {
	t.Helper()
	kv, err := s.Get(t.Context(), floor.Key)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := floor.Parse(kv.Value); err != nil || !f.Open || f.Window != window || f.Why == "" || f.By == "" {
		t.Errorf("the floor is %q, %v; want one that is open, and a window of %v", kv.Value, err, window)
	}
}

// A replica that is promoted while it is behind has lost commits. Each client is told once, all sessions are over, so
// that no node ID can be extended, and nobody makes IDs until those of before are used up.
func TestAReplicaPromotedWhileBehind(t *testing.T) {
	t.Parallel()
	const window = 90 * time.Second
	primary := dbtest.StartPostgres(t)
	first := open(t, pgstore.Config{URL: primary.URL("postgres")})
	put, err := floor.Floor{Window: window}.Put()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Commit(t.Context(), store.Txn{Then: []store.Op{put}}); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Append(t.Context(), "kept", nil); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	replica := primary.Replica(t)
	url := fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable", primary.Address(), replica.Address())
	a, b := open(t, pgstore.Config{URL: url}), open(t, pgstore.Config{URL: url})
	kept, err := a.Commit(t.Context(), putting("kept", "1"))
	if err != nil {
		t.Fatal(err)
	}
	session, err := a.OpenSession(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Commit(t.Context(),
		store.Txn{Then: []store.Op{store.PutEphemeral("live", nil, session)}}); err != nil {
		t.Fatal(err)
	}
	followers := []<-chan error{follow(t, a), follow(t, a), follow(t, b)}
	eventually(t, "the replica has it", func() error {
		if replica.SQL(t, "SELECT count(*) FROM firn.keys WHERE key = 'live'") != "1" {
			return errors.New("not yet")
		}
		return nil
	})
	replica.Part(t)
	var lost store.Version
	for i := range 3 {
		if lost, err = a.Commit(t.Context(), putting("lost", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Append(t.Context(), fmt.Sprint("lost-", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	gone, err := b.Gone(t.Context(), "live")
	if err != nil {
		t.Fatal(err)
	}
	primary.Kill(t)
	replica.Promote(t)

	for _, ended := range followers {
		wantLoss(t, ended)
	}
	select {
	case <-session.Done():
	case <-time.After(patience):
		t.Error("the session is not over")
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("its key is there")
	}
	for _, s := range []*pgstore.Store{a, b} {
		wantOpen(t, s, window)
		if _, err := s.Append(t.Context(), "after", nil); err != nil {
			t.Errorf("an Append, whose client was told: %v", err)
		}
	}
	extend := store.Txn{
		If:   []store.Condition{{Key: "kept", Version: kept}},
		Then: []store.Op{store.PutEphemeral("live", nil, session)},
	}
	if _, err := a.Commit(t.Context(), extend); !errors.Is(err, store.ErrSessionEnded) {
		t.Errorf("a Commit under a session of before: %v, want ErrSessionEnded", err)
	}
	again, err := a.Commit(t.Context(), putting("lost", "again"))
	if err != nil || again <= lost {
		t.Errorf("the version after the loss is %d, %v; it was %d before", again, err, lost)
	}
	batch, err := b.Read(t.Context(), 0)
	if err != nil || len(batch.Entries) != 2 || batch.Entries[0].ID != "kept" || batch.Entries[1].ID != "after" {
		t.Errorf("the log has %+v, %v; want kept and after", batch.Entries, err)
	}
}

// An Append is told when nobody follows, once.
func TestALossIsToldOnceByAppend(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	works(t, open(t, pgstore.Config{URL: server.URL("postgres")}))
	restore := server.Backup(t)
	s, other := open(t, pgstore.Config{URL: server.URL("postgres")}),
		open(t, pgstore.Config{URL: server.URL("postgres")})
	for _, s := range []*pgstore.Store{s, other} {
		if _, err := s.Append(t.Context(), "b", nil); err != nil {
			t.Fatal(err)
		}
	}
	restore(t)
	for i, s := range []*pgstore.Store{s, other} {
		told := 0
		for n := range 10 {
			eventually(t, "Append", func() error {
				_, err := s.Append(t.Context(), fmt.Sprintf("e-%d-%d", i, n), nil)
				if errors.Is(err, store.ErrRolledBack) {
					told++
				}
				return err
			})
		}
		if told != 1 {
			t.Errorf("client %d was told %d times, want once", i, told)
		}
	}
	wantOpen(t, s, 0)
}

// Tables that were restored from a dump into the database that they are from, or into another, are behind, and nobody
// need have known them.
func TestARestoredDumpIsNoticed(t *testing.T) {
	t.Parallel()
	server, another := dbtest.StartPostgres(t), dbtest.StartPostgres(t)
	s := open(t, pgstore.Config{URL: server.URL("postgres")})
	before, err := s.Commit(t.Context(), putting("key", "1"))
	if err != nil {
		t.Fatal(err)
	}
	dump := server.Dump(t, "firn")
	if _, err := s.Commit(t.Context(), putting("key", "2")); err != nil {
		t.Fatal(err)
	}
	ended := follow(t, s)
	server.Restore(t, append([]byte("DROP SCHEMA firn CASCADE;\n"), dump...))
	wantLoss(t, ended)
	wantOpen(t, s, 0)

	another.Restore(t, dump)
	fresh := open(t, pgstore.Config{URL: another.URL("postgres")})
	if kv, err := fresh.Get(t.Context(), "key"); err != nil || kv.Version != before {
		t.Fatalf("Get = %+v, %v; want version %d", kv, err, before)
	}
	wantOpen(t, fresh, 0)
	if after, err := fresh.Commit(t.Context(), putting("key", "2")); err != nil || after < before+1<<31 {
		t.Errorf("Commit = %d, %v; want far more than %d", after, err, before)
	}
	if kv, err := open(t, pgstore.Config{URL: another.URL("postgres")}).Get(t.Context(), floor.Key); err != nil {
		t.Fatal(err)
	} else if mine, err := fresh.Get(t.Context(), floor.Key); err != nil || mine.Version != kv.Version {
		t.Errorf("the next client has put the floor again: %d, %d, %v", mine.Version, kv.Version, err)
	}
}

// A schema that was dropped is made again, and everybody who knew the former one is told.
func TestADroppedSchemaIsNoticed(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	s := open(t, pgstore.Config{URL: server.URL("postgres")})
	before, err := s.Commit(t.Context(), putting("key", "1"))
	if err != nil {
		t.Fatal(err)
	}
	ended := follow(t, s)
	server.SQL(t, "DROP SCHEMA firn CASCADE")
	wantLoss(t, ended)
	if after, err := s.Commit(t.Context(), putting("key", "1")); err != nil || after <= before {
		t.Errorf("Commit = %d, %v; want more than %d", after, err, before)
	}
}

// A restart of the same server loses nothing, and nobody is told of a loss.
func TestARestartIsNoLoss(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	s := open(t, pgstore.Config{URL: server.URL("postgres")})
	version, err := s.Commit(t.Context(), putting("key", "1"))
	if err != nil {
		t.Fatal(err)
	}
	ended := follow(t, s)
	for range 3 {
		server.Kill(t)
		server.Start(t)
		eventually(t, "Get", func() error {
			kv, err := s.Get(t.Context(), "key")
			if err == nil && kv.Version != version {
				t.Fatalf("the version is %d, and was %d", kv.Version, version)
			}
			return err
		})
	}
	if _, err := s.Append(t.Context(), "a", nil); err != nil {
		t.Error(err)
	}
	if kv, err := s.Get(t.Context(), floor.Key); err != nil || kv.Version != 0 {
		t.Errorf("there is a floor: %q, %v", kv.Value, err)
	}
	select {
	case err := <-ended:
		t.Errorf("Follow ended: %v", err)
	default:
	}
}
