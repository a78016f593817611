package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/remote"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/setting"
)

const valueHelp = `Value shows the state that a cluster's log led to: the members and whom each watches,
who is joining, and which member has which node ID of which sequencer.

With --at it shows the state at a position, after the last entry up to there. The
server replays the log for that, as far back as the log was kept. Without --at it shows
the latest state that the server knows.

With --json it prints {"position":7,"value":{...}}, as firn cluster replay does.`

const valueExamples = `  firn cluster value
  firn cluster value --at 57 --json`

func (p *program) valueCommand() *cobra.Command {
	var o lookOptions
	var at int64
	c := &cobra.Command{
		Use:     "value",
		Short:   "Show the state of a cluster at a position of its log",
		Long:    valueHelp,
		Example: valueExamples,
		Args:    noArguments,
	}
	setting.Number(c.Flags(), &at, "at", "", 0, "the position (default: the latest)")
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, _ []string) error {
		path := "/api/v1/cluster/value"
		if c.Flags().Changed("at") {
			path += fmt.Sprintf("?at=%d", at)
		}
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var v valueAt
			return p.show(ctx, ask, path, &v, o.json, func() string {
				s := v.status()
				return fmt.Sprintf("position  %d\n", v.Position) +
					sections(memberTable(s.Members), p.joinTable(s.Joins, false), nodeTable(s.Sequencers))
			})
		})
	}
	return c
}

// valueAt is what a server tells of a value.
type valueAt struct {
	Position int64 `json:"position"`
	Value    struct {
		Members    []string          `json:"members"`
		Pairs      map[string]string `json:"pairs"`
		Prepared   map[string]string `json:"prepared"`
		Accepted   map[string]string `json:"accepted"`
		Sequencers map[string]struct {
			Nodes   map[int64]string `json:"nodes"`
			Waiting []string         `json:"waiting"`
		} `json:"sequencers"`
	} `json:"value"`
}

// status is as much of a status as the value tells.
func (v valueAt) status() (s server.Status) {
	for _, id := range v.Value.Members {
		s.Members = append(s.Members, server.StatusMember{ID: id, Watches: v.Value.Pairs[id]})
	}
	for phase, joins := range map[string]map[string]string{server.Prepared: v.Value.Prepared, server.Accepted: v.Value.Accepted} {
		for joiner, target := range joins {
			s.Joins = append(s.Joins, server.StatusJoin{Joiner: joiner, Target: target, Phase: phase})
		}
	}
	slices.SortFunc(s.Joins, func(a, b server.StatusJoin) int { return strings.Compare(a.Joiner, b.Joiner) })
	for _, name := range slices.Sorted(maps.Keys(v.Value.Sequencers)) {
		q := v.Value.Sequencers[name]
		s.Sequencers = append(s.Sequencers, server.StatusSequencer{Name: name, Nodes: q.Nodes, Waiting: q.Waiting})
	}
	return s
}
