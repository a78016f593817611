//go:build unix

package wire_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/zktest"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func to(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) }
}

// options are those of a patient client.
func options(address string) wire.Options {
	return wire.Options{Connect: to(address), Timeout: 5 * time.Second, Silence: patience}
}

func dial(t *testing.T, o wire.Options) *wire.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := wire.Dial(ctx, o)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(c.Abandon)
	return c
}

// do sends requests, of which only the last may be refused.
func do(t *testing.T, c *wire.Conn, requests ...wire.Request) wire.Reply {
	t.Helper()
	replies, err := c.Do(t.Context(), requests...)
	if err != nil {
		t.Fatalf("%+v: %v", requests, err)
	}
	for _, r := range replies[:len(replies)-1] {
		if r.Err != 0 {
			t.Fatalf("%+v: %v", requests, r.Err)
		}
	}
	return replies[len(replies)-1]
}

func TestRequests(t *testing.T) {
	t.Parallel()
	events := make(chan string, 1)
	o := options(zktest.Start(t).Address())
	o.Event = func(path string) { events <- path }
	c := dial(t, o)

	made := do(t, c, wire.Create("/a", []byte("one"), wire.Persistent, false))
	if made.Err != 0 || made.Path != "/a" || made.Stat.Created != made.Zxid || made.Stat.Modified != made.Zxid {
		t.Errorf("Create = %+v", made)
	}
	if again := do(t, c, wire.Create("/a", nil, wire.Persistent, false)); again.Err != wire.ErrNodeExists {
		t.Errorf("Create again = %+v", again)
	}
	set := do(t, c, wire.Set("/a", []byte("two"), 0))
	if set.Err != 0 || set.Stat.Version != 1 || set.Stat.Modified != set.Zxid || set.Stat.Created != made.Zxid {
		t.Errorf("Set = %+v", set)
	}
	if got := do(t, c, wire.Sync("/a"), wire.Get("/a")); string(got.Data) != "two" || got.Stat != set.Stat ||
		got.Zxid < set.Zxid {
		t.Errorf("Get = %+v", got)
	}
	if absent := do(t, c, wire.Exists("/b", false)); absent.Err != wire.ErrNoNode {
		t.Errorf("Exists = %+v", absent)
	}

	do(t, c, wire.Children("/a", true))
	first := do(t, c, wire.Create("/a/n-", nil, wire.Ephemeral|wire.Sequential, false))
	second := do(t, c, wire.Create("/a/n-", nil, wire.Sequential, false))
	if first.Path >= second.Path || first.Stat.Owner != c.Session().ID || second.Stat.Owner != 0 {
		t.Errorf("Create makes %+v, then %+v", first, second)
	}
	if names := do(t, c, wire.Children("/a", false)); len(names.Children) != 2 || names.Stat.Children != second.Zxid {
		t.Errorf("Children = %+v", names)
	}
	select {
	case path := <-events:
		if path != "/a" {
			t.Errorf("the event is of %s", path)
		}
	case <-time.After(patience):
		t.Error("no event")
	}
	if deleted := do(t, c, wire.Delete("/a", wire.AnyVersion)); deleted.Err == 0 {
		t.Error("a node with children is deleted")
	}
	if large := do(t, c, wire.Create("/large", make([]byte, 1_000_000), wire.Persistent, false)); large.Err != 0 {
		t.Errorf("a large node: %v", large.Err)
	}
	if got := do(t, c, wire.Get("/large")); len(got.Data) != 1_000_000 {
		t.Errorf("the large node has %d bytes", len(got.Data))
	}
}

func TestMulti(t *testing.T) {
	t.Parallel()
	c := dial(t, options(zktest.Start(t).Address()))
	done := do(t, c, wire.Multi(
		wire.Create("/m", nil, wire.Persistent, false), wire.Check("/m", 0), wire.Set("/m", []byte("1"), 0),
		wire.Create("/gone", nil, wire.Persistent, false), wire.Delete("/gone", 0),
	))
	if _, err := done.Failed(); err != 0 || len(done.Parts) != 5 || done.Parts[2].Stat.Modified != done.Zxid {
		t.Fatalf("Multi = %+v", done)
	}
	for _, parts := range [][]wire.Request{
		{
			wire.Set("/m", []byte("2"), wire.AnyVersion), wire.Check("/m", 1),
			wire.Create("/m", nil, wire.Persistent, false),
		},
		{wire.Check("/m", wire.AnyVersion), wire.Check("/m", 0), wire.Set("/m", []byte("2"), wire.AnyVersion)},
		{wire.Check("/m", 1), wire.Delete("/gone", wire.AnyVersion), wire.Set("/m", []byte("2"), wire.AnyVersion)},
	} {
		failed := do(t, c, wire.Multi(parts...))
		if part, err := failed.Failed(); err == 0 || part != len(parts)-1 && part != 1 {
			t.Errorf("Multi = %+v", failed)
		}
	}
	if got := do(t, c, wire.Get("/m")); string(got.Data) != "1" {
		t.Errorf("a transaction that failed has left %q", got.Data)
	}
}

