package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store/memstore"
)

// newServeFlags are the flags of firn serve, as given.
func newServeFlags(t *testing.T, o *serveOptions, args ...string) *pflag.FlagSet {
	t.Helper()
	c := &cobra.Command{}
	o.add(c, c.Flags())
	if err := c.Flags().Parse(args); err != nil {
		t.Fatal(err)
	}
	return c.Flags()
}

// testSettings are those of firn serve with these flags.
func testSettings(t *testing.T, args ...string) settings {
	t.Helper()
	var o serveOptions
	flags := newServeFlags(t, &o, append([]string{"--http-addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "data")}, args...)...)
	s, err := o.settings(flags, sources{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// watched is a log that tells the addresses of the node that writes it.
type watched struct {
	all  bytes.Buffer
	addr chan []string
}

func (w *watched) Write(p []byte) (int, error) {
	if m := listening.FindSubmatch(p); m != nil {
		var all []string
		for _, addr := range m[1:5] {
			all = append(all, string(addr))
		}
		w.addr <- all
	}
	return w.all.Write(p)
}

// running starts a node, and returns its URL and what it will return.
func running(t *testing.T, ctx context.Context, n *node) (url string, done chan error) {
	t.Helper()
	url, _, done = runningAdmin(t, ctx, n)
	return url, done
}

// runningAdmin also returns the URL of administrators.
func runningAdmin(t *testing.T, ctx context.Context, n *node) (url, admin string, done chan error) {
	t.Helper()
	all, done := runningAt(t, ctx, n)
	return "http://" + all[0], "http://" + all[1], done
}

// runningAt returns the addresses: for everybody, administrators, gRPC and Redis.
func runningAt(t *testing.T, ctx context.Context, n *node) (addresses []string, done chan error) {
	t.Helper()
	log := &watched{addr: make(chan []string, 1)}
	n.log = slog.New(slog.NewTextHandler(log, nil))
	done = make(chan error, 1)
	go func() { done <- n.serve(ctx) }()
	t.Cleanup(func() { // by then it has returned
		if t.Failed() {
			t.Logf("the log:\n%s", &log.all)
		}
	})
	select {
	case addr := <-log.addr:
		return addr, done
	case err := <-done:
		t.Fatalf("serve: %v", err)
		return nil, nil
	}
}

func inMemory() (closingStore, error) { return memstore.NewService().Client("node"), nil }

// ended waits for what a node returns.
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

// Stopping is an error to nobody: clients that hammer get an ID from every call until they are asked
// to go elsewhere.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	n, err := newNode(testSettings(t), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	n.open = inMemory
	ctx, stop := context.WithCancel(t.Context())
	url, done := running(t, ctx, n)

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

// A store that takes long to open keeps nobody from seeing that the node is alive, nor from stopping it.
func TestStopWhileOpening(t *testing.T) {
	t.Parallel()
	n, err := newNode(testSettings(t, "--shutdown-timeout", "10ms"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	blocked := make(chan struct{})
	defer close(blocked)
	n.open = func() (closingStore, error) {
		<-blocked
		return nil, errors.New("too late")
	}
	ctx, stop := context.WithCancel(t.Context())
	_, url, done := runningAdmin(t, ctx, n)
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/api/v1/ids/5": 200, "/api/v1/sequencers": 503} {
		if status, body, err := request(http.MethodGet, url+path); err != nil || status != want {
			t.Errorf("%s = %d %s, %v; want %d", path, status, body, err, want)
		}
	}
	const named = "/api/v1/sequencers/orders"
	for _, path := range []string{"/api/v1/id", "/api/v1/ids", named + "/id", named + "/ids", named + "/attach", named + "/detach"} {
		if status, body, err := request(http.MethodPost, url+path); err != nil || status != 503 {
			t.Errorf("%s = %d %s, %v; want 503", path, status, body, err)
		}
	}
	if status, body, err := send(http.MethodPost, url+"/api/v1/sequencers", `{"name":"orders"}`); err != nil || status != 503 {
		t.Errorf("creating = %d %s, %v; want 503", status, body, err)
	}
	if status, body, err := request(http.MethodDelete, url+named); err != nil || status != 503 {
		t.Errorf("destroying = %d %s, %v; want 503", status, body, err)
	}
	stop()
	if err := ended(t, done); err != nil {
		t.Errorf("serve: %v", err)
	}
}

// A store that was opened too late is closed, and one that can't be opened is an error.
func TestOpenStore(t *testing.T) {
	t.Parallel()
	n, err := newNode(testSettings(t), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	late := &closes{}
	n.open = func() (closingStore, error) {
		stop()
		<-ctx.Done()
		return late, nil
	}
	for range 20 { // which of the two it sees first is chance
		late.closed = 0
		s, err := n.openStore(ctx)
		if err != nil || s == nil && late.closed != 1 || s != nil && late.closed != 0 {
			t.Errorf("openStore = %v, %v, and it was closed %d times", s, err, late.closed)
		}
	}
	broken := errors.New("broken")
	n.open = func() (closingStore, error) { return nil, broken }
	if s, err := n.openStore(t.Context()); s != nil || !errors.Is(err, broken) {
		t.Errorf("openStore = %v, %v", s, err)
	}
}

type closes struct {
	closingStore
	closed int
}

func (c *closes) Close() error {
	c.closed++
	return nil
}

// Requests that never finish are cut off in the end.
func TestShutdownTimeout(t *testing.T) {
	t.Parallel()
	in := make(chan struct{})
	n, err := newNode(testSettings(t), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	fronts, err := n.listen()
	if err != nil {
		t.Fatal(err)
	}
	public := fronts.all[0]
	slow := newWeb(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(in)
		<-r.Context().Done()
	}), nil, nil)
	public.serve, public.shutdown, public.close = slow.Serve, slow.Shutdown, func() { _ = slow.Close() }
	fronts.start()
	failed := make(chan error, 1)
	go func() {
		_, _, err := request(http.MethodGet, urlOf(public.listener.Addr().String(), false))
		failed <- err
	}()
	<-in
	fronts.stop(n, 10*time.Millisecond)
	if err := ended(t, failed); err == nil {
		t.Error("the request was answered")
	}
}

func TestURL(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:8080": "http://localhost:8080", "[::]:8080": "http://localhost:8080", "127.0.0.1:80": "http://localhost:80",
		":8080": "http://localhost:8080", "10.0.0.1:8080": "http://10.0.0.1:8080", "[fe80::1]:8080": "http://[fe80::1]:8080",
	} {
		if got := urlOf(addr, false); got != want {
			t.Errorf("the URL of %s is %s, want %s", addr, got, want)
		}
	}
}

// A node wishes for node IDs of its datacenter in every sequencer that has it, and for its node in the default one.
func TestWish(t *testing.T) {
	define := func(text string, nodes int64) cluster.Definition {
		l, err := firn.ParseLayout(text)
		if err != nil {
			t.Fatal(err)
		}
		d := cluster.Define(l)
		d.Nodes = nodes
		return d
	}
	const name = member.DefaultSequencer
	for _, tt := range []struct {
		flags, name string
		definition  cluster.Definition
		want        *cluster.Range
	}{
		{"", name, define("twitter", 1024), nil},
		{"", "orders", define("twitter", 1024), nil},
		{"--node 7", name, define("twitter", 1024), &cluster.Range{From: 7, To: 7}},
		{"--node 7", "orders", define("twitter", 1024), nil},
		{"--datacenter 3", name, define("twitter", 1024), &cluster.Range{From: 96, To: 127}},
		{"--datacenter 3", "orders", define("twitter", 1024), &cluster.Range{From: 96, To: 127}},
		{"--datacenter 3", "orders", define("twitter", 40), &cluster.Range{From: 6, To: 7}},
		{"--datacenter 3", "orders", define("41/2/8/12", 4), &cluster.Range{From: 3, To: 3}},
		{"--datacenter 3", "orders", define("41/1/9/12", 1024), nil},
		{"--datacenter 3", "orders", define("41/10/12", 1024), nil},
		{"--datacenter 0", "orders", define("41/1/9/12", 1024), &cluster.Range{From: 0, To: 511}},
	} {
		n, err := newNode(testSettings(t, append([]string{"--layout", "twitter"}, strings.Fields(tt.flags)...)...), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.wish(tt.name, tt.definition); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: of %s, %v, it wishes for %v; want %v", tt.flags, tt.name, tt.definition, got, tt.want)
		}
		if err := n.memberOptions().ValidateFor(tt.name, tt.definition); err != nil {
			t.Error(err)
		}
	}
}
