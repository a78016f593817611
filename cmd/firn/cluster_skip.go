package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

const skipHelp = `Skip has all nodes pass over an entry of the log that they can't read.

A node that meets such an entry, of a newer version or spoilt, gives IDs up to its
horizons, extends none, and logs the position. If nodes of a newer version run, upgrade
it instead: they have read the entry. If none does, and none is meant to, skip has every
node pass over the entry and go on, nodes of newer versions included. What the entry said
is lost.

Ask a node that has stopped there. Skip is refused while a member lives that has not, as
it may have applied the entry, and when one that has has cut the log beyond it since.`

func (p *program) skipCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "skip POSITION",
		Short:   "Pass over an entry of the log that no node can read",
		Long:    skipHelp,
		Example: "  firn cluster skip 4711",
		Args:    named("POSITION"),
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		position, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || position < 1 {
			return usagef("the position %q; want that of an entry of the log, such as 4711, which the node logs", args[0])
		}
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var s calls.Skipped
			body, err := ask.Call(ctx, http.MethodPost, "/api/v1/cluster/skip", marshal(httpapi.Skip{Position: position}), &s)
			return p.answer(body, err, o.json, func() string {
				return fmt.Sprintf("the entry at position %d is passed over\n", s.Position)
			})
		})
	}
	return c
}
