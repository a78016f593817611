package browser_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/ui"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// living is a cluster of real members over a store in memory. The first of them is served to administrators.
type living struct {
	t       *testing.T
	store   *memstore.Service
	members []*being
	service *calls.Service
	handler http.Handler
	url     string
	served  *httptest.Server
}

// being is a member with its way to the store.
type being struct {
	*peer.Member
	client *memstore.Client
}

// live starts a cluster with a member on each host, and attaches all of them to the default sequencer.
func live(t *testing.T, e *auth.Policy, hosts ...string) *living {
	t.Helper()
	l := &living{t: t, store: memstore.NewService()}
	for _, host := range hosts {
		l.join(host)
	}
	l.attach(0, peer.DefaultSequencer, cluster.Define(firn.Default))
	l.serve(e)
	for i := range l.members {
		l.attach(i, peer.DefaultSequencer, cluster.Define(firn.Default))
	}
	return l
}

// serve serves the first member to administrators.
func (l *living) serve(e *auth.Policy) {
	l.service = calls.New(l.members[0].Member, calls.Options{})
	l.handler = administer(l.service, e, ui.Options{})
	l.served = httptest.NewServer(l.handler)
	l.url = l.served.URL
	l.t.Cleanup(func() {
		l.service.Drain()
		l.served.CloseClientConnections()
		l.served.Close()
	})
}

// administer serves what the admin listener of firn serve does.
func administer(s *calls.Service, e *auth.Policy, o ui.Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", httpapi.New(s, e))
	mux.Handle(ui.Root, ui.New(s, e, o))
	return mux
}

// serveAgain serves at an address that was given up.
func (l *living) serveAgain(address string) {
	l.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		l.t.Fatal(err)
	}
	again := httptest.NewUnstartedServer(l.handler)
	again.Listener.Close()
	again.Listener = listener
	again.Start()
	l.t.Cleanup(func() {
		l.service.Drain()
		again.CloseClientConnections()
		again.Close()
	})
}

// join adds a member on a host.
func (l *living) join(host string) *being {
	l.t.Helper()
	b := &being{client: l.store.Client(host)}
	var err error
	n := len(l.members)
	o := peer.Options{Owner: host, TTL: 5 * time.Second, Start: lowest, Vitals: func() peer.Vitals {
		return peer.Vitals{
			Version: "v1.4.0", Addresses: map[string]string{"admin": fmt.Sprintf("http://node-%d.example.org:9080", n)},
			Since: time.Now().Add(-26 * time.Hour),
			Ready: true, Given: 1 << 40, Rate: 1200 - 50*float64(n),
		}
	}}
	if b.Member, err = peer.Join(l.t.Context(), b.client, o); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		b.client.CutOff(false)
		b.Leave()
		b.client.Close()
	})
	l.members = append(l.members, b)
	return b
}

// attach has a member attach to a sequencer. It may have to stand in line.
func (l *living) attach(i int, name string, d cluster.Definition) *peer.Sequencer {
	l.t.Helper()
	q, err := l.members[i].EnsureSequencer(l.t.Context(), name, d)
	if err != nil {
		l.t.Fatal(err)
	}
	return q
}

// give has the first member give IDs, so often a second, until the test ends.
func (l *living) give(name string, count int, every time.Duration) {
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan struct{})
	l.t.Cleanup(func() { cancel(); <-ended })
	who, err := (&auth.Policy{Trusted: true}).Admit("")
	if err != nil {
		l.t.Fatal(err)
	}
	go func() {
		defer close(ended)
		for tick := time.NewTicker(every); ctx.Err() == nil; {
			_ = l.service.Many(ctx, who, "", name, count, func(*calls.Batch) error { return nil }) // it may be in line
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
}

// prepare has somebody begin to join who goes no further, and lives.
func (l *living) prepare(id string) {
	l.t.Helper()
	client := l.store.Client(id)
	l.t.Cleanup(func() { client.Close() })
	session, err := client.OpenSession(l.t.Context(), time.Minute)
	if err == nil {
		_, err = client.Commit(l.t.Context(),
			store.Txn{Then: []store.Op{store.PutEphemeral("peers/"+id, []byte(`{"owner": "host-new"}`), session)}})
	}
	var data []byte
	if err == nil {
		data, err = cluster.Encode(cluster.PrepareJoin{Joiner: id}, time.Now())
	}
	if err == nil {
		_, err = client.Append(l.t.Context(), id+"-prepares", data)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func nodes(n int64) cluster.Definition {
	d := cluster.Define(firn.Default)
	d.Nodes = n
	return d
}

// lowest has sequencers begin at their lowest node ID.
func lowest(nodes cluster.Range) int64 { return nodes.From }
