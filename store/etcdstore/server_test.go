//go:build unix

package etcdstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/indoubt"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

const patience = 30 * time.Second

func putting(key string, op ...store.Op) store.Txn {
	return store.Txn{Then: append(op, store.Put(key, []byte("1")))}
}

// eventually repeats a call until it succeeds.
func eventually(t *testing.T, what string, call func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := call()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// works uses all of the port once.
func works(t *testing.T, s store.Store) {
	t.Helper()
	ctx := t.Context()
	session, err := s.OpenSession(ctx, 3*time.Second)
	if err != nil {
		t.Fatalf("OpenSession: %v", err)
	}
	if _, err := s.Commit(ctx, putting("key", store.PutEphemeral("mine", nil, session))); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	gone, err := s.Gone(ctx, "mine")
	if err != nil {
		t.Fatalf("Gone: %v", err)
	}
	if kvs, err := s.List(ctx, ""); err != nil || len(kvs) != 2 {
		t.Fatalf("List = %v, %v", kvs, err)
	}
	// Long enough that it must have been renewed.
	select {
	case <-session.Done():
		t.Fatal("the session was lost")
	case <-time.After(session.TTL() * 3 / 2):
	}
	if err := session.Close(ctx); err != nil {
		t.Fatalf("Close: %v", err)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("Gone did not fire")
	}
}

func TestACommitInDoubt(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	proxy := proxytest.New(t, server.Address())
	s := open(t, etcdstore.Config{Endpoints: []string{proxy.Address()}})
	other := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	indoubt.Test(t, proxy, s, other, func(value string) []byte { return []byte(value) })
}

// A frozen server answers nothing: a Commit is ambiguous, and when the server goes
// on, it may be applied or not. The next one under the same condition settles it.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}, CallDeadline: 300 * time.Millisecond})
	patient := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	version, err := patient.Commit(t.Context(), putting("key"))
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	eventually(t, "Get", func() error { _, err := s.Get(t.Context(), "key"); return err })
	next := func(value string) store.Txn {
		return store.Txn{
			If:   []store.Condition{{Key: "key", Version: version}},
			Then: []store.Op{store.Put("key", []byte(value))},
		}
	}
	server.Pause(t)
	start := time.Now()
	if _, err := s.Commit(t.Context(), next("during")); !errors.Is(err, store.ErrAmbiguous) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Commit = %v, want ErrAmbiguous and its cause", err)
	}
	if _, err := s.Get(t.Context(), "key"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get = %v, want ErrUnavailable", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("two calls of 300ms took %v", took)
	}
	server.Resume(t)

	want := "after"
	if _, err := patient.Commit(t.Context(), next("after")); errors.Is(err, store.ErrConflict) {
		want = "during"
	} else if err != nil {
		t.Fatalf("Commit after the pause: %v", err)
	}
	if kv, err := patient.Get(t.Context(), "key"); err != nil || string(kv.Value) != want {
		t.Errorf("Get after the pause = %+v, %v; want %q", kv, err, want)
	}
}

// A server that is gone is tried again and again, not with pauses that grow with the time: gRPC's own would
// have come to half of these attempts by now.
func TestServerThatIsGoneIsTriedOften(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tried := make(chan struct{})
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := gone.Accept()
			if err != nil {
				return
			}
			conn.Close() // as if no server listened
			tried <- struct{}{}
		}
	})
	s := open(t, etcdstore.Config{Endpoints: []string{gone.Addr().String()}, CallDeadline: 100 * time.Millisecond})
	if _, err := s.Get(t.Context(), "key"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get = %v, want ErrUnavailable", err)
	}
	deadline := time.After(patience)
	for attempt := range 12 {
		select {
		case <-tried:
		case <-deadline:
			t.Fatalf("only %d attempts within %v", attempt, patience)
		}
	}
	gone.Close()
	go func() { // who was accepted at the last moment
		for range tried {
		}
	}()
	accepting.Wait()
	close(tried)
}

// "Opening must not require that the server is reachable", with a user name neither, and a server that comes up
// later is used without reopening the store.
func TestServerComesUpLater(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	server.Kill(t)
	config := etcdstore.Config{Endpoints: []string{server.Endpoint()}, CallDeadline: time.Second}
	plain := open(t, config)
	config.Username, config.Password = "user", "not asked for"
	named := open(t, config)
	for _, s := range []store.Store{plain, named} {
		if _, err := s.Get(t.Context(), "key"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Get = %v, want ErrUnavailable", err)
		}
		if _, err := s.Commit(t.Context(), putting("key")); !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("Commit = %v, want ErrAmbiguous", err)
		}
		if _, err := s.OpenSession(t.Context(), time.Second); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("OpenSession = %v, want ErrUnavailable", err)
		}
	}
	server.Start(t)
	for _, s := range []store.Store{plain, named} {
		eventually(t, "Get", func() error { _, err := s.Get(t.Context(), "key"); return err })
	}
}

