package node

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store/memstore"
)

// patience is how long tests wait for an event, on a busy machine.
const patience = 30 * time.Second

// testConfig returns the Config of a node on free ports of this machine, with a store in memory.
func testConfig(t *testing.T) Config {
	t.Helper()
	c := Defaults()
	c.HTTPAddr, c.AdminAddr, c.DataDir = "127.0.0.1:0", "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	c.Store = inMemory
	return c
}

func inMemory() (Store, error) { return memstore.NewService().Client("node"), nil }

func newNode(t *testing.T, c Config) *Node {
	t.Helper()
	n, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// running starts a node until ctx ends, and returns a channel with the error of Run.
func running(t *testing.T, ctx context.Context, n *Node) (done chan error) {
	t.Helper()
	if err := n.Listen(); err != nil {
		t.Fatal(err)
	}
	done = make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	return done
}

// call calls a node, as anyone or as its administrator.
func (n *Node) call(at Address, method, path, sent string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+n.Addr(at)+path, strings.NewReader(sent))
	if err != nil {
		return 0, nil, err
	}
	if at == Admin {
		r.Header.Set("Authorization", "Bearer "+n.secret.Token())
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// becomesReady waits until a node is ready.
func becomesReady(t *testing.T, n *Node) {
	t.Helper()
	for deadline := time.Now().Add(patience); n.Ready() != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is not ready: %v", n.Ready())
		}
	}
}

// ended waits for the error of Run.
func ended(t *testing.T, done chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("the node does not end")
		return nil
	}
}

// A node that an operator expels ends, and says so.
func TestExpelled(t *testing.T) {
	t.Parallel()
	n := newNode(t, testConfig(t))
	done := running(t, t.Context(), n)
	becomesReady(t, n)
	if err := n.member.Expel(t.Context(), n.MemberID()); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, done); !errors.Is(err, peer.ErrExpelled) {
		t.Errorf("Run returned %v, want ErrExpelled", err)
	}
}

// A quorum of one tells the room on the disk with its data, and one that keeps no data does not.
func TestDiskOfANodeAlone(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		c := testConfig(t)
		if alone {
			c.Store = nil
		}
		n := newNode(t, c)
		ctx, stop := context.WithCancel(t.Context())
		done := running(t, ctx, n)
		becomesReady(t, n)
		status, body, err := n.call(Admin, http.MethodGet, "/api/v1/cluster", "")
		if told := strings.Contains(string(body), `"disk":{"free":`); err != nil || status != http.StatusOK ||
			told != alone {
			t.Errorf("alone %v: %d %s, %v", alone, status, body, err)
		}
		stop()
		if err := ended(t, done); err != nil {
			t.Error(err)
		}
	}
}

// No client sees an error when a node stops: clients that hammer get an ID from every call until they are asked
// to go elsewhere.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	n := newNode(t, testConfig(t))
	ctx, stop := context.WithCancel(t.Context())
	done := running(t, ctx, n)
	url := "http://" + n.Addr(Public)

	var calls atomic.Int64
	var clients sync.WaitGroup
	busy := make(chan struct{})
	for range 8 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for joined, leave := false, false; !leave; {
				response, err := client.Post(url+"/api/v1/ids?count=10", "", nil)
				if err != nil {
					t.Errorf("after %d calls: %v", calls.Load(), err)
					return
				}
				_, err = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close() // it was read to its end
				joined = joined || response.StatusCode == http.StatusOK
				if err != nil || joined && response.StatusCode != http.StatusOK {
					t.Errorf("after %d calls: %s, %v", calls.Load(), response.Status, err)
				}
				leave = response.Close
				if joined && calls.Add(1) == 1000 {
					close(busy)
				}
			}
		})
	}
	select {
	case <-busy:
	case <-time.After(patience):
		t.Error("there was no load")
	}
	stop()
	clients.Wait()
	if err := ended(t, done); err != nil {
		t.Errorf("serve: %v", err)
	}
	if _, err := http.Get(url + "/livez"); err == nil {
		t.Error("it still listens")
	}
}

