package main

import (
	"github.com/spf13/cobra"
)

const quorumHelp = `Quorum manages machines that keep the data of a cluster together, without an etcd
beside them: firn serve --quorum on 1, 3 or 5 machines.`

const quorumExamples = `  firn quorum key > firn.key`

func (p *program) quorumCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "quorum",
		Short:   "Manage the machines that keep the data",
		Long:    quorumHelp,
		Example: quorumExamples,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.quorumKeyCommand())
	return c
}
