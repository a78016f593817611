package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
)

const attachHelp = `Attach has a server take a node ID of a sequencer, and prints it. The server can then
make IDs of the sequencer. A server attaches by itself when it is asked for an ID, unless
the caller's token, the sequencer (--attach explicit) or the server (--no-auto-attach)
forbids it.

If the server wants a token, give one that allows attach or admin. If all node IDs are
taken, the server waits in line for one, and the exit status is 3.`

func (p *program) attachCommand() *cobra.Command {
	return p.standCommand("attach", "Have a server take a node ID of a sequencer", attachHelp,
		"  firn sequencer attach orders --admin http://ids-1.example.org:9080")
}

const detachHelp = `Detach has a server give its node ID of a sequencer back, for another node to take. The
server attaches again when it is asked for an ID, unless something forbids that: see
firn help sequencer attach.`

func (p *program) detachCommand() *cobra.Command {
	return p.standCommand("detach", "Have a server give back its node ID of a sequencer", detachHelp,
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
			return p.answer(body, err, o.json, func() string { return args[0] + ": " + console.ShownText(here.String()) + "\n" })
		})
	}
	return c
}
