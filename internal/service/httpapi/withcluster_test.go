package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
)

// Every answer names the cluster, in every form, also errors and health checks; and none does while nobody knows it.
func TestEveryAnswerNamesTheCluster(t *testing.T) {
	for of, m := range map[string]*peer.Member{
		"":                 servertest.Waiting(t, "no answer"),
		servertest.Cluster: servertest.Join(t),
	} {
		s := calls.New(m, calls.Options{Default: new(servertest.Issuer)})
		h := httpapi.WithCluster(s, httpapi.New(s, new(auth.Policy)))
		for _, c := range []struct {
			method, path, accept string
			status               int
		}{
			{http.MethodPost, "/api/v1/id", "", http.StatusOK},
			{http.MethodPost, "/api/v1/ids?count=3", packed.Type, http.StatusOK},
			{http.MethodPost, "/api/v1/ids?count=0", "", http.StatusBadRequest},
			{http.MethodPost, "/api/v1/sequencers/orders/id", "", http.StatusNotFound},
			{http.MethodGet, "/api/v1/id", "", http.StatusMethodNotAllowed},
			{http.MethodGet, "/api/v1/cluster", "", http.StatusForbidden},
			{http.MethodGet, "/livez", "", http.StatusOK},
			{http.MethodGet, "/readyz", "", http.StatusOK},
			{http.MethodGet, "/nothing", "", http.StatusNotFound},
			{http.MethodGet, "/openapi.json", "", http.StatusOK},
			{http.MethodOptions, "/api/v1/id", "", http.StatusMethodNotAllowed},
		} {
			r, w := httptest.NewRequest(c.method, c.path, http.NoBody), httptest.NewRecorder()
			r.Header.Set("Accept", c.accept)
			h.ServeHTTP(w, r)
			var want []string
			if of == "" && c.status == http.StatusNotFound && strings.Contains(c.path, "orders") {
				c.status = http.StatusServiceUnavailable // nobody knows which sequencers there are
			}
			if of != "" {
				want = []string{of}
			}
			if got := w.Header().Values(clusterid.Header); w.Code != c.status || !slices.Equal(got, want) {
				t.Errorf("%s %s = %d, of cluster %q; want %d, %q", c.method, c.path, w.Code, got, c.status, want)
			}
		}
	}
}
