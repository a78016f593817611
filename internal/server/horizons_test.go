package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
)

// horizons is a cluster with a sequencer, and what the store tells of its node IDs.
type horizons struct {
	server.Cluster
	owners []member.Owner
	err    error
}

func (h horizons) Horizons(context.Context, string) ([]member.Owner, error) { return h.owners, h.err }

func (horizons) Lookup(context.Context, string) (cluster.Sequencer, error) {
	var v cluster.Value
	for i, text := range []string{
		`{"position":1,"command":"prepare-join-cluster","args":{"joiner":"a"}}`,
		`{"position":2,"command":"create-sequencer","args":{"sequencer":"orders","definition":{"nodes":16}}}`,
		`{"position":3,"command":"attach","args":{"sequencer":"orders","member":"a"}}`,
	} {
		e, err := cluster.ParseEntry([]byte(text))
		if err != nil || e.Position != int64(i+1) {
			return cluster.Sequencer{}, err
		}
		v, _ = cluster.Apply(v, e)
	}
	q, _ := v.Sequencer("orders")
	return q, nil
}

// Node IDs are told of that somebody has by the log or that were ever used, and each thing about them only if it is known.
func TestHorizons(t *testing.T) {
	admin, err := (&auth.Policy{Trusted: true}).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	since := time.UnixMilli(1_795_300_000_000)
	s := server.New(slow{}, horizons{owners: []member.Owner{
		{Node: 2, Live: true, Since: since, Name: "host-b, process 7", Horizon: since.Add(1500 * time.Millisecond)},
		{Node: 7, Horizon: since},
		{Node: 9, Horizon: time.UnixMilli(math.MaxInt64 >> 2)},
	}}, server.Options{})
	const (
		zero  = `{"node":0,"member":"a","live":false}`
		two   = `{"node":2,"live":true,"owner":"host-b, process 7","since":"2026-11-21T22:26:40Z","horizon":"2026-11-21T22:26:41.5Z","horizon_ms":1795300001500}`
		seven = `{"node":7,"live":false,"horizon":"2026-11-21T22:26:40Z","horizon_ms":1795300000000}`
		nine  = `{"node":9,"live":false,"unreadable":true}`
	)
	for _, tt := range []struct {
		from  int64
		limit int
		want  string
	}{
		{0, server.MaxNodes, "[" + zero + "," + two + "," + seven + "," + nine + "]"},
		{0, 4, "[" + zero + "," + two + "," + seven + "," + nine + "]"},
		{0, 3, "[" + zero + "," + two + "," + seven + "] 9"},
		{1, 1, "[" + two + "] 7"},
		{8, 4, "[" + nine + "]"},
		{10, 4, "[]"},
	} {
		got, err := s.Horizons(t.Context(), admin, "orders", tt.from, tt.limit)
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
	for _, limit := range []int{0, -1, server.MaxNodes + 1} {
		if _, err := s.Horizons(t.Context(), admin, "orders", 0, limit); server.CodeOf(err) != server.BadRequest {
			t.Errorf("a limit of %d: %v", limit, err)
		}
	}
	if _, err := s.Horizons(t.Context(), anyone(t), "orders", 0, 1); !errors.Is(err, auth.ErrForbidden) {
		t.Errorf("without the right: %v", err)
	}
	s = server.New(slow{}, horizons{err: store.ErrUnavailable}, server.Options{})
	if _, err := s.Horizons(t.Context(), admin, "orders", 0, 1); server.CodeOf(err) != server.Unavailable {
		t.Errorf("without the store: %v", err)
	}
}