// A session goes on over another connection, until it is closed; its nodes end with it.
func TestSession(t *testing.T) {
	t.Parallel()
	o := options(zktest.Start(t).Address())
	c := dial(t, o)
	do(t, c, wire.Create("/mine", nil, wire.Ephemeral, false))
	c.Abandon()
	if _, err := c.Do(t.Context(), wire.Get("/mine")); !errors.Is(err, wire.ErrNotSent) {
		t.Errorf("Get after Abandon = %v, want ErrNotSent", err)
	}

	o.Session = c.Session()
	again := dial(t, o)
	if got := do(t, again, wire.Get("/mine")); got.Err != 0 || got.Stat.Owner != c.Session().ID {
		t.Errorf("Get = %+v", got)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := wire.Dial(t.Context(), o); !errors.Is(err, wire.ErrExpired) {
		t.Errorf("Dial of a session that was closed: %v, want ErrExpired", err)
	}
	o.Session = wire.Session{}
	if got := do(t, dial(t, o), wire.Exists("/mine", false)); got.Err != wire.ErrNoNode {
		t.Errorf("the node of the session that was closed: %+v", got)
	}
}

// Pings keep a session that nobody uses.
func TestIdleSessionLives(t *testing.T) {
	t.Parallel()
	o := options(zktest.Start(t).Address())
	o.Timeout = 10 * zktest.Tick // longer than a busy machine pauses
	c := dial(t, o)
	began := c.Heard()
	for c.Heard().Sub(began) < 2*c.Granted() {
		select {
		case <-c.Done():
			t.Fatalf("the connection has ended: %v", c.Err())
		case <-time.After(c.Granted() / 10):
		}
	}
	if got := do(t, c, wire.Exists("/", false)); got.Err != 0 {
		t.Errorf("Exists = %+v", got)
	}
}

// A request that was sent and is not answered is told from one that was not sent.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	proxy := proxytest.New(t, zktest.Start(t).Address())
	o := options(proxy.Address())
	o.Silence = 300 * time.Millisecond
	c := dial(t, o)
	proxy.CutOneWay(proxytest.ToClient, true)
	calls := c.Send(wire.Create("/doubt", nil, wire.Persistent, false), wire.Sync("/"))
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	if _, err := c.Do(t.Context(), wire.Get("/doubt")); !errors.Is(err, wire.ErrLost) {
		t.Errorf("a request without an answer: %v, want ErrLost", err)
	}
	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "silent") {
		t.Errorf("the connection ended with %v, want the silence", err)
	}
	proxy.CutOneWay(proxytest.ToClient, false)
	if got := do(t, dial(t, o), wire.Sync("/"), wire.Exists("/doubt", false)); got.Err != 0 {
		t.Errorf("the request was sent, and had no effect: %v", got.Err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := wire.Dial(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("Dial = %v, want context.Canceled", err)
	}
}

// jaas returns the option with which a server knows users, each with a password.
func jaas(t *testing.T, users string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "jaas.conf")
	text := "Server { org.apache.zookeeper.server.auth.DigestLoginModule required " + users + "; };"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "-Djava.security.auth.login.config=" + name
}

func TestLogin(t *testing.T) {
	t.Parallel()
	server := zktest.Start(t, "-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
		jaas(t, `user_firn="se\"cret" user_other="pass"`))
	o := options(server.Address())
	o.Login = &wire.Login{User: "firn", Password: `se"cret`}
	mine := dial(t, o)
	if made := do(t, mine, wire.Create("/private", []byte("1"), wire.Persistent, true)); made.Err != 0 {
		t.Fatalf("Create = %+v", made)
	}
	if got := do(t, mine, wire.Get("/private")); !bytes.Equal(got.Data, []byte("1")) {
		t.Errorf("Get = %+v", got)
	}
	o.Login = &wire.Login{User: "other", Password: "pass"}
	if got := do(t, dial(t, o), wire.Get("/private")); got.Err != wire.ErrNoAuth {
		t.Errorf("Get as another = %+v", got)
	}
	o.Login = &wire.Login{User: "firn", Password: "wrong"}
	if _, err := wire.Dial(t.Context(), o); !errors.Is(err, wire.ErrAuthFailed) {
		t.Errorf("Dial with a wrong password = %v, want ErrAuthFailed", err)
	}
	o = options(zktest.Start(t).Address())
	o.Login = &wire.Login{User: "firn", Password: "secret"}
	if _, err := wire.Dial(t.Context(), o); !errors.Is(err, wire.ErrAuthFailed) {
		t.Errorf("Dial of a server without users = %v, want ErrAuthFailed", err)
	}
}