// Connections that are refused are told as such, by every call, and not as time that ran out.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	addresses := []string{proxytest.FixedAddress(t), proxytest.FixedAddress(t)}
	config := etcdstore.Config{Endpoints: addresses, CallDeadline: time.Second}
	plain := open(t, config)
	config.Username, config.Password = "user", "secret"
	named := open(t, config)
	for name, s := range map[string]*etcdstore.Store{"without a user": plain, "with a user": named} {
		_, session := s.OpenSession(t.Context(), time.Second)
		_, get := s.Get(t.Context(), "key")
		_, commit := s.Commit(t.Context(), putting("key"))
		_, append := s.Append(t.Context(), "id", nil)
		_, _, examine := s.Examine(t.Context())
		for call, err := range map[string]error{
			"OpenSession": session, "Get": get, "Commit": commit, "Append": append,
			"Examine": examine,
		} {
			if err == nil {
				t.Errorf("%s %s: no error", call, name)
				continue
			}
			text := err.Error()
			refused := strings.Contains(text, "connection refused") &&
				(strings.Contains(text, addresses[0]) || strings.Contains(text, addresses[1]))
			if !refused || strings.Contains(text, "deadline") || strings.Contains(text, "\n") {
				t.Errorf("%s %s: %v; want one line with the address and that the connection is refused",
					call, name, err)
			}
		}
	}
}

// A server that is down is passed over, be it the first of the list.
func TestOneServerIsDown(t *testing.T) {
	t.Parallel()
	up, down := etcdtest.Start(t, etcdtest.Options{}), etcdtest.Start(t, etcdtest.Options{})
	endpoints := []string{down.Endpoint(), up.Endpoint()}
	down.Kill(t)
	works(t, open(t, etcdstore.Config{Endpoints: endpoints}))
}

// Keys are kept where the configuration says, and ephemeral ones under the lease.
func TestKeysInEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	raw := rawClient(t, server.Endpoint())
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	session, err := s.OpenSession(t.Context(), 7*time.Second)
	if err != nil {
		t.Fatalf("OpenSession: %v", err)
	}
	if _, err := s.Commit(t.Context(),
		putting("peers/8", store.PutEphemeral("peers/7", []byte("me"), session))); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	resp, err := raw.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil || len(resp.Kvs) != 2 {
		t.Fatalf("etcd has %v, %v", resp, err)
	}
	if kv := resp.Kvs[0]; string(kv.Key) != "/firn/peers/7" || kv.Lease == 0 {
		t.Errorf("etcd has %v", kv)
	}
	if kv := resp.Kvs[1]; string(kv.Key) != "/firn/peers/8" || kv.Lease != 0 {
		t.Errorf("etcd has %v", kv)
	}
	if session.TTL() != 6*time.Second {
		t.Errorf("TTL() = %v", session.TTL())
	}
}

// A TTL is whole seconds, and from 4 s on a second shorter than was asked for; the one that
// is told is the one that was granted.
func TestGrantedTTL(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{Heartbeat: 200, Election: 2000})
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	for asked, want := range map[time.Duration]time.Duration{
		time.Millisecond:        3 * time.Second, // one and a half election timeouts
		3*time.Second + 1:       4 * time.Second,
		4 * time.Second:         3 * time.Second,
		4*time.Second + 1:       4 * time.Second,
		20 * time.Second:        19 * time.Second,
		20*time.Second - 999999: 19 * time.Second,
	} {
		session, err := s.OpenSession(t.Context(), asked)
		if err != nil {
			t.Fatalf("OpenSession: %v", err)
		}
		if session.TTL() != want {
			t.Errorf("asked for %v, was granted %v, want %v", asked, session.TTL(), want)
		}
	}
	if _, err := s.OpenSession(t.Context(), 0); !errors.Is(err, store.ErrRefused) ||
		!strings.Contains(err.Error(), "0s") {
		t.Errorf("OpenSession(0) = %v, want ErrRefused", err)
	}
}

// A watch that was parted from the server while its key came and went, and whose
// revision was compacted away meanwhile, still fires; and not by the reading
// now and then, which is not due yet.
func TestGoneAfterCompaction(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	proxy := proxytest.New(t, server.Address())
	raw := rawClient(t, server.Endpoint())
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	victim := open(t, etcdstore.Config{Endpoints: []string{proxy.Address()}})
	for _, key := range []string{"key", "kept"} {
		if _, err := s.Commit(t.Context(), putting(key)); err != nil {
			t.Fatalf("Commit: %v", err)
		}
	}
	gone, err := victim.Gone(t.Context(), "key")
	if err != nil {
		t.Fatalf("Gone: %v", err)
	}
	kept, err := victim.Gone(t.Context(), "kept")
	if err != nil {
		t.Fatalf("Gone: %v", err)
	}
	proxy.Drop()
	proxy.Cut(true)
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Delete("key")}}); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	var last store.Version
	for range 10 {
		if last, err = s.Commit(t.Context(), putting("key")); err != nil {
			t.Fatalf("Commit: %v", err)
		}
	}
	if _, err := raw.Compact(t.Context(), int64(last), clientv3.WithCompactPhysical()); err != nil {
		t.Fatalf("Compact: %v", err)
	}
	proxy.Cut(false)
	select {
	case <-gone:
	case <-kept:
		t.Fatal("Gone fired for a key that was kept")
	case <-time.After(8 * time.Second):
		t.Fatal("Gone did not fire")
	}
}

func rawClient(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A session of another store is refused, not put under no lease at all.
func TestForeignSession(t *testing.T) {
	t.Parallel()
	s := open(t, etcdstore.Config{Endpoints: []string{"127.0.0.1:1"}})
	txn := store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, foreign{})}}
	if _, err := s.Commit(t.Context(), txn); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("Commit = %v, want it refused", err)
	}
}

type foreign struct{ store.Session }
