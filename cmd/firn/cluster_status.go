package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
)

const statusHelp = `Status shows the cluster's problems, worst first: what people notice, since
when, why, what to do, and where to read more. It shows problems of one kind on
one line. A summary and a table of all nodes follow:

  STATE   ready, or the error code that says why not; late when it has not renewed its
          pulse in time, gone when its pulse is gone, new when it came or left while
          the pulses were read, unknown while the store does not answer the asked node
  IDS/S   IDs per second that callers got lately
  CLOCK   how far its clock was ahead of the others' median, at the last judgement
  LEFT    how long it can make IDs without the store
  STORE   how long its latest write to the store took
  UP      since its process began
  SEEN    how long ago it reported this

With --wide the table also has the number of IDs given (GIVEN), the time of the
clock's judgement, the watched member, the position of the join, the version and
the addresses. The table leaves out what is not confirmed now; SEEN says since
when.

Pending joins follow. With --sequencers status also shows the sequencers, their
IDs per second (each node reports its 32 busiest), and the holders of node IDs:
members, from the part of the log that the asked node has read, and databases,
see firn gen sql --next. With --json it prints the server's answer, which
includes the last known values.

With --exit-code the exit status is 1 if there is a problem, even a warning.`

const statusExamples = `  firn cluster status
  firn cluster status --wide --sequencers
  firn cluster status --exit-code >/dev/null || echo look here
  firn cluster status --admin http://ids.example.org:9080 --json`

func (p *program) statusCommand() *cobra.Command {
	var o lookOptions
	var wide, sequencers, exitCode bool
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show what is wrong in a cluster, its nodes and their node IDs",
		Long:    statusHelp,
		Example: statusExamples,
		Args:    noArguments,
	}
	o.add(c.Flags(), "print a JSON object")
	setting.Bool(c.Flags(), &wide, "wide", "show more columns of each node; lines exceed 100 characters")
	setting.Bool(c.Flags(), &sequencers, "sequencers", "show the sequencers, and the holders of their node IDs")
	setting.Bool(c.Flags(), &exitCode, "exit-code", "exit with status 1 if there is a problem")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var status calls.Status
			err := p.show(ctx, ask, "/api/v1/cluster", &status, o.json, func() string {
				if sequencers {
					addOthers(ctx, ask, status.Sequencers)
				}
				return p.statusText(status, wide, sequencers)
			})
			if err == nil && exitCode && len(status.Problems) > 0 {
				return errReported
			}
			return err
		})
	}
	return c
}

func (p *program) statusText(s calls.Status, wide, sequencers bool) string {
	text := p.problemText(s) + "\n" + summary(s) + sections(p.membersTable(s, wide), p.joinTable(s, true))
	if sequencers {
		text += sections(sequencerTable(s.Sequencers), nodeTable(s.Sequencers))
	}
	return text
}

// summary counts what the tables below it have.
func summary(s calls.Status) string {
	var text strings.Builder
	line := func(about, format string, args ...any) {
		fmt.Fprintf(&text, "%-12s%s\n", about, fmt.Sprintf(format, args...))
	}
	if s.Cluster != "" {
		line("cluster", "%s", console.Shown(s.Cluster))
	}
	line("position", "%d, after %d entries", s.Position, s.Entries)
	by := "a node that is no member now"
	if s.Member != "" {
		by = console.Shown(s.Member)
	}
	line("told by", "%s", by)
	states, rate := map[string]int64{}, 0.0
	for _, m := range s.Members {
		states[console.Shown(string(s.StateOf(m.Pulse)))]++
		if m.Fresh && m.Vitals != nil {
			rate += m.Vitals.Rate
		}
	}
	var counts []string
	for _, state := range slices.SortedFunc(maps.Keys(states), func(a, b string) int {
		return cmp.Or(cmp.Compare(states[b], states[a]), cmp.Compare(a, b))
	}) {
		counts = append(counts, fmt.Sprintf("%d %s", states[state], state))
	}
	line("nodes", "%s; %s IDs/s", cmp.Or(strings.Join(counts, ", "), "none"), console.Number(rate))
	if !s.Store.Reached {
		line("", "as of %s: the store does not answer", asOf(s.Store.AsOf, s.At))
	}
	var used, waiting int
	for _, q := range s.Sequencers {
		used, waiting = used+len(q.Nodes), waiting+len(q.Waiting)
	}
	line("sequencers", "%d, with %d node IDs in use and %d wanted; --sequencers shows them",
		len(s.Sequencers), used, waiting)
	return text.String()
}

// terminalWidth is how many columns terminals have at least.
const terminalWidth = 80

// problemText is a line for each problem, for programs to search; a terminal gets long ones in several.
func (p *program) problemText(s calls.Status) string {
	if len(s.Problems) == 0 {
		return "no problems\n"
	}
	colours := map[string]console.Colour{string(calls.Failing): console.Red, string(calls.Warning): console.Yellow}
	columns := []console.Column{
		{Head: "PROBLEM", Colour: p.colours(func(level string) console.Colour { return colours[level] })},
		{Head: "WHAT, SINCE WHEN, WHY, AND WHAT TO DO"},
	}
	var rows [][]string
	for _, one := range s.Problems {
		rows = append(rows, []string{console.Shown(string(one.Level)), printable(one.Sentence(s.At))})
	}
	if !console.IsTerminal(p.stdout) {
		return console.Table(columns, rows)
	}
	console.Fit(columns[:1], rows)
	left := terminalWidth - columns[0].Width - 2
	var wrapped [][]string
	for _, row := range rows {
		for i, line := range console.Wrap(row[1], left) {
			if i > 0 {
				row = []string{"", ""}
			}
			wrapped = append(wrapped, []string{row[0], line})
		}
	}
	return console.Table(columns, wrapped)
}

// asOf says when something was known, and how long ago that is.
func asOf(at *time.Time, now time.Time) string {
	if at == nil {
		return "never"
	}
	return fmt.Sprintf("%s, %s ago", calls.TimeOfDay(*at, now), short(now.Sub(*at).Round(time.Second)))
}

// short formats a duration in few characters.
func short(d time.Duration) string {
	switch abs := d.Abs(); {
	case d == 0:
		return "0s"
	case abs < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case abs < time.Second:
		return d.Round(time.Millisecond).String()
	case abs < time.Hour:
		return d.Round(time.Second).String()
	case abs < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}
