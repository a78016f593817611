package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/service/admit/secretfile"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/quorum"
)

// fakeQuorum is a quorum whose store opens when the test says so. It remembers what is asked of it.
type fakeQuorum struct {
	addr  string // empty: it is a client
	start error

	mu   sync.Mutex // guards what follows
	why  error      // why the store does not open; nil: it opens
	done []string   // what was done, in order
}

func (q *fakeQuorum) did(what string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done = append(q.done, what)
}

func (q *fakeQuorum) all() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.done)
}

// opens says why the store does not open from now on; nil: it opens.
func (q *fakeQuorum) opens(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.why = why
}

func (q *fakeQuorum) Start() error {
	q.did("start")
	return q.start
}

func (q *fakeQuorum) Addr() string { return q.addr }

func (q *fakeQuorum) Open(context.Context) (quorum.Store, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.why != nil {
		return nil, q.why
	}
	q.done = append(q.done, "open")
	return &reports{inMemoryClient(), q}, nil
}

func inMemoryClient() quorum.Store { return memstore.NewService().Client("node") }

func (q *fakeQuorum) Status(context.Context) quorum.Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := quorum.Status{Self: q.addr, Machines: []quorum.Machine{{Address: "b:7420", Role: quorum.Empty}}}
	if q.why != nil {
		s.Waiting = q.why.Error()
	}
	return s
}

func (q *fakeQuorum) Replace(context.Context, string, string) error { return nil }
func (q *fakeQuorum) Remove(context.Context, ...string) error       { return nil }
func (q *fakeQuorum) Backup(_ context.Context, w io.Writer) error {
	_, err := w.Write([]byte("all"))
	return err
}
func (q *fakeQuorum) Close() { q.did("close quorum") }
func (q *fakeQuorum) Kill()  { q.did("kill quorum") }

// reports is a store that reports when it is closed.
type reports struct {
	quorum.Store
	to *fakeQuorum
}

func (r *reports) Close() error {
	r.to.did("close store")
	return r.Store.Close()
}

// withQuorum makes a node that uses a quorum.
func withQuorum(t *testing.T, q *fakeQuorum, set func(*Config)) *Node {
	t.Helper()
	c := testConfig(t)
	set(&c)
	n := newNode(t, c)
	n.use(q)
	return n
}

var errWaitsForB = fmt.Errorf("%w: waiting for b:7420", store.ErrUnavailable)

