package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

const resumeCounterHelp = `Resume has a counter give numbers again after its store has lost data. No node
gives any before that, because numbers that were given could come again.

First stop every node that the others can't reach: it still gives the numbers
that it had reserved. While a node that they can reach has not noticed the loss,
resume is refused: stop that node, or wait for a window.

With --after, say the greatest number that anybody was given: find it where the
numbers are kept, such as in a table of invoices. firn sequencer show says up to
which number the living nodes know that some were reserved; a node that died may
have given greater ones. If you are not sure, name a greater number: that leaves
a gap, and repeats nothing. Ask any server.`

func (p *program) resumeCounterCommand() *cobra.Command {
	var o lookOptions
	after := firn.ID(-1)
	c := &cobra.Command{
		Use:     "resume SEQUENCER --after N",
		Short:   "Have a counter go on after its store has lost data",
		Long:    resumeCounterHelp,
		Example: "  firn sequencer resume invoices --after 4711",
		Args:    named("SEQUENCER"),
	}
	o.add(c.Flags(), "print a JSON object")
	setting.Add(c.Flags(), &after, "after", "number", "", "the greatest number that anybody was given", firn.Parse)
	c.RunE = func(c *cobra.Command, args []string) error {
		if !c.Flags().Changed("after") {
			return usagef("--after is missing; want the greatest number that anybody was given")
		}
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var q calls.StatusSequencer
			body, err := ask.Call(ctx, http.MethodPost, remote.SequencerPath(args[0], "/resume"),
				marshal(httpapi.Resumption{After: new(int64(after))}), &q)
			return p.answer(body, err, o.json, func() string {
				return fmt.Sprintf("%s: its next number is %d or greater\n", args[0], int64(after)+1)
			})
		})
	}
	return c
}
