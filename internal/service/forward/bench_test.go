package forward_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/forward"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/store/memstore"
)

// Benchmark compares an ID over HTTP from a node that serves its sequencer with one from a node that asks that one.
func Benchmark(b *testing.B) {
	shared := memstore.NewService()
	urls, members := map[string]string{}, map[string]*peer.Member{}
	for _, name := range []string{"direct", "forwarded"} {
		s := httptest.NewUnstartedServer(nil)
		urls[name] = "http://" + s.Listener.Addr().String()
		client := shared.Client(name)
		defer client.Close()
		m, err := peer.Join(b.Context(), client, peer.Options{Owner: name, Vitals: func() peer.Vitals {
			return peer.Vitals{Addresses: map[string]string{"http": urls[name]}}
		}})
		if err != nil {
			b.Fatal(err)
		}
		defer m.Leave()
		service := calls.New(m, calls.Options{Forwarder: forward.New(m.Cluster, nil, untraced)})
		s.Config.Handler = httpapi.WithCluster(service, httpapi.New(service, new(auth.Policy)))
		s.Start()
		defer s.Close()
		members[name] = m
	}
	d := cluster.Define(firn.Default)
	d.Allocation = cluster.Allocation{Kind: cluster.AllocateCount, Count: 1}
	if _, err := members["direct"].Create(b.Context(), "orders", d); err != nil {
		b.Fatal(err)
	}
	if _, err := members["direct"].Attach(b.Context(), "orders"); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"direct", "forwarded"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				answer, err := http.Post(urls[name]+"/api/v1/sequencers/orders/id", "", nil)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusOK ||
					(answer.Header.Get(httpapi.MadeBy) != "") != (name == "forwarded") {
					b.Fatal(answer.Status, answer.Header)
				}
			}
		})
	}
}
