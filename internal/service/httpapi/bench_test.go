package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/metrics"
	"github.com/firn-id/firn/internal/test/servertest"
)

// unheard is a ResponseWriter that keeps nothing.
type unheard struct{ header http.Header }

func (u *unheard) Header() http.Header       { return u.header }
func (*unheard) Write(b []byte) (int, error) { return len(b), nil }
func (*unheard) WriteHeader(int)             {}

// ready has an ID at once, as a sequencer does.
type ready struct{ *servertest.Issuer }

func (ready) Next(context.Context) (firn.ID, error) { return 1 << 60, nil }

// What a call for one ID costs but for net/http, its headers and the making of the ID.
func BenchmarkCall(b *testing.B) {
	s := calls.New(servertest.Join(b), calls.Options{
		Default: ready{new(servertest.Issuer)}, Meter: metrics.New(metrics.Build{}),
	})
	h := httpapi.NewBudget(s, 100).Handler(httpapi.WithCluster(s, httpapi.New(s, new(auth.Policy))))
	r, err := http.NewRequest(http.MethodPost, "http://localhost/api/v1/id", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	w := &unheard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
