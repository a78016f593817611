package forward_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/forward"
	"github.com/firn-id/firn/internal/service/httpapi"
)

const own = "cluster-1"

func untraced(t http.RoundTripper) http.RoundTripper { return t }

func asker(t *testing.T, config *tls.Config) *forward.Client {
	c := forward.New(func() string { return own }, config, untraced)
	t.Cleanup(c.Close)
	return c
}

// answering is a node that answers in one way, and keeps the last request.
func answering(t *testing.T, start func(http.Handler) *httptest.Server, answer http.HandlerFunc) (at string,
	last *http.Request,
) {
	last = new(http.Request)
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = *r
		w.Header().Set(clusterid.Header, own)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, last
}

func ids(w http.ResponseWriter, all ...firn.ID) {
	w.Header().Set("Content-Type", packed.Type)
	_, _ = w.Write(packed.Append(nil, all...))
}

// The other node gets the caller's token, the sequencer, the count and the ID to exceed, and learns that the call was
// forwarded.
func TestFill(t *testing.T) {
	at, last := answering(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) { ids(w, 7, 8, 9) })
	got := make([]firn.ID, 3)
	if err := asker(t, nil).Fill(t.Context(), at, "secret", "orders", 5, got); err != nil {
		t.Fatal(err)
	}
	if got[0] != 7 || got[2] != 9 {
		t.Errorf("%v", got)
	}
	if last.Method != http.MethodPost || last.URL.String() != "/api/v1/sequencers/orders/ids?count=3" ||
		last.Header.Get("Authorization") != "Bearer secret" || last.Header.Get(httpapi.Forwarded) == "" ||
		last.Header.Get("Accept") != packed.Type || last.Header.Get(httpapi.After) != "5" {
		t.Errorf("%s %v %v", last.Method, last.URL, last.Header)
	}
}

// Nothing is taken for IDs that the other node has not made for this call.
func TestNoIDs(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"fewer": {func(w http.ResponseWriter, _ *http.Request) { ids(w, 7) }, "8 bytes; want 16 for 2 IDs"},
		"more":  {func(w http.ResponseWriter, _ *http.Request) { ids(w, 7, 8, 9) }, "more than 16 bytes"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "16")
			ids(w, 7)
		}, "unexpected EOF"},
		"negative": {func(w http.ResponseWriter, _ *http.Request) { ids(w, 7, -8) }, "ID 2 of 2 is -8"},
		"dies":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("1234567890123456"))
		}, "application/json"},
		"another": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(clusterid.Header, "cluster-2")
			ids(w, 7, 8)
		}, `for the cluster "cluster-2"; this one is "cluster-1"`},
		"nobody": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Del(clusterid.Header)
			ids(w, 7, 8)
		}, `for the cluster ""; this one is "cluster-1"`},
		"moved": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, "307"},
		"broken": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("x", 1<<20), http.StatusBadGateway)
		}, "502"},
	} {
		at, _ := answering(t, httptest.NewServer, c.answer)
		err := asker(t, nil).Fill(t.Context(), at, "", "orders", 0, make([]firn.ID, 2))
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	unknown := forward.New(func() string { return "" }, nil, untraced)
	if err := unknown.Fill(t.Context(), "http://127.0.0.1:1", "", "orders", 0, make([]firn.ID, 2)); err == nil ||
		!strings.Contains(err.Error(), "not known") {
		t.Errorf("a cluster that is not known: %v", err)
	}
}

// What the other node says of the caller is kept.
func TestRefusal(t *testing.T) {
	at, _ := answering(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error":{"code":"rate_limited","message":"too many"}}`))
	})
	err := asker(t, nil).Fill(t.Context(), at, "", "orders", 0, make([]firn.ID, 2))
	var refused *calls.ElsewhereError
	if !errors.As(err, &refused) || refused.Code != codes.RateLimited || refused.Message != "too many" ||
		refused.Retry != 2*time.Second {
		t.Errorf("%v", err)
	}
}

// A connection is kept, and one that has ended meanwhile is no error. The call ends with its caller's.
func TestConnections(t *testing.T) {
	ends := false
	at, last := answering(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) {
		if ends {
			w.Header().Set("Connection", "close")
		}
		ids(w, 7)
	})
	c, from := asker(t, nil), ""
	for i := range 4 {
		ends = i == 2
		if err := c.Fill(t.Context(), at, "", "orders", 0, make([]firn.ID, 1)); err != nil {
			t.Fatal(err)
		}
		if same := from == "" || from == last.RemoteAddr; same != (i != 3) {
			t.Errorf("call %d came from %s after %s", i, last.RemoteAddr, from)
		}
		from = last.RemoteAddr
	}
	held := make(chan struct{})
	waits, _ := answering(t, httptest.NewServer, func(_ http.ResponseWriter, r *http.Request) { <-held })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.Fill(ctx, waits, "", "orders", 0, make([]firn.ID, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	close(held)
}

// Nodes with one certificate, or one authority, trust each other; nobody else is told the token.
func TestTLS(t *testing.T) {
	at, last := answering(t, httptest.NewTLSServer, func(w http.ResponseWriter, _ *http.Request) { ids(w, 7) })
	err := asker(t, nil).Fill(t.Context(), at, "secret", "orders", 0, make([]firn.ID, 1))
	var unknown *tls.CertificateVerificationError
	if !errors.As(err, &unknown) || last.Method != "" {
		t.Errorf("a stranger: %v, which got %v", err, last.Header)
	}
	like := httptest.NewTLSServer(nil) // has the same certificate
	defer like.Close()
	mine := like.TLS.Certificates[0]
	same := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &mine, nil }}
	if err := asker(t, same).Fill(t.Context(), at, "secret", "orders", 0, make([]firn.ID, 1)); err != nil {
		t.Error(err)
	}
}

// A caller's token goes to the scheme, host and port of an address only, and from a node with TLS to those with TLS
// only.
func TestAddresses(t *testing.T) {
	at, last := answering(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) { ids(w, 7) })
	host := strings.TrimPrefix(at, "http://")
	for _, wrong := range []string{
		"", host, "unix:/run/firn.sock", "ftp://" + host, "http://", at + "/admin", at + "?x=", at + "/#",
		"http://user:word@" + host, "http://%zz",
	} {
		if err := asker(t, nil).Fill(t.Context(), wrong, "secret", "orders", 0, make([]firn.ID, 1)); err == nil ||
			last.Method != "" {
			t.Errorf("%q: %v, and it was asked by %s %v", wrong, err, last.Method, last.URL)
		}
	}
	err := asker(t, new(tls.Config)).Fill(t.Context(), at, "secret", "orders", 0, make([]firn.ID, 1))
	if err == nil || !strings.Contains(err.Error(), "without TLS") || last.Method != "" {
		t.Errorf("without TLS: %v, and it was asked by %q", err, last.Method)
	}
	if err := asker(t, nil).Fill(t.Context(), at, "secret", "..", 0, make([]firn.ID, 1)); err != nil ||
		last.URL.Path != "/api/v1/sequencers/../ids" {
		t.Errorf("asked for %v, %v; want the sequencer that was named, and no other", last.URL, err)
	}
}
