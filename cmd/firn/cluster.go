package main

import (
	"github.com/spf13/cobra"
)

const clusterHelp = `Cluster shows the state of a cluster, and changes it.

Members write commands to one log, and each member replays the log to the same
state: the members, which member watches which, who is joining, and which member
has which node ID of which sequencer.

All commands but replay ask a running server, at its address for administrators.
Expel, forget, policy set, policy clear, resume and skip change the cluster.`

const clusterExamples = `  firn cluster status
  firn cluster dashboard
  firn cluster log --since 03:00 --until 03:20
  firn cluster value --at 03:12
  firn cluster expel ids-2
  firn cluster policy set orders=75% users=rest
  firn cluster replay entries.jsonl`

func (p *program) clusterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "cluster",
		Short:   "Show the state of a cluster, and change it",
		Long:    clusterHelp,
		Example: clusterExamples,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.dashboardCommand(), p.statusCommand(), p.valueCommand(), p.logCommand(), p.replayCommand(),
		p.expelCommand(), p.forgetCommand(), p.policyCommand(), p.resumeCommand(), p.skipCommand())
	return c
}
