package calls_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
)

// ordering is a member of a cluster with one sequencer, whose node ID 0 it has.
func ordering(t *testing.T) *servertest.Told {
	t.Helper()
	d := cluster.Define(firn.Default)
	d.Nodes = 16
	return servertest.Tell(t, "a", cluster.PrepareJoin{Joiner: "a"},
		cluster.CreateSequencer{Sequencer: "orders", Definition: d}, cluster.Attach{Sequencer: "orders", Member: "a"})
}

// Owners has the node IDs that are granted or were ever used, and each field only if it is known.
func TestOwners(t *testing.T) {
	admin, err := (&auth.Policy{Trusted: true}).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	m := ordering(t)
	for key, value := range map[string]string{
		"live/2": "op 1795300000000 host-b", "last_reported_time/2": "1795300001500 op x",
		"last_reported_time/7": "1795300000000 op x", "last_reported_time/9": "soon",
	} {
		m.Put("sequencers/orders/workers/"+key, value)
	}
	s := calls.New(m.Member, calls.Options{})
	const (
		zero = `{"node":0,"member":"a","live":false}`
		two  = `{"node":2,"live":true,"owner":"host-b","since":"2026-11-21T22:26:40Z",` +
			`"horizon":"2026-11-21T22:26:41.5Z","horizon_ms":1795300001500}`
		seven = `{"node":7,"live":false,"horizon":"2026-11-21T22:26:40Z","horizon_ms":1795300000000}`
		nine  = `{"node":9,"live":false,"unreadable":true}`
	)
	for _, tt := range []struct {
		from  int64
		limit int
		want  string
	}{
		{0, calls.MaxOwners, "[" + zero + "," + two + "," + seven + "," + nine + "]"},
		{0, 4, "[" + zero + "," + two + "," + seven + "," + nine + "]"},
		{0, 3, "[" + zero + "," + two + "," + seven + "] 9"},
		{1, 1, "[" + two + "] 7"},
		{8, 4, "[" + nine + "]"},
		{10, 4, "[]"},
	} {
		got, err := s.Owners(t.Context(), admin, "orders", tt.from, tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		nodes, _ := json.Marshal(got.Nodes)
		text := string(nodes)
		if got.Next != nil {
			next, _ := json.Marshal(got.Next)
			text += " " + string(next)
		}
		if text != tt.want || got.Sequencer != "orders" || got.UnixMS == 0 {
			t.Errorf("from %d, %d of them: %s\nwant %s", tt.from, tt.limit, text, tt.want)
		}
	}
	for _, limit := range []int{0, -1, calls.MaxOwners + 1} {
		if _, err := s.Owners(t.Context(), admin, "orders", 0, limit); calls.CodeOf(err) != codes.BadRequest {
			t.Errorf("a limit of %d: %v", limit, err)
		}
	}
	if _, err := s.Owners(t.Context(), anyone(t), "orders", 0, 1); !errors.Is(err, auth.ErrForbidden) {
		t.Errorf("without the right: %v", err)
	}
	m.Fail(store.ErrUnavailable)
	if _, err := s.Owners(t.Context(), admin, "orders", 0, 1); calls.CodeOf(err) != codes.Unavailable {
		t.Errorf("without the store: %v", err)
	}
}
