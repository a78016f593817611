package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
)

func TestNodes(t *testing.T) {
	for _, c := range []struct{ nodes, want string }{
		{
			"http://a:8080 https://B:8443/ http://[::1]:80 https://c:443",
			"http://a:8080 https://b:8443 http://[::1] https://c",
		},
		{"unix:/run/firn.sock http://a unix:///run/b/../c", "unix:/run/firn.sock http://a unix:/run/c"},
		{"unix:/run/firn.sock unix:/run//firn.sock", "node 2 is the same as node 1: unix:/run/firn.sock"},
		{"unix:firn.sock", "node 1: \"unix:firn.sock\" is not the address of a Unix socket"},
		{"unix:/" + strings.Repeat("a", 107), "has 108 bytes"},
		{"", "no nodes; want"},
		{"a:8080", "node 1: \"a:8080\" begins with neither http://"},
		{"ftp://a", "neither http:// nor https:// nor unix:"},
		{"http://a http://:8080", "node 2: \"http://:8080\" has no host"},
		{"http://a/ids", "more than a host and a port"},
		{"http://a?x=1", "more than a host and a port"},
		{"http://a http://b http://A:80/", "node 3 is the same as node 1: http://a"},
		{"http://me:secret@a", "has a user"},
		{"http://me:secret@a:b", "not a URL"},
	} {
		got, err := parseNodes(strings.Fields(c.nodes))
		switch {
		case err == nil && strings.Join(got, " ") != c.want:
			t.Errorf("%s: %v, want %s", c.nodes, got, c.want)
		case err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: %v", c.nodes, err)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	for want, options := range map[string][]Option{
		"a count of 0":      {WithPrefetch(0, time.Second)},
		"a count of 100001": {WithPrefetch(100_001, time.Second)},
		"a maxAge of 0s":    {WithPrefetch(1, 0)},
		"WithTLS":           {WithTLS(&tls.Config{}), WithTransport(http.DefaultTransport)},
	} {
		if _, err := New([]string{"http://a"}, options...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestFill(t *testing.T) {
	synctest.Test(t, testFill) // however long it takes, no time passes
}

func testFill(t *testing.T) {
	f := newFleet(map[string]behaviour{"a": gives(0), "b": gives(0)})
	c := f.of(t, "a b")
	ids := make([]firn.ID, 200_001)
	if err := c.Sequencer("orders").Fill(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	slices.Sort(f.paths)
	path := "/api/v1/sequencers/orders/id"
	if want := []string{path, path + "s?count=100000", path + "s?count=100000"}; !slices.Equal(f.paths, want) {
		t.Error(f.paths)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 200_001 {
		t.Error("the IDs are not in order, or not all there")
	}
	if err := c.Fill(t.Context(), nil); err != nil || len(f.paths) != 3 {
		t.Errorf("%v, %d requests", err, len(f.paths))
	}
	if orders := c.Sequencer("orders"); orders != c.Sequencer("orders") || c.Sequencer("") != c.standard {
		t.Error("one name has two sequencers")
	}
}

// The numbers of a counter are IDs as any others.
func TestCounter(t *testing.T) {
	for what, options := range map[string][]Option{"": nil, "prefetched": {WithPrefetch(3, time.Minute)}} {
		f := newFleet(map[string]behaviour{"a": gives(0)})
		f.last = 0
		s := f.of(t, "a", options...).Sequencer("invoices")
		if id, err := s.Next(t.Context()); id != 1 || err != nil {
			t.Errorf("%s: %d, %v; want 1", what, id, err)
		}
		ids := make([]firn.ID, 2)
		if err := s.Fill(t.Context(), ids); err != nil || !slices.Equal(ids, []firn.ID{2, 3}) {
			t.Errorf("%s: %v, %v; want 2 and 3", what, ids, err)
		}
		if texts, err := s.Texts(t.Context(), "decimal", 1); err != nil || !slices.Equal(texts, []string{"4"}) {
			t.Errorf("%s: %q, %v; want 4", what, texts, err)
		}
	}
}

// When a later one of several requests fails the slice is as it was.
func TestNothingIsHalfDone(t *testing.T) {
	synctest.Test(t, testNothingIsHalfDone)
}

func testNothingIsHalfDone(t *testing.T) {
	f := newFleet(map[string]behaviour{"a": func(f *fleet, r *http.Request, n int) (*http.Response, error) {
		if n < maxCount {
			return answer(403, `{}`), nil
		}
		return gives(0)(f, r, n)
	}})
	ids := make([]firn.ID, 100_002)
	if err := f.of(t, "a").Fill(t.Context(), ids); !isFinal(err) {
		t.Fatal(err)
	}
	for i, id := range ids {
		if id != 0 {
			t.Fatalf("ids[%d] is %d", i, id)
		}
	}
}

// Close waits for calls, ends everything else, and leaves nothing behind: synctest fails if there is a goroutine.
func TestClose(t *testing.T) {
	for _, options := range [][]Option{nil, {WithPrefetch(10, time.Minute)}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(map[string]behaviour{"a": gives(500 * time.Millisecond), "b": hangs})
			c := f.of(t, "a b", options...)
			began := time.Now()
			var callers sync.WaitGroup
			for range 5 {
				callers.Go(func() { mustNext(t, c) })
			}
			synctest.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < 500*time.Millisecond || took > 500*time.Millisecond+2*firstPatience {
				t.Errorf("Close returned after %v", took)
			}
			callers.Wait()
			if _, err := c.Next(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("%v after Close", err)
			}
			if err := c.Sequencer("orders").Fill(t.Context(), make([]firn.ID, 2)); !errors.Is(err, ErrClosed) {
				t.Errorf("%v after Close", err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("the second time: %v", err)
			}
		})
	}
}

// serves starts a real HTTP server with TLS that wants a token.
func serves(t *testing.T, f *fleet, token string) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, `{"error":{"code":"unauthenticated","message":"who?"}}`, http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodPost || r.ContentLength != 0 || r.Header["Idempotency-Key"] != nil {
			t.Errorf("%+v", r)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.last++
		fmt.Fprintf(w, `{"id":1,"id_str":"%d"}`, f.last)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestTLSAndTokens(t *testing.T) {
	s := serves(t, newFleet(nil), "s3cret")
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	trust := WithTLS(&tls.Config{RootCAs: roots})
	for token, status := range map[string]int{"s3cret": 0, "": 401, "s3cret-too": 401, "s3cret\r\nbroken": -1} {
		told, err := firstAttempt(t, s.URL, trust, WithToken(func() string { return token }))
		var e *Error
		switch {
		case status < 0 && err != nil:
		case status == 0 && err == nil:
		case errors.As(err, &e) && e.Status == status && e.Code == "unauthenticated":
		default:
			t.Errorf("%q: %v", token, err)
		}
		if strings.Contains(told, "s3cret") {
			t.Errorf("the token is told: %s", told)
		}
	}
	var unknown x509.UnknownAuthorityError
	if _, err := firstAttempt(t, s.URL); !errors.As(err, &unknown) {
		t.Errorf("a server that is not trusted: %v", err)
	}
}

// firstAttempt takes an ID, and returns how the first request for it ended and all that was told about it.
func firstAttempt(t *testing.T, url string, options ...Option) (told string, first error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var attempts []error
	var text strings.Builder
	c, err := New([]string{url}, append(options, WithHooks(Hooks{
		Attempt: func(a Attempt) {
			mu.Lock()
			defer mu.Unlock()
			attempts = append(attempts, a.Err)
			fmt.Fprintf(&text, "%+v %v\n", a, a.Err)
			if a.Err != nil {
				cancel()
			}
		},
		Call: func(c Call) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&text, "%+v %v\n", c, c.Err)
		},
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Next(ctx)
	_ = c.Close()
	return fmt.Sprintln(text.String(), err), attempts[0]
}

// 64 callers at once use 64 connections, for as long as they go on.
func TestConnectionsAreKept(t *testing.T) {
	var opened atomic.Int64
	var last atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"id_str":"%d"}`, last.Add(1))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c, err := New([]string{s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for range 30 {
				if _, err := c.Next(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	// On a busy machine a call has two requests out, and the slower one lingers.
	if n := opened.Load(); n > last.Load()/4 {
		t.Errorf("%d connections for 64 callers and %d requests", n, last.Load())
	}
	t.Logf("%d connections, %d requests for 1920 calls", opened.Load(), last.Load())
}

// Nodes may be Unix sockets, each of its own, beside others; the client's proxy and the transport of others do not
// reach them.
func TestUnixSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "firn") // whose path is short enough
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	var nodes []string
	for i, name := range []string{"a", "b"} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Host != "localhost" || r.Method != http.MethodPost {
				t.Errorf("%s to %s", r.Method, r.Host)
			}
			w.Header().Set("Content-Type", packed.Type)
			_, _ = w.Write(packed.Append(nil, firn.ID(i+1)))
		})}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
		nodes = append(nodes, "unix:"+l.Addr().String())
	}
	c, err := New(nodes)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	seen := map[firn.ID]bool{}
	for range 10 {
		id, err := c.Next(within(t, 10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		seen[id] = true
	}
	if !seen[1] || !seen[2] {
		t.Errorf("IDs come from %v; want both nodes", seen)
	}
	if _, err := New(nodes, WithTransport(http.DefaultTransport)); err == nil ||
		!strings.Contains(err.Error(), nodes[0]+" is a Unix socket, which WithTransport does not reach") {
		t.Error(err)
	}
	gone, err := New([]string{nodes[0] + "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	if _, err := gone.Next(within(t, 50*time.Millisecond)); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), nodes[0]+"x") {
		t.Error(err)
	}
}
