package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

const policyPath = "/api/v1/cluster/policy"

const policyHelp = `Policy shows which share of the nodes serves which sequencer, and how many nodes
that is now. Each node serves one of these sequencers; when nodes come or go, as
few nodes as possible change. The policy does not affect sequencers that it does
not name.`

func (p *program) policyCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "policy",
		Short:   "Show or change which share of the nodes serves which sequencer",
		Long:    policyHelp,
		Example: "  firn cluster policy\n  firn cluster policy set orders=75% users=rest\n  firn cluster policy clear",
		Args:    noArguments,
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, _ []string) error { return p.askPolicy(c, &o, http.MethodGet, nil) }
	c.AddCommand(p.policySetCommand(), p.policyClearCommand())
	return c
}

const policySetHelp = `Set replaces the policy: it assigns shares of the nodes to sequencers. Each
share is a percentage; one may be the rest. Without a rest, shares must add up
to 100%.`

func (p *program) policySetCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "set SEQUENCER=PERCENT%|rest...",
		Short:   "Set which share of the nodes serves which sequencer",
		Long:    policySetHelp,
		Example: "  firn cluster policy set orders=75% users=rest",
		Args: func(_ *cobra.Command, args []string) error {
			_, err := parseShares(args)
			return err
		},
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		shares, err := parseShares(args)
		if err != nil {
			return err
		}
		return p.askPolicy(c, &o, http.MethodPut, marshal(httpapi.NewPolicy{Shares: shares}))
	}
	return c
}

func (p *program) policyClearCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "clear",
		Short:   "End the policy",
		Long:    "Clear ends the policy: nodes then serve every sequencer that they are attached to.",
		Example: "  firn cluster policy clear",
		Args:    noArguments,
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, _ []string) error { return p.askPolicy(c, &o, http.MethodDelete, nil) }
	return c
}

// askPolicy makes a call about the policy, and prints the one in force then.
func (p *program) askPolicy(c *cobra.Command, o *lookOptions, method string, body []byte) error {
	return p.look(c, o, func(ctx context.Context, ask remote.Client) error {
		var policy calls.Policy
		answer, err := ask.Call(ctx, method, policyPath, body, &policy)
		return p.answer(answer, err, o.json, func() string { return policyText(policy) })
	})
}

// parseShares reads the arguments of firn cluster policy set.
func parseShares(args []string) ([]cluster.Share, error) {
	if len(args) == 0 {
		return nil, usagef("firn cluster policy set needs shares, such as orders=75%% users=rest; firn cluster " +
			"policy " +
			"clear ends the policy")
	}
	var shares []cluster.Share
	for _, arg := range args {
		name, share, _ := strings.Cut(arg, "=")
		if _, err := parseSequencer(name); err != nil {
			return nil, usageError{err}
		}
		digits, isPercent := strings.CutSuffix(share, "%")
		percent, err := strconv.ParseInt(digits, 10, 64)
		switch {
		case share == "rest":
			percent = 0
		case err != nil, !isPercent, percent < 1, percent > 100:
			return nil, usagef("%.80q is not a share; want one such as orders=75%% or orders=rest", arg)
		}
		shares = append(shares, cluster.Share{Sequencer: name, Percent: percent})
	}
	return shares, nil
}

func policyText(policy calls.Policy) string {
	if len(policy.Shares) == 0 {
		return "no policy: nodes serve every sequencer that they are attached to\n"
	}
	columns := []console.Column{{Head: "SEQUENCER"}, {Head: "SHARE", Right: true}, {Head: "NODES", Right: true}}
	var rows [][]string
	for _, s := range policy.Shares {
		rows = append(rows,
			[]string{console.Shown(s.Sequencer), shareText(s.Percent), strconv.Itoa(len(policy.Assigned[s.Sequencer]))})
	}
	return console.Table(columns, rows)
}

// shareText is a share of the nodes; 0: the rest.
func shareText(percent int64) string {
	if percent == 0 {
		return "rest"
	}
	return fmt.Sprintf("%d%%", percent)
}
