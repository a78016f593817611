package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
)

const allocateHelp = `Allocate changes how many nodes get a node ID of a sequencer: all that want one,
a number such as 3, or a share of the cluster such as 50%, rounded up. If too
many nodes have one, the last in line return theirs; if too few, the next in
line get one.

The definition keeps the allocation of the creation, so that firn sequencer
create can be repeated.`

func (p *program) allocateCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "allocate SEQUENCER all|COUNT|PERCENT%",
		Short:   "Change how many nodes get a node ID of a sequencer",
		Long:    allocateHelp,
		Example: "  firn sequencer allocate orders 3\n  firn sequencer allocate orders 50%",
		Args: func(c *cobra.Command, args []string) error {
			if err := named("SEQUENCER", "all|COUNT|PERCENT%")(c, args); err != nil {
				return err
			}
			if _, err := parseAllocation(args[1]); err != nil {
				return usageError{err}
			}
			return nil
		},
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			a, err := parseAllocation(args[1])
			if err != nil {
				return err
			}
			var s calls.StatusSequencer
			body, err := ask.Call(ctx, http.MethodPut, remote.SequencerPath(args[0], "/allocation"), marshal(a), &s)
			return p.answer(body, err, o.json, func() string {
				return fmt.Sprintf("%s: node IDs are for %v now; %d held, %d waiting\n", args[0], allocationOf(s),
					len(s.Nodes), len(s.Waiting))
			})
		})
	}
	return c
}
