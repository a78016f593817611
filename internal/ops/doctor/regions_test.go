package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/calls"
)

// TestRegionsAreCompared is about nodes of several clusters: two that share node IDs are found, and sequencers that
// differ.
func TestRegionsAreCompared(t *testing.T) {
	node := func(region cluster.Region, member string, sequencers ...calls.StatusSequencer) NodeSeen {
		s := calls.Status{Members: []calls.StatusMember{{ID: member}}}
		for _, q := range append([]calls.StatusSequencer{{Name: "default", Definition: cluster.Define(firn.Default)}},
			sequencers...) {
			q.Region = region
			s.Sequencers = append(s.Sequencers, q)
		}
		return NodeSeen{URL: member, Status: s}
	}
	orders := func(change func(*cluster.Definition)) calls.StatusSequencer {
		d := cluster.Define(firn.Default)
		change(&d)
		return calls.StatusSequencer{Name: "orders", Definition: d}
	}
	const overlaps, differs = "share node IDs", `"orders" differs`
	for i, tt := range []struct {
		nodes []NodeSeen
		fails []string
	}{
		{[]NodeSeen{node(cluster.Region{Number: 2, Of: 8}, "a"), node(cluster.Region{Number: 3, Of: 8}, "b")}, nil},
		{[]NodeSeen{
			node(cluster.Region{Number: 0, Of: 2}, "a"), node(cluster.Region{Number: 2, Of: 4}, "b"),
			node(cluster.Region{Number: 3, Of: 4}, "c"),
		}, nil},
		{
			[]NodeSeen{node(cluster.Region{Number: 2, Of: 8}, "a"), node(cluster.Region{Number: 2, Of: 8}, "b")},
			[]string{overlaps},
		},
		// of one cluster
		{[]NodeSeen{node(cluster.Region{Number: 2, Of: 8}, "a"), node(cluster.Region{Number: 2, Of: 8}, "a")}, nil},
		{
			[]NodeSeen{node(cluster.Region{Number: 2, Of: 8}, "a"), node(cluster.Region{Number: 1, Of: 4}, "b")},
			[]string{overlaps},
		},
		{[]NodeSeen{
			node(cluster.Region{}, "a"), node(cluster.Region{Number: 7, Of: 8}, "b"),
			node(cluster.Region{}, "c"),
		}, []string{overlaps, overlaps, overlaps}},
		{[]NodeSeen{
			node(cluster.Region{Number: 2, Of: 8}, "a", orders(func(d *cluster.Definition) { d.Nodes = 100 })),
			node(cluster.Region{Number: 3, Of: 8}, "b", orders(func(d *cluster.Definition) { d.Nodes = 64 })),
		}, []string{differs}},
		{[]NodeSeen{
			node(cluster.Region{Number: 2, Of: 8}, "a", orders(func(d *cluster.Definition) { d.Scattered = true })),
			node(cluster.Region{Number: 3, Of: 8}, "b", orders(func(*cluster.Definition) {})),
		}, []string{differs}},
		{[]NodeSeen{
			node(cluster.Region{Number: 2, Of: 8}, "a", orders(func(d *cluster.Definition) {
				*d = cluster.Definition{Kind: cluster.Counter}
			})),
			node(cluster.Region{Number: 3, Of: 8}, "b", orders(func(*cluster.Definition) {})),
		}, []string{`"orders" differs: kind is counter at a, and snowflake at b`}},
		{[]NodeSeen{ // these make different IDs
			node(cluster.Region{Number: 2, Of: 8}, "a", orders(func(d *cluster.Definition) {
				d.Nodes, d.After = 100, 1<<40
			})),
			node(cluster.Region{Number: 3, Of: 8}, "b", orders(func(d *cluster.Definition) {
				d.Nodes, d.Prefix = 128, "ord"
			})),
		}, nil},
		{[]NodeSeen{{URL: "a", Err: errors.New("no answer")}, node(cluster.Region{}, "b")}, []string{"no answer"}},
	} {
		var fails []string
		for _, f := range CheckRegions(tt.nodes) {
			if f.Level == Fail {
				fails = append(fails, f.Found)
			}
			if f.Level != OK && f.Do == "" {
				t.Errorf("%d: nothing to do about %q", i, f.Found)
			}
		}
		ok := len(fails) == len(tt.fails)
		for j := range min(len(fails), len(tt.fails)) {
			ok = ok && strings.Contains(fails[j], tt.fails[j])
		}
		if !ok {
			t.Errorf("%d: it fails with %q, want %q", i, fails, tt.fails)
		}
	}
	if all := fmt.Sprint(CheckRegions([]NodeSeen{{URL: "empty"}})); !strings.Contains(all, "no sequencer yet") {
		t.Error(all)
	}
}

// Nodes behind one address must all be of one cluster: those that know no member in common are not.
func TestNodesAreOfOneCluster(t *testing.T) {
	node := func(members ...string) NodeSeen {
		one := NodeSeen{URL: members[0]}
		for _, id := range members {
			one.Status.Members = append(one.Status.Members, calls.StatusMember{ID: id})
		}
		return one
	}
	const two = "two clusters"
	for i, tt := range []struct {
		nodes []NodeSeen
		want  []string // of all that is not as it should be
	}{
		{[]NodeSeen{node("a")}, nil},
		{[]NodeSeen{node("a", "b"), node("b", "a"), node("c", "b", "a")}, nil},
		{[]NodeSeen{node("a"), node("b")}, []string{"a and b belong to " + two}},
		{
			[]NodeSeen{node("a", "b"), node("c"), node("b")},
			[]string{"a and c belong to " + two, "c and b belong to " + two},
		},
		{
			[]NodeSeen{{URL: "a", Err: errors.New("no answer")}, node("b")},
			[]string{"a does not say its cluster: no answer"},
		},
		{[]NodeSeen{{URL: "a"}, node("b")}, []string{"a knows no member"}},
	} {
		var found []string
		for _, f := range CheckNodes(tt.nodes) {
			if f.Level == OK {
				continue
			}
			found = append(found, f.Found)
			if f.Do == "" {
				t.Errorf("%d: nothing to do about %q", i, f.Found)
			}
		}
		if !slices.EqualFunc(found, tt.want, strings.HasPrefix) {
			t.Errorf("%d: it finds %q, want %q", i, found, tt.want)
		}
	}
}
