package client

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

// of is a node that says of which cluster it is.
func of(cluster string, node behaviour) behaviour {
	return func(f *fleet, r *http.Request, n int) (*http.Response, error) {
		answer, err := node(f, r, n)
		if err == nil && cluster != "" {
			answer.Header.Set("Firn-Cluster", cluster)
		}
		return answer, err
	}
}

// No ID comes from a node of another cluster, and the call that it answers fails, with and without prefetching, also
// when the stranger only refuses.
func TestStrangersAreRefused(t *testing.T) {
	for name, options := range map[string][]Option{"one by one": nil, "prefetched": {WithPrefetch(10, time.Minute)}} {
		for what, stranger := range map[string]behaviour{
			"gives": gives(0), "refuses": refuses(403, "forbidden"),
			"is not ready": refuses(503, "not_ready"),
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(map[string]behaviour{"a": of("x", gives(0)), "b": fails(errReset)})
					c := f.of(t, "a b", options...)
					mustNext(t, c)
					f.set("a", fails(errReset))
					f.set("b", of("y", stranger))
					ids := make([]firn.ID, 11) // more than are prefetched
					err := c.Fill(within(t, 10*time.Second), ids)
					want := &MixedError{Node: "http://b", Cluster: "y", Other: "http://a", OtherCluster: "x"}
					if got, _ := errors.AsType[*MixedError](err); !reflect.DeepEqual(got, want) || ids[0] != 0 {
						t.Errorf("Fill: %v, %v; want %v", ids, err, want)
					}
					for _, part := range []string{"http://a", "http://b", "cluster x", "cluster y"} {
						if err == nil || !strings.Contains(err.Error(), part) {
							t.Errorf("%v does not name %s", err, part)
						}
					}
				})
			})
		}
	}
}

// A cluster that was founded again is followed, and what is left of the former one is refused.
func TestAClusterThatWasFoundedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": of("x", gives(0)), "b": of("", gives(0))})
		c := f.of(t, "a b")
		for range 4 { // b says nothing
			mustNext(t, c)
		}
		f.set("a", of("y", gives(0)))
		for range 4 {
			mustNext(t, c)
		}
		f.set("a", of("x", gives(0)))
		f.set("b", fails(errReset))
		if _, err := c.Next(within(t, time.Second)); !isMixed(err) ||
			!strings.Contains(err.Error(), "behind one address") {
			t.Errorf("Next: %v; want a MixedError", err)
		}
	})
}
