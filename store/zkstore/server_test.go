//go:build unix

package zkstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/indoubt"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/internal/test/zktest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore"
)

const patience = 30 * time.Second

func putting(key, value string) []store.Op { return []store.Op{store.Put(key, []byte(value))} }

func when(key string, version store.Version) []store.Condition {
	return []store.Condition{{Key: key, Version: version}}
}

func commit(t *testing.T, s store.Store, txn store.Txn) store.Version {
	t.Helper()
	version, err := s.Commit(t.Context(), txn)
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	return version
}

func wantValue(t *testing.T, s store.Store, key, want string) {
	t.Helper()
	if kv, err := s.Get(t.Context(), key); err != nil || string(kv.Value) != want {
		t.Errorf("Get(%q) = %+v, %v; want %q", key, kv, err, want)
	}
}

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

// A list is as it was at one moment. Somebody writes whenever nodes are asked for: one that asked for their names
// before would never end, as among a thousand members that extend.
func listMeanwhile(t *testing.T, server *zktest.Server, chroot string) {
	proxy := proxytest.New(t, server.Address())
	s := open(t, zkstore.Config{Servers: []string{proxy.Address()}, Chroot: chroot})
	other := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot})
	const keys = 3
	write := func(value string) store.Version {
		var txn store.Txn
		for i := range keys {
			txn.Then = append(txn.Then, store.Put(fmt.Sprint("key", i), []byte(value)))
		}
		return commit(t, other, txn)
	}
	var last atomic.Int64
	last.Store(int64(write("0")))
	proxy.Inspect(func(d proxytest.Direction, data []byte) proxytest.Fate {
		if d == proxytest.ToServer && bytes.Contains(data, []byte("/keys/key")) {
			last.Store(int64(write("1")))
		}
		return proxytest.Forward
	})
	kvs, err := s.List(t.Context(), "key")
	if err != nil || len(kvs) != keys {
		t.Fatalf("List = %+v, %v; want %d keys", kvs, err, keys)
	}
	for _, kv := range kvs {
		if int64(kv.Version) != last.Load() {
			t.Errorf("%s has version %d; the last that was written is %d", kv.Key, kv.Version, last.Load())
		}
	}
}

// Each has a tree of its own at one server.
func TestServer(t *testing.T) {
	t.Parallel()
	server := zktest.Start(t)
	for i, c := range []struct {
		name string
		run  func(t *testing.T, server *zktest.Server, chroot string)
	}{
		{"a node that is made again is another", nodeMadeAgainIsAnother},
		{"what a client knows may be out of date", outOfDate},
		{"a tree is made once", treeIsMadeOnce},
		{"a transaction in doubt", transactionInDoubt},
		{"cut off in one direction", cutOneWay},
		{"a list while keys are written", listMeanwhile},
		{"limits", limits},
		{"examine", examine},
		{"the session of a stranger", foreignSession},
		{"nothing is left over", nothingIsLeftOver},
		{"names that paths can't have", oddNames},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, server, fmt.Sprintf("/tree-%d", i))
		})
	}
}

// A node that was deleted and made again has been written as often as the one before, and ZooKeeper's own condition
// holds. That of the store does not, whoever knows the former version, and for ephemeral nodes neither.
func nodeMadeAgainIsAnother(t *testing.T, server *zktest.Server, chroot string) {
	config := zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot}
	knows, other := open(t, config), open(t, config)
	session, err := other.OpenSession(t.Context(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]store.Op{
		"a key that stays": store.Put("key", []byte("1")),
		"an ephemeral key": store.PutEphemeral("key", []byte("1"), session),
	} {
		txn := store.Txn{Then: []store.Op{put}}
		version := commit(t, knows, txn)
		commit(t, other, store.Txn{Then: []store.Op{store.Delete("key")}})
		commit(t, other, txn)
		for _, stale := range []store.Txn{
			{If: when("key", version), Then: putting("key", "2")},
			{If: when("key", version), Then: putting("other", "2")},
			{If: when("key", version), Then: []store.Op{store.Delete("key")}},
		} {
			if _, err := knows.Commit(t.Context(), stale); !errors.Is(err, store.ErrConflict) {
				t.Errorf("%s: Commit under a former version = %v, want ErrConflict", name, err)
			}
		}
		wantValue(t, knows, "key", "1")
		commit(t, other, store.Txn{Then: []store.Op{store.Delete("key")}})
	}
}

