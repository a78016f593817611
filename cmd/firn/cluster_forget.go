package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

const forgetHelp = `Forget removes what the cluster remembers about a node that is gone.

A node that went without leaving, for instance because its machine failed, is a problem
for an hour after it was last seen, unless it comes back under its name. Forget ends that.
It changes nothing else: what the node had reserved, nobody else uses.

NAME is that of the problem, or of nodes in firn cluster status --json.`

func (p *program) forgetCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "forget NAME",
		Short:   "Forget a node that is gone",
		Long:    forgetHelp,
		Example: "  firn cluster forget ids-3",
		Args:    named("NAME"),
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var f calls.Forgotten
			body, err := ask.Call(ctx, http.MethodPost, "/api/v1/cluster/forget", marshal(httpapi.Forget{Name: args[0]}), &f)
			return p.answer(body, err, o.json, func() string { return console.ShownText(f.Name) + " is forgotten\n" })
		})
	}
	return c
}
