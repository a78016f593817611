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

A node that disappears without leaving, for instance because its machine failed,
counts as a problem for an hour, unless it returns under the same name. Forget
ends that. It changes nothing else: nobody uses the time that the node had
reserved.

NAME is the node's name as the problem or firn cluster status --json shows it.`

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
			body, err := ask.Call(ctx, http.MethodPost, "/api/v1/cluster/forget",
				marshal(httpapi.Forget{Name: args[0]}), &f)
			return p.answer(body, err, o.json, func() string { return console.ShownText(f.Name) + " is forgotten\n" })
		})
	}
	return c
}
