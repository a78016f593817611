package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
)

const valueHelp = `Value shows the state after a cluster's log: the members and whom each watches,
who is joining, and which member has which node ID of which sequencer.

With --at it shows the state at a position, after the last entry up to there, or
at a time, after the last entry at or before it. The formats of times are those
of firn cluster log: 03:12, "2026-11-22 03:12", 15m, or RFC 3339. Entries have
the times of their senders' clocks; the log's order decides which entry is the
last. The server replays the log as far back as it was kept. Without --at value
shows the latest state that the server knows.

With --json it prints
{"position":7,"at":"2026-11-22T03:11:58.102Z","value":{...}}. "at" is the time
of the last entry, if known.`

const valueExamples = `  firn cluster value
  firn cluster value --at 03:12
  firn cluster value --at 57 --json`

func (p *program) valueCommand() *cobra.Command {
	var o lookOptions
	var at string // as the server reads it
	c := &cobra.Command{
		Use:     "value",
		Short:   "Show the state of a cluster at a time, or at a position of its log",
		Long:    valueHelp,
		Example: valueExamples,
		Args:    noArguments,
	}
	setting.Add(c.Flags(), &at, "at", "point", "",
		"the position, or a time such as 03:12 (default: the latest position)", parsePoint)
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, _ []string) error {
		path := "/api/v1/cluster/value"
		if at != "" {
			path += "?at=" + url.QueryEscape(at)
		}
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var v valueAt
			return p.show(ctx, ask, path, &v, o.json, func() string {
				s := v.status()
				return v.place() +
					sections(memberTable(s.Members), p.joinTable(s, false), nodeTable(s.Sequencers))
			})
		})
	}
	return c
}

// parsePoint reads a position or a time, and returns it as servers read it.
func parsePoint(text string) (string, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return strconv.FormatInt(n, 10), nil
	}
	at, err := setting.ParseInstant(text)
	if err != nil {
		return "", fmt.Errorf("%.40q is neither a position nor a time; want a whole number from 0, or such as 03:12, "+
			"\"2026-11-22 03:12\", 15m or RFC 3339", text)
	}
	return wireTime(at), nil
}

// valueAt is what a server tells of a value.
type valueAt struct {
	Position int64     `json:"position"`
	At       time.Time `json:"at"` // zero: unknown
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

// place says where in the log the value is.
func (v valueAt) place() string {
	text := fmt.Sprintf("position  %d\n", v.Position)
	if !v.At.IsZero() {
		text += fmt.Sprintf("time      %s\n", localTime(v.At))
	}
	return text
}

// status is as much of a status as the value tells.
func (v valueAt) status() (s calls.Status) {
	for _, id := range v.Value.Members {
		s.Members = append(s.Members, calls.StatusMember{ID: id, Watches: v.Value.Pairs[id]})
	}
	for phase, joins := range map[string]map[string]string{
		calls.Prepared: v.Value.Prepared,
		calls.Accepted: v.Value.Accepted,
	} {
		for joiner, target := range joins {
			s.Joins = append(s.Joins, calls.StatusJoin{Joiner: joiner, Target: target, Phase: phase})
		}
	}
	slices.SortFunc(s.Joins, func(a, b calls.StatusJoin) int { return strings.Compare(a.Joiner, b.Joiner) })
	for _, name := range slices.Sorted(maps.Keys(v.Value.Sequencers)) {
		q := v.Value.Sequencers[name]
		s.Sequencers = append(s.Sequencers, calls.StatusSequencer{Name: name, Nodes: q.Nodes, Waiting: q.Waiting})
	}
	return s
}
