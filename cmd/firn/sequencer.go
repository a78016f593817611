package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server"
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
	add(fs, into, "sequencer", "name", "", usage, parseSequencer)
}

// sequencerPath is where a sequencer is, and what can be done with it.
func sequencerPath(name, do string) string {
	return "/api/v1/sequencers/" + url.PathEscape(name) + do
}

const attachHelp = `Attach has a server take a node ID of a sequencer, so that it can make IDs of it,
and says which. When it is asked for an ID it does so by itself, unless the caller's
token, the sequencer (--attach explicit) or the server (--no-auto-attach) forbids
that. With tokens it takes one that allows attach or admin. When all node IDs are taken, the server stands in line until one is given
back, and the exit status is 3.

FIRN_ADMIN stands in for --admin.`

func (p *program) attachCommand() *cobra.Command {
	return p.standCommand("attach", "Have a server take a node ID of a sequencer", attachHelp,
		"  firn sequencer attach orders --admin http://ids-1.example.org:9080")
}

const detachHelp = `Detach has a server give its node ID of a sequencer back, so that another can have
it. The server attaches again when it is asked for an ID of it, where that is
enough: see firn help sequencer attach.

FIRN_ADMIN stands in for --admin.`

func (p *program) detachCommand() *cobra.Command {
	return p.standCommand("detach", "Have a server give its node ID of a sequencer back", detachHelp,
		"  firn sequencer detach orders --admin http://ids-1.example.org:9080")
}

// standCommand changes where a server stands with a sequencer.
func (p *program) standCommand(do, short, long, example string) *cobra.Command {
	var o lookOptions
	c := &cobra.Command{Use: do + " NAME", Short: short, Long: long, Example: example, Args: oneName}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.look(c, &o, func(ctx context.Context, ask client) error {
			var here server.Here
			body, err := ask.call(ctx, http.MethodPost, sequencerPath(args[0], "/"+do), nil, &here)
			return p.answer(body, err, o.json, func() string { return args[0] + ": " + shownText(here.String()) + "\n" })
		})
	}
	return c
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

const destroyHelp = `Destroy ends a sequencer for ever, on all nodes, and returns once no more of its IDs
can appear. Its name can be used anew, and the IDs that are made under it then exceed
all that were made before.

A node that has crashed, or is out of reach, may go on for as long as it has
written down. Destroy then says until when, and the exit status is 0 all the same.

FIRN_ADMIN stands in for --admin.`

func (p *program) destroyCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "destroy NAME",
		Short:   "End a sequencer for ever",
		Long:    destroyHelp,
		Example: "  firn sequencer destroy orders",
		Args:    oneName,
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.look(c, &o, func(ctx context.Context, ask client) error {
			var d server.Destroyed
			body, err := ask.call(ctx, http.MethodDelete, sequencerPath(args[0], ""), nil, &d)
			return p.answer(body, err, o.json, func() string { return destroyedText(args[0], d) })
		})
	}
	return c
}

func destroyedText(name string, d server.Destroyed) string {
	switch {
	case d.Until != nil:
		return name + " is destroyed; nodes that are out of reach may still make IDs of it until " + moment(*d.Until) + "\n"
	case d.Message != "":
		return name + " is destroyed; nodes that are out of reach may still make IDs of it for a while\n"
	default:
		return name + " is destroyed\n"
	}
}

// marshal is for values that can be written as JSON.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	must(err)
	return data
}
