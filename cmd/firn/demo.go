package main

import (
	"time"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/demo"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/spf13/cobra"
)

const demoHelp = `Demo runs a cluster of several nodes in this process, on a store in memory, and
takes IDs all the time. It prints what to try in another terminal: kill a node,
set its clock, stop the store, and watch the callers, the members, the IDs and
the dashboard. It leaves nothing behind.

Each node runs what firn serve runs, with a clock that you can set. Timeouts are
shorter than usual, so that you see effects soon.

The load goes to all nodes through the Go client (docs/clients.md). It compares
every ID with at least the latest million. It counts duplicates, IDs that are
not greater than an earlier ID of the same node ID, and calls that got no ID
within 2s. Besides the default sequencer there are a counter (invoices), a dated
one (receipts), and one in strict order (events), from each of which it takes an
ID a second. Those need the store, and their failures are not counted.

With --quorum the nodes keep the store themselves, as with firn serve --quorum.
Each is a machine of a quorum, on a port of 127.0.0.1, with its data in a
temporary directory. Kill one, and callers notice nothing; kill a second of
three, and the quorum loses its majority; start them again. You can't pause
nodes then.

Node 1 listens at --http-addr, and the others at the ports after it. The demo
listens for administrators at --admin-addr, and its nodes at the ports after it.

SIGINT (Ctrl-C) ends the demo, which then prints its counts. The exit status is
1 if an ID came twice.`

const demoExamples = `  firn demo
  firn demo --nodes 5 --load 10000
  firn demo --quorum
  firn demo kill 2
  firn demo step-clock 1 -1h
  firn demo status --json`

func (p *program) demoCommand() *cobra.Command {
	var o demo.Config
	var logs bool
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Try a cluster: kill nodes, set clocks, stop the store",
		Long:    demoHelp,
		Example: demoExamples,
		Args:    noArguments,
	}
	flags := c.Flags()
	setting.Number(flags, &o.Nodes, "nodes", "3", 1, "how many nodes")
	setting.Bool(flags, &o.Quorum, "quorum", "the nodes keep the store themselves; --nodes is then 1, 3 or 5")
	setting.Number(flags, &o.Load, "load", "200", 0, "how many IDs to take per second; 0 for none")
	setting.Add(flags, &o.HTTPAddr, "http-addr", "address", demo.DefaultHTTPAddr,
		"where node 1 listens; port 0 takes any free ports", parseAddress)
	setting.Add(flags, &o.AdminAddr, "admin-addr", "address", demo.DefaultAdminAddr,
		"where to listen for administrators, on this machine only", parseAddress)
	setting.DurationIn(flags, &o.TTL, "ttl", "3s", time.Second, peer.MaxTTL, "how long a silent node remains a member")
	setting.DurationIn(flags, &o.Window, "window", "10s", 100*time.Millisecond, peer.MaxWindow,
		"how long a node gives IDs without the store")
	setting.Bool(flags, &logs, "logs", "print the nodes' logs on standard error")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.Out, o.Version = p.stdout, build().Version
		if logs {
			o.Logs = p.stderr
		}
		if err := o.Validate(); err != nil {
			return settingError(err, setting.Sources{})
		}
		return explain(demo.Run(untilSignal(c.Context()), o))
	}
	c.AddCommand(p.demoCommands()...)
	return c
}
