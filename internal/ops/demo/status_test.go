package demo

import (
	"slices"
	"testing"
)

func TestChanges(t *testing.T) {
	id := int64(7)
	status := func(members int, states ...string) (s Status) {
		s.Members = members
		for i, state := range states {
			s.Nodes = append(s.Nodes, NodeStatus{Node: i + 1, State: state, NodeID: &id, Why: "because"})
		}
		return s
	}
	for _, tt := range []struct {
		before, now Status
		want        []string
	}{
		{status(2, Ready, Ready), status(2, Ready, Ready), nil},
		{status(2, Ready, Ready), status(1, Ready, Down), []string{"the cluster has 1 member, and had 2"}},
		{
			status(1, Ready, NotReady), status(2, Ready, Ready),
			[]string{"the cluster has 2 members, and had 1", "node 2 is ready, with node ID 7"},
		},
		{status(2, Ready, Ready), status(2, NotReady, Paused), []string{"node 1 is not ready: because"}},
		{status(2, Ready, Ready), status(0, Down, Down), nil}, // unknown
	} {
		if got := tt.now.changes(tt.before); !slices.Equal(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
