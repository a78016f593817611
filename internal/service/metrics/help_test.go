package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// watched is a node and its metrics.
type watched struct {
	t       *testing.T
	client  *memstore.Client
	member  atomic.Pointer[peer.Member]
	service *calls.Service
	metrics *Metrics
	who     *auth.Caller
}

// definition returns a definition whose time has begun in a bubble.
func definition() cluster.Definition {
	l := firn.Default
	l.Epoch = time.Now().Add(-time.Hour)
	return cluster.Define(l)
}

// expiry is when a watched node's certificate expires.
var expiry = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// listeners are addresses with connections.
type listeners struct{}

func (listeners) Open() int64     { return 7 }
func (listeners) Refused() uint64 { return 3 }
func (listeners) Evicted() uint64 { return 5 }

// inBubble runs a test in a bubble with a node that is about to join.
func inBubble(t *testing.T, f func(t *testing.T, w *watched)) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{t: t, client: memstore.NewService().Client("a"), metrics: New(Build{"v1", "abc", "go1"})}
		defer w.client.Close()
		w.service = calls.New(servertest.Join(t),
			calls.Options{Meter: w.metrics, Default: &servertest.Issuer{Err: peer.ErrNotReady}})
		w.who, _ = (&auth.Policy{Trusted: true}).Admit("")
		f(t, w)
		if m := w.member.Load(); m != nil {
			m.Leave()
		}
	})
}

// database is a store that tells of transactions.
type database struct{ store.Store }

func (database) Traits() store.Traits {
	return store.Traits{OldestTransaction: func() (time.Duration, bool) { return 90 * time.Second, true }}
}

// watch adds the metrics of the node as it is now.
func (w *watched) watch() {
	w.metrics.Watch(Node{
		Service: w.service, Member: w.member.Load, Store: func() store.Store {
			return database{w.client}
		}, Window: 30 * time.Second,
		Listeners: map[string]conns.Counter{"public": listeners{}},
		Disks: func() map[string]space.Room {
			return map[string]space.Room{"data": {Free: 7 << 20, Share: 0.5, Inodes: 0.25}}
		},
		TLS: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &tls.Certificate{Leaf: &x509.Certificate{NotAfter: expiry}}, nil
		}},
	})
}

// join makes the node join and attach to the default sequencer and another one, and watches it.
func (w *watched) join() {
	w.t.Helper()
	m, err := peer.Join(w.t.Context(), w.client, peer.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.member.Store(m)
	_, err = m.EnsureSequencer(w.t.Context(), peer.DefaultSequencer, definition())
	if err == nil {
		_, err = m.EnsureSequencer(w.t.Context(), "orders", definition())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	q := servertest.ThreeMachines()
	q.State.Machines[0].Node, q.State.Machines[2].Node = "a", "c" // of the latter, what was known last
	w.service = calls.New(m, calls.Options{Meter: w.metrics, Quorum: q})
	w.watch()
}

// text returns the answer to a request for metrics.
func (w *watched) text() string { return scraped(w.t, w.metrics) }

// scraped returns the answer to a request for metrics.
func scraped(t *testing.T, m *Metrics) string {
	t.Helper()
	a := httptest.NewRecorder()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(a, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if a.Code != 200 || !strings.HasPrefix(a.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("the answer is %d %v %s", a.Code, a.Header(), a.Body)
	}
	return a.Body.String()
}

// has fails unless the metrics have these lines.
func (w *watched) has(lines ...string) {
	w.t.Helper()
	text := w.text()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			w.t.Errorf("there is no %s in\n%s", line, own(text))
		}
	}
}

// value returns the value of a metric.
func (w *watched) value(name string) float64 {
	w.t.Helper()
	for line := range strings.Lines(w.text()) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				w.t.Error(err)
			}
			return value
		}
	}
	w.t.Errorf("there is no %s", name)
	return 0
}

// lacks fails if the metrics contain a text.
func (w *watched) lacks(parts ...string) {
	w.t.Helper()
	text := own(w.text())
	for _, part := range parts {
		if strings.Contains(text, part) {
			w.t.Errorf("there is %s in\n%s", part, text)
		}
	}
}

// own returns firn's lines.
func own(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "firn_") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// families returns the names of all metrics, with their types.
func families(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	found, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range found {
		all[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	return all
}

// full returns the metrics of a node that has every series.
func full(t *testing.T, f func(w *watched)) {
	inBubble(t, func(t *testing.T, w *watched) {
		w.join()
		other, err := peer.Join(t.Context(), w.client, peer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Leave()
		time.Sleep(30 * time.Second) // until the clocks are judged
		synctest.Wait()              // for the renewal that is due then, too
		if _, _, err := w.service.Next(t.Context(), w.who, "orders"); err != nil {
			t.Error(err)
		}
		w.metrics.Call("http", "POST /api/v1/id").Done(codes.OK, 1, time.Millisecond)
		f(w)
	})
}