// What a client knows of a key may be out of date: then a transaction without a condition is sent again, and a
// condition is checked by the service.
func outOfDate(t *testing.T, server *zktest.Server, chroot string) {
	config := zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot}
	knows, other := open(t, config), open(t, config)
	session, err := other.OpenSession(t.Context(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	others := []store.Op{
		store.Put("key", nil), store.Delete("key"), store.PutEphemeral("key", nil, session), store.Put("key", nil),
		store.PutEphemeral("key", nil, session), store.Delete("key"),
	}
	own := []store.Op{
		store.Put("key", []byte("own")), store.Delete("key"),
		store.PutEphemeral("key", []byte("own"), session),
	}
	for _, before := range others {
		for _, op := range own {
			commit(t, knows, store.Txn{Then: putting("key", "known")})
			commit(t, other, store.Txn{Then: []store.Op{before}})
			version := commit(t, knows, store.Txn{Then: []store.Op{op}})
			kv, err := other.Get(t.Context(), "key")
			if want := string(op.Value); err != nil || string(kv.Value) != want ||
				kv.Version != version && !op.Delete || op.Delete && kv.Version != 0 {
				t.Errorf("%+v after %+v: %+v, %v; want version %d", op, before, kv, err, version)
			}
		}
	}
}

// Clients that begin at once make one tree.
func treeIsMadeOnce(t *testing.T, server *zktest.Server, chroot string) {
	var all sync.WaitGroup
	for i := range 8 {
		s := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot + "/firn/tree"})
		all.Go(func() {
			if _, err := s.Commit(t.Context(), store.Txn{Then: putting(fmt.Sprintf("key/%d", i), "1")}); err != nil {
				t.Errorf("Commit: %v", err)
			}
		})
	}
	all.Wait()
	if kvs, err := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot + "/firn/tree"}).
		List(t.Context(), "key/"); err != nil || len(kvs) != 8 {
		t.Errorf("List = %v, %v", kvs, err)
	}
	if kvs, err := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot + "/firn"}).
		List(t.Context(), ""); err != nil || len(kvs) != 0 {
		t.Errorf("List of another tree = %v, %v", kvs, err)
	}
}

// A transaction without an answer is in doubt, be it that it was applied or not, and is never sent again.
func transactionInDoubt(t *testing.T, server *zktest.Server, chroot string) {
	proxy := proxytest.New(t, server.Address())
	s := open(t, zkstore.Config{Servers: []string{proxy.Address()}, Chroot: chroot})
	other := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot})
	indoubt.Test(t, proxy, s, other, func(value string) []byte { return []byte(value) })
}

// Cut off in one direction: what was sent may take effect, and the session ends in time at both ends.
func cutOneWay(t *testing.T, server *zktest.Server, chroot string) {
	plain := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot})
	for _, direction := range []proxytest.Direction{proxytest.ToServer, proxytest.ToClient} {
		proxy := proxytest.New(t, server.Address())
		s := open(t, zkstore.Config{Servers: []string{proxy.Address()}, Chroot: chroot, CallDeadline: 2 * time.Second})
		session, err := s.OpenSession(t.Context(), 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		commit(t, s, store.Txn{Then: []store.Op{store.PutEphemeral("mine", nil, session)}})
		version := commit(t, s, store.Txn{Then: putting("key", "0")})
		proxy.CutOneWay(direction, true)
		if _, err := s.Get(t.Context(), "key"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Get = %v, want ErrUnavailable", err)
		}
		if _, err := s.Commit(t.Context(),
			store.Txn{If: when("key", version), Then: putting("key", "1")}); !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("Commit = %v, want ErrAmbiguous", err)
		}
		select {
		case <-session.Done():
		case <-time.After(patience):
			t.Error("the session is not done")
		}
		gone, err := plain.Gone(t.Context(), "mine")
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-gone:
		case <-time.After(patience):
			t.Error("the key of the session is not gone")
		}
		proxy.CutOneWay(direction, false)
		second := store.Txn{If: when("key", version), Then: putting("key", "2")}
		want := "2"
		eventually(t, "a Commit after the cut", func() error {
			_, err := s.Commit(t.Context(), second)
			if errors.Is(err, store.ErrConflict) {
				want = "1"
				return nil
			}
			return err
		})
		wantValue(t, s, "key", want)
	}
}

// What ZooKeeper would refuse is refused before it is sent, with the numbers.
func limits(t *testing.T, server *zktest.Server, chroot string) {
	s := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot})
	var long store.Txn
	for i := range store.MaxOps {
		key := strings.Repeat("ä", store.MaxKey/2-4) + fmt.Sprint(1000+i)
		long.If = append(long.If, store.Condition{Key: key + "if"})
		long.Then = append(long.Then, store.Put(key, make([]byte, 3000)))
	}
	if _, err := s.Commit(t.Context(), long); !errors.Is(err, store.ErrRefused) ||
		!strings.Contains(err.Error(), "1048575") {
		t.Errorf("Commit of long keys = %v, want ErrRefused, and how much ZooKeeper takes", err)
	}
	if _, err := s.OpenSession(t.Context(), time.Hour); !errors.Is(err, store.ErrRefused) ||
		!strings.Contains(err.Error(), "maxSessionTimeout") {
		t.Errorf("OpenSession of an hour = %v, want ErrRefused, and the setting", err)
	}
	if session, err := s.OpenSession(t.Context(), time.Millisecond); err != nil || session.TTL() != 2*zktest.Tick {
		t.Errorf("OpenSession of a millisecond = %v, want two ticks", err)
	}
}

