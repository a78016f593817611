package calls_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store/memstore"
)

// A node is lost when it has no pulse and has not left, also not while that was read. Without the store nobody can
// tell, and what was known stays.
func TestNodesAreLost(t *testing.T) {
	now := time.Now()
	record := func(name string, left time.Time, ids ...string) peer.NodeRecord {
		return peer.NodeRecord{Name: name, Members: ids, Seen: now, Left: left}
	}
	m := servertest.Tell(t, "a", cluster.PrepareJoin{Joiner: "a"})
	m.SetPulses(map[string]peer.Pulse{"a": {Owner: "ids-1"}, "e2": {Owner: "ids-5"}})
	m.SetNodes(record("ids-1", time.Time{}, "a"), record("ids-2", time.Time{}, "b"), record("ids-3", now, "c"),
		record("ids-4", time.Time{}, "d"), record("ids-5", time.Time{}, "e1"))
	next := []peer.NodeRecord{
		record("ids-1", time.Time{}, "a"), record("ids-2", time.Time{}, "b"), record("ids-3", now, "c"),
		record("ids-4", now, "d"), record("ids-5", time.Time{}, "e1", "e2"), record("ids-6", time.Time{}, "f"),
	}
	s := calls.New(m.Member, calls.Options{})
	who, err := (&auth.Policy{Trusted: true}).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	states := func() (all []string) {
		t.Helper()
		status, err := s.Status(t.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range status.Nodes {
			all = append(all, fmt.Sprint(n.Name, " ", n.State))
		}
		return all
	}
	m.Store.Inject(func(c memstore.Call) (none memstore.Fault) { // the nodes were read, and are read again
		if c.Op == memstore.List && c.Key == "peers/" {
			m.SetNodes(next...)
		}
		return none
	})
	want := []string{"ids-1 alive", "ids-2 lost", "ids-3 left", "ids-4 left", "ids-5 alive", "ids-6 alive"}
	if have := states(); !slices.Equal(have, want) {
		t.Errorf("have %q, want %q", have, want)
	}
	m.Fail(peer.ErrNotReady)
	want = []string{"ids-1 unknown", "ids-2 unknown", "ids-3 left", "ids-4 left", "ids-5 unknown", "ids-6 unknown"}
	if have := states(); !slices.Equal(have, want) {
		t.Errorf("without the store: have %q, want %q", have, want)
	}
}
