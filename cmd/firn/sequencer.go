package main

import (
	"github.com/spf13/cobra"
)

const sequencerHelp = `Sequencer creates, shows and destroys sequencers, and assigns their node IDs to
nodes. A sequencer is an ID space with a name.

A sequencer's definition never changes: the layout of its IDs, and how many
nodes can make them. Each node makes IDs under a node ID that no other node has
at the time. IDs are unique within a sequencer, not between two sequencers.

The sequencer "default" always exists. firn serve --layout sets its layout, and
calls that name no sequencer get its IDs.

These commands ask a running server, at its address for administrators. Attach
and detach change that server; the others work the same at every node.`

const sequencerExamples = `  firn sequencer create orders --nodes 128
  firn id --sequencer orders
  firn sequencer list
  firn sequencer drain orders ids-2
  firn sequencer allocate orders 50%
  firn sequencer destroy orders`

func (p *program) sequencerCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "sequencer",
		Short:   "Create, show and destroy sequencers (ID spaces)",
		Long:    sequencerHelp,
		Example: sequencerExamples,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.createCommand(), p.listCommand(), p.showCommand(), p.destroyCommand(), p.attachCommand(),
		p.detachCommand(),
		p.drainCommand(), p.undrainCommand(), p.moveCommand(), p.allocateCommand(), p.resumeCounterCommand(),
		p.reserveCommand(), p.releaseCommand())
	return c
}
