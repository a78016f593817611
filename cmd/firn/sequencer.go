package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/cluster"

	"github.com/firn-id/firn/internal/setting"
)

const sequencerHelp = `Sequencer creates, shows and destroys sequencers. Each is an ID space with a name.

A sequencer's definition never changes: the layout of its IDs, and how many nodes can
make them. Each node makes its IDs under a node ID that no other node has at the time.
IDs are unique within a sequencer, not between two sequencers.

The sequencer "default" always exists. firn serve --layout sets its layout, and callers
who name no sequencer get its IDs.

These commands ask a running server, at its address for administrators. Attach and
detach change that server; the others do the same at every node of a cluster.`

const sequencerExamples = `  firn sequencer create orders --nodes 128
  firn id --sequencer orders
  firn sequencer list
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
	c.AddCommand(p.createCommand(), p.listCommand(), p.showCommand(), p.destroyCommand(), p.attachCommand(), p.detachCommand())
	return c
}

// oneName is for commands whose argument is the name of a sequencer.
func oneName(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usagef("%s needs the name of a sequencer", c.CommandPath())
	case len(args) > 1:
		return usagef("%q: %s takes one name", args[1], c.CommandPath())
	}
	_, err := parseSequencer(args[0])
	if err != nil {
		return usageError{err}
	}
	return nil
}

// parseSequencer reads the name of a sequencer.
func parseSequencer(name string) (string, error) {
	if name == "." || name == ".." { // these would be other paths
		return name, fmt.Errorf("the sequencer's name %q; a URL can't have it; want another", name)
	}
	return name, cluster.CheckName(name)
}

// addSequencer adds the flag that names a sequencer.
func addSequencer(fs *pflag.FlagSet, into *string, usage string) {
	setting.Add(fs, into, "sequencer", "name", "", usage, parseSequencer)
}

// answer prints what a server answers: as it is, or as text.
func (p *program) answer(body []byte, err error, asJSON bool, text func() string) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return p.printf("%s", body)
	default:
		return p.printf("%s", text())
	}
}

// marshal is for values that can be written as JSON.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	must(err)
	return data
}
