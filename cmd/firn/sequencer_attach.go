package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/remote"
	"github.com/firn-id/firn/internal/server"
)

const attachHelp = `Attach has a server take a node ID of a sequencer, so that it can make IDs of it,
and says which. When it is asked for an ID it does so by itself, unless the caller's
token, the sequencer (--attach explicit) or the server (--no-auto-attach) forbids
that. With tokens it takes one that allows attach or admin. When all node IDs
are taken, the server stands in line until one is released, and the exit status is 3.

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
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var here server.Here
			body, err := ask.Call(ctx, http.MethodPost, remote.SequencerPath(args[0], "/"+do), nil, &here)
			return p.answer(body, err, o.json, func() string { return args[0] + ": " + shownText(here.String()) + "\n" })
		})
	}
	return c
}
