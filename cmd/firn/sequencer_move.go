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

const moveHelp = `Move gives a node ID of a sequencer to another node. That node must be attached;
if it has as many node IDs as it wants, it returns another one. The former
holder stops first, and gets another node ID if one is free. If it does not
answer, the node ID becomes usable once its session has ended and its reserved
time has passed.

NODE is a member's ID or name as firn cluster status shows it, or an unambiguous
beginning of it. Ask any server.`

func (p *program) moveCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "move SEQUENCER NODE-ID NODE",
		Short:   "Give a node ID to another node",
		Long:    moveHelp,
		Example: "  firn sequencer move orders 5 ids-2",
		Args: func(c *cobra.Command, args []string) error {
			if err := named("SEQUENCER", "NODE-ID", "NODE")(c, args); err != nil {
				return err
			}
			if _, err := parseNodeID(args[1]); err != nil {
				return usageError{err}
			}
			return nil
		},
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			node, err := parseNodeID(args[1])
			if err != nil {
				return err
			}
			var placed calls.Placed
			body, err := ask.Call(ctx, http.MethodPost, remote.SequencerPath(args[0], "/move"),
				marshal(httpapi.Move{Node: &node, To: args[2]}), &placed)
			return p.answer(body, err, o.json, func() string {
				return fmt.Sprintf("%s: node ID %d moves to %s\n", args[0], node, nodeName(placed.Member, placed.Owner))
			})
		})
	}
	return c
}

func parseNodeID(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("the node ID %.40q is not right; want a whole number from 0", text)
	}
	return int64(n), nil
}
