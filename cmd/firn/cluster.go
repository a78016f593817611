package main

import (
	"github.com/spf13/cobra"
)

const clusterHelp = `Cluster shows what the members of a cluster have agreed on.

They write commands to one log, and every one of them replays it to the same
value: who the members are, who watches whom, who is about to join, and which
member has which node ID of which sequencer.`

const clusterExamples = `  firn cluster replay entries.jsonl`

func (p *program) clusterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "cluster",
		Short:   "Show what the members of a cluster have agreed on",
		Long:    clusterHelp,
		Example: clusterExamples,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.replayCommand())
	return c
}
