package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
)

const attachHelp = `Attach makes a server take a node ID of a sequencer, and prints it. The server
can then make IDs of the sequencer. Calls for IDs also attach a server, unless
the caller's token, the sequencer (--attach explicit) or the server
(--no-auto-attach) forbids it.

Attach needs a token with the right attach or admin, if the server has tokens.
If all node IDs are taken, the server waits in line for one, and the exit status
is 3.`

func (p *program) attachCommand() *cobra.Command {
	return p.standCommand("attach", "Make a server take a node ID of a sequencer", attachHelp,
		"  firn sequencer attach orders --admin http://ids-1.example.org:9080")
}

const detachHelp = `Detach makes a server return its node ID of a sequencer, so that another node
can take it. A call for an ID attaches the server again, unless something
forbids that: see firn help sequencer attach.`

func (p *program) detachCommand() *cobra.Command {
	return p.standCommand("detach", "Make a server return its node ID of a sequencer", detachHelp,
		"  firn sequencer detach orders --admin http://ids-1.example.org:9080")
}

// standCommand changes where a server stands with a sequencer.
func (p *program) standCommand(do, short, long, example string) *cobra.Command {
	var o lookOptions
	c := &cobra.Command{Use: do + " NAME", Short: short, Long: long, Example: example, Args: oneName}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var here calls.Here
			body, err := ask.Call(ctx, http.MethodPost, remote.SequencerPath(args[0], "/"+do), nil, &here)
			return p.answer(body, err, o.json, func() string {
				return args[0] + ": " + console.ShownText(here.String()) + "\n"
			})
		})
	}
	return c
}
