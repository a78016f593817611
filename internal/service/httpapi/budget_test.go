package httpapi_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
)

// page is a handler of an answer of so many bytes at once.
func page(size int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("ETag", `"page"`)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(make([]byte, size)) // if it fails the caller has gone away, or there is no memory
	})
}

func newBudget(t testing.TB, memory int64) *httpapi.Budget {
	t.Helper()
	return httpapi.NewBudget(calls.New(servertest.Join(t), calls.Options{MaxAnswers: memory}), 2)
}

func askFrom(h http.Handler, w http.ResponseWriter, method, from string) {
	r := httptest.NewRequest(method, "http://localhost/", nil)
	r.RemoteAddr = from
	h.ServeHTTP(w, r)
}

// Long answers that nobody reads hold memory. Where there is no more, a caller is told so instead; short answers, and
// those to HEAD, need none. Who reads nothing is cut off, and then there is memory again.
func TestLongAnswersHoldMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, 4<<20)
		long := b.Handler(page(100 << 10))
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				askFrom(long, &reader{ResponseWriter: httptest.NewRecorder()}, http.MethodGet,
					fmt.Sprintf("10.0.0.9:%d", i))
			})
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		askFrom(long, w, http.MethodGet, "10.0.0.9:100")
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"overloaded"`) ||
			w.Header().Get("ETag") != "" ||
			w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("without memory: %d %s, %v", w.Code, w.Body, w.Header())
		}
		for what, ask := range map[string]func(http.ResponseWriter){
			"a short one": func(w http.ResponseWriter) {
				askFrom(b.Handler(page(4<<10)), w, http.MethodGet, "10.0.0.9:100")
			},
			"HEAD":           func(w http.ResponseWriter) { askFrom(long, w, http.MethodHead, "10.0.0.9:100") },
			"another caller": func(w http.ResponseWriter) { askFrom(long, w, http.MethodGet, "10.0.0.1:1") },
		} {
			w := httptest.NewRecorder()
			if ask(w); w.Code != http.StatusAccepted {
				t.Errorf("%s: %d %s", what, w.Code, w.Body)
			}
		}
		began := time.Now()
		all.Wait()
		if took := time.Since(began); took > calls.TakeSlack {
			t.Errorf("they are cut off after %v", took)
		}
		w = httptest.NewRecorder()
		if askFrom(long, w, http.MethodGet, "10.0.0.9:100"); w.Code != http.StatusAccepted || w.Body.Len() != 100<<10 {
			t.Errorf("afterwards: %d, %d bytes", w.Code, w.Body.Len())
		}
	})
}

// buffering is a listener for whose connections the kernel buffers an answer of 100 KiB that is not read.
type buffering struct{ net.Listener }

func (l buffering) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(200 << 10) // Linux doubles it
	}
	return c, err
}

// listening serves a handler in front of which is a budget, on so many connections.
func listening(t *testing.T, b *httpapi.Budget, places int, h http.Handler) (address string, counter conns.Counter) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: b.Handler(h), ConnContext: b.ConnContext, ReadHeaderTimeout: time.Minute}
	limited := conns.NewLimiter(places, slog.New(slog.DiscardHandler)).Limit(buffering{inner})
	go func() { _ = s.Serve(limited) }()
	t.Cleanup(func() { s.Close() })
	return inner.Addr().String(), limited.(conns.Counter)
}

// asks sends a request over a connection of its own, whose system takes little of an answer.
func asks(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: firn\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

func answered(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	_ = c.(*net.TCPConn).SetReadBuffer(1 << 20) // on failure this takes longer
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r
}

// An answer that the kernel has buffered, as its caller does not read, holds memory as well, until that is read.
func TestBufferedAnswersHoldMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what is not read")
	}
	b, written := newBudget(t, 400<<10), make(chan struct{}, 1)
	address, _ := listening(t, b, 10, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page(100<<10).ServeHTTP(w, r)
		written <- struct{}{}
	}))
	first := asks(t, address)
	<-written // all of it
	if r := answered(t, asks(t, address)); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("while the first is not read: %s", r.Status)
	}
	<-written
	if r := answered(t, first); r.StatusCode != http.StatusAccepted {
		t.Errorf("the first: %s", r.Status)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		r := answered(t, asks(t, address))
		if <-written; r.StatusCode == http.StatusAccepted {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("afterwards: %s", r.Status)
		}
	}
}

// Calls over HTTP/2 count until their streams end, and more are refused. There are many on one connection.
func TestCallsOverHTTP2(t *testing.T) {
	b := newBudget(t, 4<<20)
	came, end := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(b.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		<-end
	})))
	s.Config.ConnContext, s.EnableHTTP2 = b.ConnContext, true
	s.StartTLS()
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	ask := func() (int, error) {
		r, err := client.Get(s.URL)
		if err != nil {
			return 0, err
		}
		defer r.Body.Close()
		_, err = io.Copy(io.Discard, r.Body)
		return r.StatusCode, err
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if status, err := ask(); status != http.StatusOK {
				t.Errorf("%d, %v", status, err)
			}
		})
		<-came
	}
	if status, err := ask(); status != http.StatusServiceUnavailable {
		t.Errorf("the third: %d, %v", status, err)
	}
	end <- struct{}{}
	end <- struct{}{}
	all.Wait()
	go func() {
		for range came {
			end <- struct{}{}
		}
	}()
	defer close(came)
	for deadline := time.Now().Add(time.Minute); ; {
		status, err := ask()
		if status == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("afterwards: %d, %v", status, err)
		}
	}
}

// Files of pages that nobody reads take few places, and none of those for IDs.
func TestPagesHaveFewPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, &servertest.Issuer{}, nil, nil)
		load := func(w http.ResponseWriter, i int) {
			askPath(h, w, "/docs/swagger-ui.css", fmt.Sprintf("10.0.%d.9:1", i))
		}
		var all sync.WaitGroup
		for i := range 56 { // seven eighths of 64, as they come from nowhere
			all.Go(func() { load(&reader{ResponseWriter: httptest.NewRecorder()}, i) })
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		if load(w, 100); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"overloaded"`) {
			t.Errorf("one more: %d %.100s", w.Code, w.Body)
		}
		if w := call(h, http.MethodPost, "/api/v1/id"); w.Code != http.StatusOK {
			t.Errorf("an ID: %d %s", w.Code, w.Body)
		}
		began := time.Now()
		all.Wait()
		if took := time.Since(began); took > calls.TakeSlack {
			t.Errorf("they are cut off after %v", took)
		}
		w = httptest.NewRecorder()
		if load(w, 100); w.Code != http.StatusOK {
			t.Errorf("afterwards: %d %.100s", w.Code, w.Body)
		}
	})
}

func askPath(h http.Handler, w http.ResponseWriter, path, from string) {
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	r.RemoteAddr = from
	h.ServeHTTP(w, r)
}

// A connection whose caller does not read its answer makes room for another.
func TestWhoDoesNotReadMakesRoom(t *testing.T) {
	var calls atomic.Int64
	address, counter := listening(t, newBudget(t, 64<<20), 1,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 1 {
				page(4<<20).ServeHTTP(w, r)
				return
			}
			page(10).ServeHTTP(w, r)
		}))
	asks(t, address)
	for deadline := time.Now().Add(time.Minute); counter.Evicted() == 0; {
		r := answered(t, asks(t, address))
		if r.StatusCode == http.StatusAccepted && counter.Evicted() == 0 {
			t.Fatal("the first was cut off before")
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no room: %s", r.Status)
		}
	}
}
