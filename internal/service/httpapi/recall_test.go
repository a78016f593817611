package httpapi_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/store/memstore"
)

// While the store does not answer, the log, its values and the last hour come from what the node remembers, and say so.
func TestTheLogInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := memstore.NewService().Client("a")
		m, err := peer.Join(t.Context(), client, peer.Options{Owner: "a", TTL: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		defer m.Leave()
		layout := firn.Default
		layout.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		if _, err := m.EnsureSequencer(t.Context(), peer.DefaultSequencer, cluster.Define(layout)); err != nil {
			t.Fatal(err)
		}
		h := httpapi.New(calls.New(m, calls.Options{}), &auth.Policy{Trusted: true})
		paths := []string{"/api/v1/cluster/log", "/api/v1/cluster/value?at=" +
			strconv.FormatInt(m.Value().Position(), 10), "/api/v1/cluster/history", "/api/v1/cluster/value"}
		before := map[string]string{}
		for _, path := range paths {
			w := call(h, "GET", path)
			if before[path] = w.Body.String(); w.Code != 200 || w.Header().Get(httpapi.LogAsOf) != "" {
				t.Fatalf("GET %s = %d %v %s", path, w.Code, w.Header(), w.Body)
			}
		}
		cut := time.Now()
		client.CutOff(true)
		time.Sleep(4 * time.Minute) // its own pulse is overdue
		for _, path := range paths {
			asked := time.Now()
			w := call(h, "GET", path)
			if w.Code != 200 || w.Body.String() != before[path] || time.Since(asked) > 3*time.Second {
				t.Errorf("in an outage, after %v: GET %s = %d %s, want %s", time.Since(asked), path, w.Code,
					w.Body, before[path])
			}
			asOf, err := time.Parse(time.RFC3339Nano, w.Header().Get(httpapi.LogAsOf))
			if !strings.HasSuffix(path, "history") &&
				(err != nil || asOf.After(cut) || asOf.Before(cut.Add(-time.Minute))) {
				t.Errorf("GET %s is as of %v, %v, want before %v", path, asOf, err, cut)
			}
		}
		client.CutOff(false)
		if w := call(h, "GET", paths[0]); w.Header().Get(httpapi.LogAsOf) != "" || w.Code != 200 {
			t.Errorf("after the outage: %d %v", w.Code, w.Header())
		}
	})
}
