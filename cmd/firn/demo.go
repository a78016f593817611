package main

import (
	"time"

	"github.com/firn-id/firn/internal/demo"
	"github.com/firn-id/firn/internal/setting"
	"github.com/spf13/cobra"
)

const demoHelp = `Demo runs a cluster of several nodes in this process, on a store in memory that ends
with it, and takes IDs from them all the time. It prints what to try in another
terminal: kill a node, set its clock, take the store away, and see what becomes of
callers, members and IDs. There is a dashboard, too. Nothing is left behind.

Each node is what firn serve runs, with a clock of its own that can be set. Only the
times are shorter than usual, so that one need not wait for what happens.

The load goes to all nodes by the client that docs/client.md describes. It compares
every ID with the million before it, or more. It counts IDs that had come before,
IDs that were not above one that the same node ID had given before they were asked
for, and calls that got none within 2s.

Node 1 serves at --http-addr, and the others at the ports after it. At --admin-addr
the demo itself serves administrators and the dashboard: a node answers that runs.
The nodes' own are at the ports after it.

SIGINT (Ctrl-C) ends it, and prints the counts. The exit status is 1 if an ID came
twice.`

const demoExamples = `  firn demo
  firn demo --nodes 5 --load 10000
  firn demo kill 2
  firn demo step-clock 1 -1h
  firn demo status --json`

func (p *program) demoCommand() *cobra.Command {
	var o demo.Config
	var logs bool
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Try a cluster: kill nodes, set clocks, take the store away",
		Long:    demoHelp,
		Example: demoExamples,
		Args:    noArguments,
	}
	flags := c.Flags()
	setting.Number(flags, &o.Nodes, "nodes", "3", 1, "how many nodes")
	setting.Number(flags, &o.Load, "load", "200", 0, "how many IDs to take a second; 0 is none")
	setting.Add(flags, &o.HTTPAddr, "http-addr", "address", demo.DefaultHTTPAddr, "where node 1 listens; port 0 takes any that are free", parseAddress)
	setting.Add(flags, &o.AdminAddr, "admin-addr", "address", demo.DefaultAdminAddr, "where to listen for administrators, on this machine only", parseAddress)
	setting.Duration(flags, &o.TTL, "ttl", "3s", time.Second, "how long a silent node remains a member")
	setting.Duration(flags, &o.Window, "window", "10s", 100*time.Millisecond, "for how long IDs are given while the store is gone")
	setting.Bool(flags, &logs, "logs", "print the nodes' logs, to standard error")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.Self, o.Out = p.self(), p.stdout
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
