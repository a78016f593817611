package cluster_test

import (
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
)

// A log of commands, and the value after each: a and b join, share a sequencer of one node ID, and a dies.
func Example() {
	one := cluster.Definition{Nodes: 1, Layout: firn.Default}
	var v cluster.Value
	for i, command := range []cluster.Command{
		cluster.PrepareJoin{Joiner: "a"},
		cluster.PrepareJoin{Joiner: "b"},
		cluster.NotifyWatchers{Joiner: "b"},
		cluster.AcceptJoin{Joiner: "b"},
		cluster.CreateSequencer{Sequencer: "orders", Definition: one},
		cluster.Attach{Sequencer: "orders", Member: "a"},
		cluster.Attach{Sequencer: "orders", Member: "b"},
		cluster.Leave{Member: "a"},
	} {
		var out cluster.Outcome
		v, out = cluster.Apply(v, cluster.Entry{Position: int64(i), Command: command})
		fmt.Printf("%-20s %v: %v\n", command.Name(), out.Result, v)
	}
	// Output:
	// prepare-join-cluster applied: ring a
	// prepare-join-cluster applied: ring a; b prepares at a
	// notify-watchers      applied: ring a; b accepted at a
	// accept-join-cluster  applied: ring a>b
	// create-sequencer     applied: ring a>b; orders
	// attach               applied: ring a>b; orders 0:a
	// attach               applied: ring a>b; orders 0:a, waiting b
	// leave-cluster        applied: ring b; orders 0:b
}