// A node that waits for the other machines is alive and says for whom; its administrators are served, with the secret
// beside the data. When it stops, the member leaves first and the quorum ends last.
func TestQuorum(t *testing.T) {
	t.Parallel()
	q := &fakeQuorum{addr: "a:7420", why: errWaitsForB}
	n := withQuorum(t, q, func(c *Config) { c.DrainDelay = 0 })
	ctx, stop := context.WithCancel(t.Context())
	done := running(t, ctx, n)

	waitFor(t, func() error {
		if status, body, err := n.call(Public, http.MethodGet, "/readyz", ""); status != 503 ||
			!strings.Contains(string(body), "waiting for b:7420") {
			return fmt.Errorf("/readyz = %d %s, %w", status, body, err)
		}
		return nil
	})
	path := filepath.Join(n.config.DataDir, secretfile.Name)
	waitFor(t, func() error { _, err := os.Stat(path); return err })
	for target, want := range map[string]string{
		"GET /api/v1/quorum":         `"waiting":"the store is unavailable: waiting for b:7420"`,
		"GET /api/v1/quorum/backup":  "all",
		"POST /api/v1/quorum/remove": `"self":"a:7420"`,
	} {
		method, path, _ := strings.Cut(target, " ")
		sent := ""
		if method == http.MethodPost {
			sent = `{"machines":["b:7420","c:7420"]}`
		}
		if status, body, err := n.call(Admin, method, path, sent); err != nil || status != 200 ||
			!strings.Contains(string(body), want) {
			t.Errorf("%s = %d %s, %v", target, status, body, err)
		}
	}
	q.opens(nil)
	becomesReady(t, n)
	if status, body, err := n.call(Admin, http.MethodGet, "/api/v1/cluster", ""); err != nil ||
		!strings.Contains(string(body), `"quorum":{`) {
		t.Errorf("the status is %d %s, %v; want the quorum in it", status, body, err)
	}
	stop()
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
	if want := []string{"start", "open", "close store", "close quorum"}; !slices.Equal(q.all(), want) {
		t.Errorf("it did %q, want %q", q.all(), want)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the secret is still there: %v", err)
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, holds func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// A node that is told to stop while it waits does so, and ends the quorum.
func TestStopWhileWaitingForTheQuorum(t *testing.T) {
	t.Parallel()
	q := &fakeQuorum{addr: "a:7420", why: errWaitsForB}
	n := withQuorum(t, q, func(*Config) {})
	ctx, stop := context.WithCancel(t.Context())
	done := running(t, ctx, n)
	stop()
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
	if want := []string{"start", "close quorum"}; !slices.Equal(q.all(), want) {
		t.Errorf("it did %q, want %q", q.all(), want)
	}
}

// An error that lasts ends the node: it is not the configuration that is wrong.
func TestQuorumOfAnother(t *testing.T) {
	t.Parallel()
	lasting := errors.New("this machine's data belongs to another cluster")
	n := withQuorum(t, &fakeQuorum{addr: "a:7420", why: lasting}, func(*Config) {})
	err := ended(t, running(t, t.Context(), n))
	if _, setting := errors.AsType[*SettingError](err); !errors.Is(err, lasting) || setting {
		t.Errorf("it ends with %v", err)
	}
}

// A machine that can't listen for the others names the setting, and listens nowhere.
func TestQuorumThatCantListen(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, inUse := net.Listen("tcp", taken.Addr().String())
	n := withQuorum(t, &fakeQuorum{start: inUse}, func(c *Config) { c.HTTPAddr = taken.Addr().String() })
	if wrong, ok := errors.AsType[*SettingError](n.Listen()); !ok || wrong.Setting != "http-addr" {
		t.Errorf("it listens: %v", wrong)
	}
	free := &fakeQuorum{start: fmt.Errorf("listening for the other machines: %w", inUse)}
	n = withQuorum(t, free, func(*Config) {})
	if wrong, ok := errors.AsType[*SettingError](n.Listen()); !ok || wrong.Setting != "quorum-listen" {
		t.Errorf("it starts: %v", wrong)
	}
	n = withQuorum(t, &fakeQuorum{start: &quorum.SeveralError{Found: []string{"a:1", "b:1"}}}, func(*Config) {})
	if wrong, ok := errors.AsType[*SettingError](n.Listen()); !ok || wrong.Setting != "quorum-addr" {
		t.Errorf("it starts: %v", wrong)
	}
	if !slices.Equal(free.all(), []string{"start"}) {
		t.Errorf("it did %q", free.all())
	}
}

// A client of the quorum has no data, so that its secret is elsewhere.
func TestSecretOfAClientOfTheQuorum(t *testing.T) {
	t.Setenv("RUNTIME_DIRECTORY", t.TempDir())
	q := &fakeQuorum{}
	n := withQuorum(t, q, func(*Config) {})
	if err := n.Listen(); err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	for addr, want := range map[string]string{"": os.Getenv("RUNTIME_DIRECTORY"), "a:7420": n.config.DataDir} {
		q.addr = addr
		if path, err := n.secretPath(n.Addr(Admin)); err != nil || filepath.Dir(path) != want {
			t.Errorf("of the machine %q it is %s, %v; want it in %s", addr, path, err, want)
		}
	}
}

// The data of a quorum is not used without it: the node would wait for a majority for ever.
func TestDataOfAQuorumWithoutIt(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.Store, c.DataDir = nil, t.TempDir()
	text := `{"state":"started","cluster":"5f0c3a9be1d24c77","known":["a:7420","b:7420","c:7420"]}`
	if err := os.WriteFile(filepath.Join(c.DataDir, "quorum.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	err := newNode(t, c).Listen()
	if err == nil || !strings.Contains(err.Error(), "belongs to the quorum of a:7420, b:7420, c:7420") {
		t.Errorf("it listens: %v", err)
	}
}

// The quorum gets what the node knows.
func TestQuorumConfig(t *testing.T) {
	c := testConfig(t)
	c.Quorum, c.Build.Version = quorum.Config{Machines: []string{"a:7420"}, KeyFile: "firn.key"}, "v1.2.3"
	c.Name = "east-1"
	n := newNode(t, c)
	got := n.quorumConfig()
	if err := n.begin(); err != nil {
		t.Fatal(err)
	}
	defer n.member.Leave()
	if got.Dir != c.DataDir || got.Version != "v1.2.3" || got.Logger == nil || got.KeyFile != "firn.key" ||
		got.Node() != "east-1" {
		t.Errorf("%+v", got)
	}
}
