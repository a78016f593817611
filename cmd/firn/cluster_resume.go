package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
)

const resumeHelp = `Resume ends the wait after the store has lost data.

A store that was wiped, or restored from a backup, no longer knows how far node
IDs were used. Nodes that notice the loss record it in the store, use up the
time that they had reserved, and then wait until no earlier ID can repeat: the
longest window plus 10 s, by default 40 s. Nodes that start after that record
wait, too.

Resume lets all nodes continue at once. Use it only if every process that gave
IDs before has stopped, and no clock is behind theirs: otherwise IDs can repeat.`

func (p *program) resumeCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "resume",
		Short:   "End the wait after the store has lost data",
		Long:    resumeHelp,
		Example: "  firn cluster resume",
		Args:    noArguments,
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var r calls.Resumed
			body, err := ask.Call(ctx, http.MethodPost, "/api/v1/cluster/resume", nil, &r)
			return p.answer(body, err, o.json, func() string { return resumedText(r) })
		})
	}
	return c
}

func resumedText(r calls.Resumed) string {
	if r.Until == nil {
		return "there is nothing to wait for\n"
	}
	return "all nodes may give IDs now; the wait would have lasted until " + moment(*r.Until) + "\n"
}