// "Opening must not require that the server is reachable": a server that comes up later is used, and until then the
// reason is told.
func TestServerComesUpLater(t *testing.T) {
	t.Parallel()
	server := zktest.Start(t)
	server.Kill(t)
	s := open(t, zkstore.Config{Servers: []string{server.Address()}, CallDeadline: time.Second})
	_, get := s.Get(t.Context(), "key")
	_, session := s.OpenSession(t.Context(), time.Second)
	_, appended := s.Append(t.Context(), "id", nil)
	_, examined := s.Examine(t.Context())
	for call, err := range map[string]error{
		"Get": get, "OpenSession": session, "Append": appended,
		"Examine": examined,
	} {
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") ||
			!strings.Contains(err.Error(), server.Address()) {
			t.Errorf("%s = %v, want ErrUnavailable, and that %s refuses connections", call, err, server.Address())
		}
	}
	if _, err := s.Commit(t.Context(), store.Txn{Then: putting("key", "1")}); !errors.Is(err, store.ErrAmbiguous) {
		t.Errorf("Commit = %v, want ErrAmbiguous", err)
	}
	server.Start(t)
	eventually(t, "Get", func() error { _, err := s.Get(t.Context(), "key"); return err })
}

// A server that is down is passed over, and so is one that is frozen.
func TestOneServerIsSilent(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	up, down := zktest.Start(t), zktest.Start(t)
	down.Pause(t)
	for range 4 { // they begin with one or the other
		s := open(t, zkstore.Config{Servers: []string{down.Address(), up.Address(), proxytest.FixedAddress(t)}})
		eventually(t, "Get", func() error { _, err := s.Get(t.Context(), "key"); return err })
	}
}

func examine(t *testing.T, server *zktest.Server, chroot string) {
	gone := proxytest.FixedAddress(t)
	s := open(t, zkstore.Config{Servers: []string{server.Address(), gone}, Chroot: chroot})
	reports, err := s.Examine(t.Context())
	if err != nil || len(reports) != 2 {
		t.Fatalf("Examine = %+v, %v", reports, err)
	}
	if r := reports[0]; r.Server != server.Address() || r.Err != nil || !strings.HasPrefix(r.Version, "3.") ||
		r.Mode != "standalone" || r.Took <= 0 {
		t.Errorf("the server that is up: %+v", r)
	}
	if r := reports[1]; r.Server != gone || r.Err == nil {
		t.Errorf("the server that is down: %+v", r)
	}
	if kvs, err := s.List(t.Context(), ""); err != nil || len(kvs) != 0 {
		t.Errorf("Examine has left %v, %v", kvs, err)
	}
}

// A session of another tree is refused, not taken for one of this.
func foreignSession(t *testing.T, server *zktest.Server, chroot string) {
	s := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot})
	session, err := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot + "-other"}).
		OpenSession(t.Context(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for name, foreign := range map[string]store.Session{"another tree": session, "another kind": stranger{}} {
		_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, foreign)}})
		if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "another store") {
			t.Errorf("a session of %s: %v, want ErrRefused", name, err)
		}
	}
}

type stranger struct{ store.Session }

func (stranger) Close(context.Context) error { return nil }

// Of keys that were deleted, sessions that ended, entries that were trimmed and former checkpoints nothing is left.
func nothingIsLeftOver(t *testing.T, server *zktest.Server, chroot string) {
	s := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot})
	session, err := s.OpenSession(t.Context(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s,
		store.Txn{Then: []store.Op{store.Put("a", nil), store.Put("b", nil), store.PutEphemeral("c", nil, session)}})
	commit(t, s, store.Txn{Then: []store.Op{store.Delete("a"), store.PutEphemeral("b", nil, session)}})
	if err := session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var last store.Position
	for i := range 3 {
		for n := range 120 {
			if last, err = s.Append(t.Context(), fmt.Sprintf("e-%d-%d", i, n), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Checkpoint(t.Context(),
			store.Checkpoint{Position: last, Value: make([]byte, store.MaxCheckpoint)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"/keys": 0, "/marks": 0, "/log": 0, "/ids": 0, "/pieces": 2} {
		if left, err := zkstore.Children(t.Context(), s, name); err != nil || len(left) != want {
			t.Errorf("%s has %v, %v; want %d nodes", name, left, err, want)
		}
	}
}

// Every key can be the name of a node.
func oddNames(t *testing.T, server *zktest.Server, chroot string) {
	s := open(t, zkstore.Config{Servers: []string{server.Address()}, Chroot: chroot})
	odd := []string{".", "..", "...", "/", "//", "%2E", "zookeeper", "\U0001F600", "\uFFFD", "a\\b?c#d"}
	for _, key := range odd {
		commit(t, s, store.Txn{If: when(key, 0), Then: putting(key, "value of "+key)})
	}
	for _, key := range odd {
		wantValue(t, s, key, "value of "+key)
	}
	if kvs, err := s.List(t.Context(), ""); err != nil || len(kvs) != len(odd) {
		t.Errorf("List = %v, %v; want %d keys", kvs, err, len(odd))
	}
}
