package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/server"
)

const destroyHelp = `Destroy ends a sequencer for ever, on all nodes, and returns once no more of its IDs
can appear. Its name can be used anew, and the IDs that are made under it then exceed
all that were made before.

A node that has crashed, or is out of reach, may go on for as long as it has
written down. Destroy then says until when, and the exit status is 0 all the same.

FIRN_ADMIN stands in for --admin.`

func (p *program) destroyCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:        "destroy NAME",
		SuggestFor: []string{"delete", "remove", "rm"},
		Short:      "End a sequencer for ever",
		Long:       destroyHelp,
		Example:    "  firn sequencer destroy orders",
		Args:       oneName,
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
