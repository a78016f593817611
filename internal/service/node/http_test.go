package node

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

// A connection with a call in progress does not make room for another; an idle one does.
func TestConnectionsWithCallsStay(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limited := conns.NewLimiter(1, slog.New(slog.DiscardHandler)).Limit(inner)
	counter := limited.(conns.Counter)
	began, end := make(chan struct{}), make(chan struct{})
	s := newHTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-end
	}), httpapi.NewBudget(calls.New(nil, calls.Options{}), 1), nil, log.New(io.Discard, "", 0))
	go func() { _ = s.Serve(limited) }()
	defer s.Close()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	wait := func(what string, is func() bool) {
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d open, %d refused, %d evicted", what, counter.Open(), counter.Refused(),
					counter.Evicted())
			}
		}
	}
	first := dial()
	fmt.Fprint(first, "GET / HTTP/1.1\r\nHost: firn\r\n\r\n")
	<-began
	dial()
	wait("a second connection", func() bool { return counter.Refused() == 1 })
	if counter.Evicted() != 0 {
		t.Error("a connection with a call was closed")
	}
	end <- struct{}{}
	if _, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil {
		t.Fatal(err)
	}
	wait("once it is idle", func() bool { // it is soon
		dial()
		return counter.Evicted() > 0
	})
}

// The way to the dashboard is right below a prefix that a proxy has taken off, too.
func TestTheWayToTheDashboard(t *testing.T) {
	t.Parallel()
	n := newNode(t, testConfig(t))
	running(t, t.Context(), n)
	becomesReady(t, n)
	for path, want := range map[string]string{"/": "ui/", "/ui": "ui/", "/docs": "docs/"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.Addr(Admin)+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if have := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || have != want {
			t.Errorf("GET %s = %d, to %q; want %q", path, answer.StatusCode, have, want)
		}
	}
}
