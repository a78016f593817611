package replay_test

import (
	"testing"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/replay"
)

// A person can read each command without knowing its name.
func TestWords(t *testing.T) {
	percent := cluster.Allocation{Kind: cluster.AllocatePercent, Percent: 50}
	for _, c := range []struct {
		command cluster.Command
		want    string
	}{
		{cluster.PrepareJoin{Joiner: "a"}, "a asks to join"},
		{cluster.NotifyWatchers{Joiner: "a"}, "a watches its target, and waits to be watched"},
		{cluster.AcceptJoin{Joiner: "a"}, "a is watched, and is a member now"},
		{cluster.AbortJoin{Joiner: "a"}, "the join of a is aborted"},
		{cluster.Leave{Member: "a", Why: cluster.CauseLeft, By: "a"}, "a left"},
		{
			cluster.Leave{Member: "a", Why: cluster.CauseSessionEnded, By: "b"},
			"a is removed: its session ended, as b saw",
		},
		{cluster.Leave{Member: "a", Why: cluster.CauseFoundDead, By: "b"}, "a is removed: b found it dead"},
		{cluster.Leave{Member: "a", Why: cluster.CauseFoundDead}, "a is removed: another member found it dead"},
		{cluster.Leave{Member: "a"}, "a left, or is removed"},
		{cluster.Expel{Member: "a\x1b[2J", By: "b"}, `"a\x1b[2J" is expelled; b was asked to do it`},
		{cluster.PeerGC{By: "a"}, "a looks for dead members"},
		{cluster.AskClocks{By: "a"}, "a asks others what their clocks say"},
		{cluster.DestroySequencer{Sequencer: "orders"}, "orders is destroyed"},
		{cluster.Attach{Sequencer: "orders", Member: "a"}, "a wants a node ID of orders"},
		{
			cluster.Attach{Sequencer: "orders", Member: "a", Nodes: &cluster.Range{From: 1, To: 3}},
			"a wants a node ID of orders, from 1 to 3",
		},
		{cluster.Detach{Sequencer: "orders", Member: "a"}, "a detaches from orders"},
		{
			cluster.Decline{Sequencer: "orders", Member: "a", Node: 3},
			"a can't use node ID 3 of orders, and wants another",
		},
		{cluster.Drain{Sequencer: "orders", Member: "a"}, "a is drained from orders"},
		{cluster.Undrain{Sequencer: "orders", Member: "a"}, "a is no longer drained from orders"},
		{cluster.Move{Sequencer: "orders", Node: 3, To: "a"}, "node ID 3 of orders moves to a"},
		{
			cluster.Allocate{Sequencer: "orders", Allocation: percent},
			"node IDs of orders are for 50% of the members now",
		},
		{
			cluster.SetPolicy{Shares: []cluster.Share{{Sequencer: "a", Percent: 75}, {Sequencer: "b"}}},
			"the policy is now 75% of the members for a, the rest for b",
		},
		{
			cluster.Reserve{Sequencer: "orders", Reserving: cluster.Reserving{For: "imports", Count: 2}},
			"orders reserves 2 node IDs for imports",
		},
		{
			cluster.Reserve{Sequencer: "orders", Reserving: cluster.Reserving{For: "imports", Nodes: []int64{3, 5, 6}}},
			"orders reserves node IDs 3, 5..6 for imports",
		},
		{
			cluster.Release{Sequencer: "orders", For: "imports"},
			"orders gets back what was reserved for imports",
		},
		{cluster.SetPolicy{}, "the policy ends: members serve the sequencers that they attach to"},
	} {
		if got := replay.Words(c.command); got != c.want {
			t.Errorf("%s is %q, want %q", c.command.Name(), got, c.want)
		}
	}
}
