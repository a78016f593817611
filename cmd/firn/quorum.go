package main

import (
	"github.com/spf13/cobra"
)

const quorumHelp = `Quorum manages the machines that keep a cluster's data together, without an
external store: firn serve --quorum on 1, 3 or 5 machines.

Status, replace, remove and backup ask a running node, at its address for
administrators. Key and restore ask nobody.`

const quorumExamples = `  firn quorum key --output firn.key
  firn quorum status
  firn quorum replace ids-2:7420 ids-4:7420
  firn quorum backup ids.backup`

func (p *program) quorumCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "quorum",
		Short:   "Manage a quorum: the machines that keep the data",
		Long:    quorumHelp,
		Example: quorumExamples,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.quorumStatusCommand(), p.quorumReplaceCommand(), p.quorumRemoveCommand(), p.quorumBackupCommand(),
		p.quorumRestoreCommand(),
		p.quorumKeyCommand())
	return c
}
