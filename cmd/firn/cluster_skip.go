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

const skipHelp = `Skip makes all nodes pass over a log entry that they can't read.

A node that meets an unreadable entry (of a newer version, or damaged) gives IDs
up to its horizons, extends none, and logs the position. If nodes of a newer
version run, upgrade the node instead: they have read the entry. Otherwise skip
makes every node, also of newer versions, pass over the entry. Its content is
lost.

Ask a node that has stopped at the entry. Skip refuses while a member lives that
has not stopped there, because that member may have applied the entry, or if a
member that stopped there has since cut the log beyond it.`

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
			return usagef("the position %q; want that of an entry of the log, such as 4711, which the node logs",
				args[0])
		}
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var s calls.Skipped
			body, err := ask.Call(ctx, http.MethodPost, "/api/v1/cluster/skip",
				marshal(httpapi.Skip{Position: position}), &s)
			return p.answer(body, err, o.json, func() string {
				return fmt.Sprintf("the entry at position %d is passed over\n", s.Position)
			})
		})
	}
	return c
}
