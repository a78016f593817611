package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

const listHelp = `List shows the sequencers of a cluster: how many node IDs each has and how many
are free, how many nodes wait for one or are drained, the number of nodes each
is for, and whether the asked server is attached. A counter has no node IDs.

With --json it prints the server's answer.`

func (p *program) listCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:        "list",
		SuggestFor: []string{"ls"},
		Short:      "List the sequencers of a cluster",
		Long:       listHelp,
		Example:    "  firn sequencer list",
		Args:       noArguments,
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var all httpapi.SequencerList
			return p.show(ctx, ask, "/api/v1/sequencers", &all, o.json, func() string {
				if len(all.Sequencers) == 0 {
					return "no sequencers\n"
				}
				return p.listTable(all.Sequencers)
			})
		})
	}
	return c
}

// hereColour is that of where a server stands with a sequencer, as calls.Here prints it.
func hereColour(here string) console.Colour {
	switch {
	case strings.HasPrefix(here, "attached,"), strings.HasPrefix(here, "counting"):
		return console.Green
	case strings.HasPrefix(here, "waiting,"):
		return console.Yellow
	default:
		return ""
	}
}

func (p *program) listTable(all []calls.StatusSequencer) string {
	columns := []console.Column{
		{Head: "SEQUENCER"},
		{Head: "NODE IDS", Right: true},
		{Head: "FREE", Right: true},
		{Head: "WAITING", Right: true},
		{Head: "DRAINED", Right: true},
		{Head: "FOR"},
		{Head: "IDS/S PER NODE", Right: true},
		{Head: "UNTIL"},
		{Head: "HERE", Colour: p.colours(hereColour)},
	}
	var rows [][]string
	for _, s := range all {
		if s.Definition.Claimed() {
			until := "-"
			if !s.Until.IsZero() {
				until = s.Until.UTC().Format(time.DateOnly)
			}
			rows = append(rows, []string{
				console.Shown(s.Name), "-", "-", "-", "-", s.Definition.Shape(), "-", until,
				console.ShownText(hereText(s)),
			})
			continue
		}
		_, free := s.NodeIDs()
		rows = append(rows, []string{
			console.Shown(s.Name), strconv.FormatInt(s.Capacity, 10), strconv.FormatInt(free, 10),
			strconv.Itoa(len(s.Waiting)),
			strconv.Itoa(len(s.Drained)), forText(s), console.Number(s.Rate),
			s.Until.Format(time.DateOnly) + timeLeft(time.Until(s.Until)), console.ShownText(hereText(s)),
		})
	}
	return console.Table(columns, rows)
}

// forText says how many nodes get a node ID.
func forText(s calls.StatusSequencer) string {
	if s.Share != nil {
		return fmt.Sprintf("%v, policy %s", allocationOf(s), shareText(*s.Share))
	}
	return allocationOf(s).String()
}

// allocationOf is the allocation in force.
func allocationOf(s calls.StatusSequencer) cluster.Allocation {
	if s.Allocation == nil {
		return cluster.Allocation{}
	}
	return *s.Allocation
}

// hereText is the state of the asked server in a sequencer. In a counter every node can give numbers.
func hereText(s calls.StatusSequencer) string {
	if s.Definition.Claimed() && s.Here.State == "none" {
		return "no numbers yet"
	}
	return s.Here.String()
}
