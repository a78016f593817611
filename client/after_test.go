package client

import (
	"net/http"
	"sync"
	"testing"

	"github.com/firn-id/firn"
)

// A client tells a node the greatest ID that it has seen, unless that node gave it: its IDs then ascend, whichever node
// answers.
func TestAnotherNodeLearnsTheGreatestID(t *testing.T) {
	var mu sync.Mutex
	told := map[string]string{} // the header of the last request, by node
	tell := func(f *fleet, r *http.Request, n int) (*http.Response, error) {
		mu.Lock()
		told[r.URL.Host] = r.Header.Get("Firn-After")
		mu.Unlock()
		return gives(0)(f, r, n)
	}
	f := newFleet(map[string]behaviour{"a": tell, "b": tell})
	c := f.of(t, "a b")
	at := func(node string) {
		t.Helper()
		other := map[string]string{"a": "b", "b": "a"}[node]
		f.set(node, tell)
		f.set(other, fails(errReset))
	}
	wants := func(node, want string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if told[node] != want {
			t.Errorf("the node %s was told %q; want %q", node, told[node], want)
		}
	}
	at("a")
	mustNext(t, c)
	wants("a", "")
	last := mustNext(t, c)
	wants("a", "")
	at("b")
	next := mustNext(t, c)
	wants("b", last.String())
	if mustNext(t, c); next < last {
		t.Errorf("%d after %d", next, last)
	}
	wants("b", "")

	// A smaller ID does not count; those of another sequencer do not, either.
	at("a")
	f.mu.Lock()
	f.last = 1000
	f.mu.Unlock()
	c.mu.Lock()
	greatest := c.standard.seen
	c.mu.Unlock()
	mustNext(t, c)
	wants("a", greatest.String())
	mustNext(t, c)
	wants("a", greatest.String())
	var ids [2]firn.ID
	if err := c.Sequencer("orders").Fill(t.Context(), ids[:]); err != nil {
		t.Fatal(err)
	}
	wants("a", "")
}
