package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/store/quorum"
)

const expelHelp = `Expel removes a node from the cluster. The node stops giving IDs, returns its
node IDs and exits; start it again to let it rejoin. A node that can't read the
log may use up the time that it has reserved; nobody else uses that time.

If the node is also a machine of the quorum, the machine stops too. If the
quorum would lose its majority, expel refuses unless you give
--end-the-majority: no node could then reserve more time, and all nodes would
stop within a window.

NODE is a member's ID or name as firn cluster status shows it, or an unambiguous
beginning of it.

On a terminal expel shows what else the node does, and asks for confirmation. If
standard input is not a terminal, --yes is required.`

func (p *program) expelCommand() *cobra.Command {
	var o lookOptions
	var yes, endTheMajority bool
	c := &cobra.Command{
		Use:        "expel NODE",
		SuggestFor: []string{"remove", "kick", "evict", "rm"},
		Short:      "Remove a node from the cluster",
		Long:       expelHelp,
		Example:    "  firn cluster expel ids-2\n  firn cluster expel 5f2a --yes",
		Args:       named("NODE"),
	}
	setting.Bool(c.Flags(), &yes, "yes", "do not ask whether to expel it")
	setting.Bool(c.Flags(), &endTheMajority, "end-the-majority", "expel it even if the quorum then has no majority")
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			member := args[0]
			if !yes {
				var err error
				if member, err = p.confirmExpel(ctx, ask, member, endTheMajority); err != nil {
					return err
				}
			}
			var e calls.Expelled
			body, err := ask.Call(ctx, http.MethodPost, "/api/v1/cluster/expel",
				marshal(httpapi.Expulsion{Meaning: httpapi.Meaning{Member: member}, EndTheMajority: endTheMajority}),
				&e)
			return p.answer(body, err, o.json, func() string { return nodeName(e.Member, e.Owner) + " is expelled\n" })
		})
	}
	return c
}

// nodeName names a node for people.
func nodeName(id, owner string) string {
	if owner == "" {
		return console.Shown(id)
	}
	return fmt.Sprintf("%s (%s)", console.Shown(id), console.ShownText(owner))
}

// confirmExpel shows the node that is meant, and returns its member ID. An error is returned unless a person agrees.
func (p *program) confirmExpel(ctx context.Context, ask remote.Client, text string,
	endTheMajority bool,
) (id string, err error) {
	unasked := usagef("firn cluster expel asks whether to expel %s, and standard input is not a terminal; add --yes "+
		"to expel it without asking", text)
	if !console.IsTerminal(p.stdin) {
		return "", unasked
	}
	var s calls.Status
	if _, err := ask.Call(ctx, http.MethodGet, "/api/v1/cluster", nil, &s); err != nil {
		return "", err
	}
	var candidates []calls.Candidate
	for _, m := range s.Members {
		candidates = append(candidates, calls.Candidate{ID: m.ID, Owner: m.Owner})
	}
	for _, j := range s.Joins {
		candidates = append(candidates, calls.Candidate{ID: j.Joiner, Owner: j.Owner})
	}
	meant, err := calls.Meant(text, candidates)
	if err != nil {
		return "", err
	}
	if m := s.MachineOf(meant.ID, meant.Owner); !endTheMajority && m != nil {
		if ends, left, voters := calls.EndsMajority(s.Quorum, m); ends {
			return "", &calls.MajorityError{
				Node: nodeName(meant.ID, meant.Owner), Machine: console.Shown(m.Address),
				Left: left, Voters: voters,
			}
		}
	}
	var hour calls.History
	if _, err := ask.Call(ctx, http.MethodGet, "/api/v1/cluster/history", nil, &hour); err != nil {
		hour = calls.History{} // it is of no use if the rest is known
	}
	fmt.Fprintf(p.stderr, "%s %s%s.\nIts process exits; start it again to let it rejoin.\nType yes to expel it: ",
		nodeName(meant.ID, meant.Owner), holdings(s.Sequencers, meant.ID), alsoIs(s, meant, hour))
	typed, err := p.typed(ctx)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		fmt.Fprintln(p.stderr)
		return "", unasked
	case typed != "yes":
		return "", fmt.Errorf("%s is not expelled: %.80q is not yes", nodeName(meant.ID, meant.Owner), typed)
	}
	return meant.ID, nil
}

// alsoIs says what a member gives, or gave lately, and which machine of the quorum ends with it.
func alsoIs(s calls.Status, c calls.Candidate, hour calls.History) (text string) {
	for _, m := range s.Members {
		switch {
		case m.ID != c.ID:
		case m.Fresh && m.Vitals != nil && m.Vitals.Rate > 0:
			text += ", and gives " + console.Number(m.Vitals.Rate) + " IDs a second"
		case lately(hour, c.Owner) > 0:
			text += ", and gave " + console.Number(lately(hour, c.Owner)) + " IDs a second in the last two minutes"
		case m.Fresh && m.Vitals != nil:
			text += ", and gives no IDs"
		}
	}
	if len(s.Members) == 1 && s.Members[0].ID == c.ID {
		text += ". It is the only member: no node then gives IDs"
	}
	m := s.MachineOf(c.ID, c.Owner)
	if m == nil || m.Role != quorum.Voter && m.Role != quorum.Learner {
		return text
	}
	text += ". It is also the machine " + console.Shown(m.Address) + " of the quorum, a " + string(m.Role) +
		", which ends with it"
	if m.Role != quorum.Voter {
		return text
	}
	ends, left, voters := calls.EndsMajority(s.Quorum, m)
	text += fmt.Sprintf(": %d of %d voters are left", left, voters)
	if ends {
		text += ", no majority, and no node can reserve more time"
	}
	return text
}

// lately is the highest rate of a node in the last two minutes that are known, in IDs per second.
func lately(hour calls.History, owner string) (rate float64) {
	for _, n := range hour.Nodes {
		if n.Owner != owner {
			continue
		}
		for _, r := range n.Rate[max(0, len(n.Rate)-2):] {
			if r != nil {
				rate = max(rate, *r)
			}
		}
	}
	return rate
}

// holdings says which node IDs a member has.
func holdings(sequencers []calls.StatusSequencer, member string) string {
	const most = 5
	var all []string
	for _, s := range sequencers {
		for _, node := range slices.Sorted(maps.Keys(s.Nodes)) {
			if s.Nodes[node] == member {
				all = append(all, fmt.Sprintf("%d of %s", node, console.Shown(s.Name)))
			}
		}
	}
	switch n := len(all); {
	case n == 0:
		return "holds no node ID"
	case n == 1:
		return "holds the node ID " + all[0]
	case n > most:
		return fmt.Sprintf("holds %d node IDs: %s and %d more", n, strings.Join(all[:most], ", "), n-most)
	default:
		return fmt.Sprintf("holds %d node IDs: %s", n, strings.Join(all, ", "))
	}
}

// named is for commands with these arguments; one called SEQUENCER is the name of a sequencer.
func named(want ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(want):
			return usagef("%s needs %s", c.CommandPath(), strings.Join(want[len(args):], " and "))
		case len(args) > len(want):
			return usagef("%q: %s takes no more than %s", args[len(want)], c.CommandPath(), strings.Join(want, " "))
		}
		for i, name := range want {
			if name != "SEQUENCER" {
				continue
			}
			if _, err := parseSequencer(args[i]); err != nil {
				return usageError{err}
			}
		}
		return nil
	}
}
