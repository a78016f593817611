package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/console"
	"github.com/firn-id/firn/internal/remote"
	"github.com/firn-id/firn/internal/server"
)

const statusHelp = `Status shows what a member knows of its cluster: the members, whom each watches and
which process it is, who is joining, and which member has which node ID of which
sequencer.

The server answers from the part of the log that it has read; other members may have
read more. A member whose pulse is gone is dead, and the others will remove it. With
--json status prints the server's answer.`

const statusExamples = `  firn cluster status
  firn cluster status --admin http://ids.example.org:9080 --json`

func (p *program) statusCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show the members of a cluster and their node IDs",
		Long:    statusHelp,
		Example: statusExamples,
		Args:    noArguments,
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var status server.Status
			return p.show(ctx, ask, "/api/v1/cluster", &status, o.json, func() string {
				by := "a node that is no member now"
				if status.Member != "" {
					by = console.Shown(status.Member)
				}
				return fmt.Sprintf("position  %d, after %d entries\ntold by   %s\n", status.Position, status.Entries, by) +
					sections(p.memberTable(status.Members, true), p.joinTable(status.Joins, true), sequencerTable(status.Sequencers), nodeTable(status.Sequencers))
			})
		})
	}
	return c
}

func (p *program) memberTable(members []server.StatusMember, joined bool) string {
	columns := []console.Column{{Head: "MEMBER"}, {Head: "WATCHES"}, {Head: "JOINED AT", Right: true}, {Head: "OWNER", Colour: p.colours(ownerColour)}}
	var rows [][]string
	for _, m := range members {
		watches := "nobody"
		if m.Watches != "" {
			watches = console.Shown(m.Watches)
		}
		rows = append(rows, []string{console.Shown(m.ID), watches, strconv.FormatInt(m.Joined, 10), owner(m.Pulse)})
	}
	if !joined {
		columns = columns[:2]
	}
	if len(rows) == 0 {
		return "no members\n"
	}
	return console.Table(columns, rows)
}

func (p *program) joinTable(joins []server.StatusJoin, owners bool) string {
	columns := []console.Column{{Head: "JOINER"}, {Head: "TARGET"}, {Head: "PHASE"}, {Head: "OWNER", Colour: p.colours(ownerColour)}}
	var rows [][]string
	for _, j := range joins {
		rows = append(rows, []string{console.Shown(j.Joiner), console.Shown(j.Target), console.Shown(j.Phase), owner(j.Pulse)})
	}
	if !owners {
		columns = columns[:3]
	}
	return console.Table(columns, rows)
}

// What owner says where there is none.
const (
	ownerUnknown = "unknown: the store does not answer"
	ownerDead    = "nobody: its pulse is gone"
)

func ownerColour(owner string) console.Colour {
	return map[string]console.Colour{ownerUnknown: console.Yellow, ownerDead: console.Red}[owner]
}

// owner says whose process is behind an ID.
func owner(p server.Pulse) string {
	switch {
	case p.Alive == nil:
		return ownerUnknown
	case !*p.Alive:
		return ownerDead
	case p.Owner == "":
		return "unnamed"
	default:
		return console.ShownText(p.Owner)
	}
}

func sequencerTable(sequencers []server.StatusSequencer) string {
	columns := []console.Column{{Head: "SEQUENCER"}, {Head: "NODE IDS", Right: true}, {Head: "FREE", Right: true}, {Head: "FOR"}, {Head: "LAYOUT"}}
	var rows [][]string
	for _, s := range sequencers {
		capacity := s.Free + int64(len(s.Nodes))
		rows = append(rows, []string{
			console.Shown(s.Name), strconv.FormatInt(capacity, 10), strconv.FormatInt(s.Free, 10),
			s.Definition.Allocation.String(), s.Definition.IDLayout().String(),
		})
	}
	return console.Table(columns, rows)
}

func nodeTable(sequencers []server.StatusSequencer) string {
	columns := []console.Column{{Head: "SEQUENCER"}, {Head: "NODE ID", Right: true}, {Head: "MEMBER"}}
	var rows [][]string
	for _, s := range sequencers {
		for _, node := range slices.Sorted(maps.Keys(s.Nodes)) {
			rows = append(rows, []string{console.Shown(s.Name), strconv.FormatInt(node, 10), console.Shown(s.Nodes[node])})
		}
		for _, member := range s.Waiting {
			rows = append(rows, []string{console.Shown(s.Name), "waiting", console.Shown(member)})
		}
	}
	return console.Table(columns, rows)
}
