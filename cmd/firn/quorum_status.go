package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store/quorum"
)

const quorumStatusHelp = `Status shows the quorum's machines as one node sees them: the names of their
nodes, their roles, how many log entries each is behind the leader, the size of
its database, how far its clock is ahead of the asked node's, how long its disk
takes to sync a write, and its state, or why it can't be reached.

It also works while the node waits for other machines, and then names them. The
exit status is 1 if no majority of the machines works: nodes then give IDs only
from the time that they have reserved. With --json status prints the server's
answer.`

const quorumStatusExamples = `  firn quorum status
  firn quorum status --admin http://ids-1:9080 --json`

// quorumPath is the path of the calls about the quorum.
const quorumPath = "/api/v1/quorum"

func (p *program) quorumStatusCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show the machines that keep the data",
		Long:    quorumStatusHelp,
		Example: quorumStatusExamples,
		Args:    noArguments,
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var s quorum.Status
			err := p.show(ctx, ask, quorumPath, &s, o.json, func() string { return p.quorumText(s) })
			if err == nil && !s.Majority {
				err = fmt.Errorf("%s; nodes give IDs only from the time that they have reserved",
					console.ShownText(calls.NoMajority(s)))
			}
			return err
		})
	}
	return c
}

// quorumText describes a quorum for people.
func (p *program) quorumText(s quorum.Status) string {
	text := fmt.Sprintf("cluster   %s\ntold by   %s\n", cmp.Or(console.Shown(s.Cluster), "none known"),
		cmp.Or(console.Shown(s.Self), "a client, which keeps no data"))
	waiting := ""
	if s.Waiting != "" {
		waiting = "This node waits: " + console.ShownText(s.Waiting) + ".\n"
	}
	return text + sections(p.machineTable(s), waiting)
}

func (p *program) machineTable(s quorum.Status) string {
	columns := []console.Column{
		{Head: "MACHINE"},
		{Head: "NODE"},
		{Head: "ROLE"},
		{Head: "BEHIND", Right: true},
		{Head: "SIZE", Right: true},
		{Head: "VERSION"},
		{Head: "CLOCK", Right: true},
		{Head: "FSYNC", Right: true},
		{Head: "STATE", Colour: p.colours(machineColour(s))},
	}
	var rows [][]string
	for _, m := range s.Machines {
		role := cmp.Or(string(m.Role), "-")
		if m.Leader {
			role += ", leader"
		}
		row := []string{
			console.Shown(m.Address), console.ShownText(cmp.Or(m.Node, "-")), console.ShownText(role), "-",
			"-", console.ShownText(cmp.Or(m.Version, "-")), "-", "-", machineState(s, m),
		}
		if m.Role == quorum.Voter || m.Role == quorum.Learner {
			row[3] = console.Number(float64(m.Behind))
		}
		if m.Size > 0 {
			row[4] = size(m.Size)
		}
		if m.Err == "" {
			row[6] = clockText(m)
			if m.Sync > 0 {
				row[7] = m.Sync.Round(100 * time.Microsecond).String()
			}
		}
		rows = append(rows, row)
	}
	return console.Table(columns, rows)
}

// machineState says whether a machine can be reached, and what it does. What the asked node waits for is told
// elsewhere.
func machineState(s quorum.Status, m quorum.Machine) string {
	switch {
	case m.Err != "":
		return console.ShownText(m.Err)
	case m.Doing != "" && m.Doing == s.Waiting:
		return "waiting"
	case m.Doing != "":
		return console.ShownText(m.Doing)
	default:
		return machineOK
	}
}

const machineOK = "ok"

// machineColour returns the colours of what machineState says of machines.
func machineColour(s quorum.Status) func(string) console.Colour {
	colours := map[string]console.Colour{machineOK: console.Green}
	for _, m := range s.Machines {
		switch {
		case m.Err != "":
			colours[machineState(s, m)] = console.Red
		case m.Doing != "":
			colours[machineState(s, m)] = console.Yellow
		}
	}
	return func(state string) console.Colour { return colours[state] }
}

// clockText says how far a clock is ahead, as far as the time that the answer took shows that.
func clockText(m quorum.Machine) string {
	if margin := m.RoundTrip / 2; m.Clock.Abs() <= margin {
		return "0s"
	}
	return console.Signed(m.Clock.Round(time.Millisecond))
}

// size formats a number of bytes.
func size(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+1<<10-1)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
