package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/cluster"

	"github.com/firn-id/firn/internal/setting"
)

const sequencerHelp = `Sequencer creates ID spaces, shows them and ends them.

A sequencer has a name, and what it is created with stays: the layout of its IDs,
and how many nodes can make them. Each node makes IDs of it under a node ID that
no other has at the time. IDs are unique within a sequencer, not between two.

The sequencer "default" is there from the start: firn serve --layout says its
layout, and who names none gets IDs of it.

All of these ask a running server where it listens for administrators, --admin or
FIRN_ADMIN says where. Attach and
detach are about that server; the rest is the same at every node of a cluster.`

const sequencerExamples = `  firn sequencer create orders --nodes 128
  firn id --sequencer orders
  firn sequencer list
  firn sequencer destroy orders`

func (p *program) sequencerCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "sequencer",
		Short:   "Create ID spaces, show them and end them",
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