// While a store takes long to open, callers can see that the node is alive, and stop it.
func TestStopWhileOpening(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.ShutdownTimeout = 10 * time.Millisecond
	blocked := make(chan struct{})
	defer close(blocked)
	c.Store = func() (Store, error) {
		<-blocked
		return nil, errors.New("too late")
	}
	n := newNode(t, c)
	ctx, stop := context.WithCancel(t.Context())
	done := running(t, ctx, n)
	for path, want := range map[string]int{
		"/livez": 200, "/readyz": 503, "/api/v1/ids/5": 200,
		"/api/v1/sequencers": 503,
	} {
		if status, body, err := n.call(Admin, http.MethodGet, path, ""); err != nil || status != want {
			t.Errorf("%s = %d %s, %v; want %d", path, status, body, err, want)
		}
	}
	const named = "/api/v1/sequencers/orders"
	for _, path := range []string{
		"/api/v1/id", "/api/v1/ids", named + "/id", named + "/ids", named + "/attach",
		named + "/detach",
	} {
		if status, body, err := n.call(Admin, http.MethodPost, path, ""); err != nil || status != 503 {
			t.Errorf("%s = %d %s, %v; want 503", path, status, body, err)
		}
	}
	if status, body, err := n.call(Admin, http.MethodPost, "/api/v1/sequencers", `{"name":"orders"}`); err != nil ||
		status != 503 {
		t.Errorf("creating = %d %s, %v; want 503", status, body, err)
	}
	if status, body, err := n.call(Admin, http.MethodDelete, named, ""); err != nil || status != 503 {
		t.Errorf("destroying = %d %s, %v; want 503", status, body, err)
	}
	stop()
	if err := ended(t, done); err != nil {
		t.Errorf("serve: %v", err)
	}
}

// The node closes a store that was opened too late, and returns the error of one that can't be opened.
func TestOpenStore(t *testing.T) {
	t.Parallel()
	run := func(ctx context.Context, open func() (Store, error)) error {
		n := newNode(t, testConfig(t))
		n.open = func(context.Context) (Store, error) { return open() }
		if err := n.Listen(); err != nil {
			t.Fatal(err)
		}
		return n.Run(ctx)
	}
	for range 20 { // which of the two it sees first is random
		ctx, stop := context.WithCancel(t.Context())
		late := &closes{Store: memstore.NewService().Client("late")}
		err := run(ctx, func() (Store, error) {
			stop()
			return late, nil
		})
		if err != nil || late.closed != 1 {
			t.Errorf("Run: %v, and the store was closed %d times", err, late.closed)
		}
	}
	broken := errors.New("broken")
	if err := run(t.Context(), func() (Store, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("Run: %v", err)
	}
}

type closes struct {
	Store
	closed int
}

func (c *closes) Close() error {
	c.closed++
	return c.Store.Close()
}

// The node cuts off requests that never end.
func TestShutdownTimeout(t *testing.T) {
	t.Parallel()
	in := make(chan struct{})
	n := newNode(t, testConfig(t))
	if err := n.Listen(); err != nil {
		t.Fatal(err)
	}
	public := n.servers.all[0]
	slow := newHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(in)
		<-r.Context().Done()
	}), n.budget(Public), nil, nil)
	public.serve, public.shutdown, public.close = slow.Serve, slow.Shutdown, func() { _ = slow.Close() }
	n.servers.start()
	failed := make(chan error, 1)
	go func() {
		_, _, err := n.call(Public, http.MethodGet, "/", "")
		failed <- err
	}()
	<-in
	n.servers.stop(10 * time.Millisecond)
	if err := ended(t, failed); err == nil {
		t.Error("the request was answered")
	}
}

func TestURL(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:8080": "http://localhost:8080", "[::]:8080": "http://localhost:8080",
		"127.0.0.1:80": "http://localhost:80",
		":8080":        "http://localhost:8080", "10.0.0.1:8080": "http://10.0.0.1:8080",
		"[fe80::1]:8080": "http://[fe80::1]:8080",
	} {
		if got := URL(addr, false); got != want {
			t.Errorf("the URL of %s is %s, want %s", addr, got, want)
		}
	}
}

// A node uses the node IDs that are chosen, each in its sequencer, and any in others.
func TestNodes(t *testing.T) {
	define := func(text string, nodes int64) cluster.Definition {
		l, err := firn.ParseLayout(text)
		if err != nil {
			t.Fatal(err)
		}
		d := cluster.Define(l)
		d.Nodes = nodes
		return d
	}
	const name = peer.DefaultSequencer
	any := func(*Config) {}
	chosen := func(c *Config) { c.Nodes = map[string]int64{name: 7, "orders": 9} }
	for i, tt := range []struct {
		set        func(*Config)
		name       string
		definition cluster.Definition
		want       *cluster.Range
	}{
		{any, name, define("twitter", 1024), nil},
		{any, "orders", define("twitter", 1024), nil},
		{chosen, name, define("twitter", 1024), &cluster.Range{From: 7, To: 7}},
		{chosen, "orders", define("twitter", 1024), &cluster.Range{From: 9, To: 9}},
		{chosen, "invoices", define("twitter", 1024), nil},
	} {
		c := testConfig(t)
		c.Layout = define("twitter", 1024).IDLayout()
		tt.set(&c)
		newNode(t, c)
		if got := c.nodes(tt.name, tt.definition); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%d: of %s, %v, it chooses from %v; want %v", i, tt.name, tt.definition, got, tt.want)
		}
		if err := c.memberOptions().ValidateFor(tt.name, tt.definition); err != nil {
			t.Error(err)
		}
	}
}
