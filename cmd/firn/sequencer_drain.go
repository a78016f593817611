package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

const drainHelp = `Drain makes a node return its node ID of a sequencer, and keeps it from
attaching again: calls for IDs there get the error detached. firn sequencer
undrain, or a restart of the node, ends that.

NODE is a member's ID or name as firn cluster status shows it, or an unambiguous
beginning of it. Ask any server.`

func (p *program) drainCommand() *cobra.Command {
	return p.placeCommand("drain", "Keep a node from attaching to a sequencer", drainHelp,
		"is drained; firn sequencer undrain ends that")
}

const undrainHelp = `Undrain lets a node attach to a sequencer again, after firn sequencer drain. A
node that was attached before attaches at once.

NODE is named as in firn sequencer drain.`

func (p *program) undrainCommand() *cobra.Command {
	return p.placeCommand("undrain", "Let a node attach to a sequencer again", undrainHelp, "is no longer drained")
}

// placeCommand changes what a node has of a sequencer.
func (p *program) placeCommand(do, short, long, done string) *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use: do + " SEQUENCER NODE", Short: short, Long: long, Example: "  firn sequencer " + do + " orders ids-2",
		Args: named("SEQUENCER", "NODE"),
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var placed calls.Placed
			body, err := ask.Call(ctx, http.MethodPost, remote.SequencerPath(args[0], "/"+do),
				marshal(httpapi.Meaning{Member: args[1]}), &placed)
			return p.answer(body, err, o.json, func() string {
				return args[0] + ": " + nodeName(placed.Member, placed.Owner) + " " + done + "\n"
			})
		})
	}
	return c
}
