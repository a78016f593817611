package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

const statusHelp = `Status shows the cluster's problems, worst first: what people notice, since
when, why, what to do, and where to read more. It shows problems of one kind on
one line. A summary and a table of all nodes follow:

  STATE   ready, or the error code that says why not; late when it has not renewed its
          pulse in time, gone when its pulse is gone, unknown while the store does not
          answer the asked node
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
IDs per second (each node reports its 32 busiest), and the holders of node IDs,
from the part of the log that the asked node has read. With --json it prints the
server's answer, which includes the last known values.

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
	text := p.problemText(s) + "\n" + summary(s) + sections(p.membersTable(s, wide), p.joinTable(s.Joins, true))
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
		states[stateOf(m.Pulse)]++
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

// States of a member that does not say how it is.
const (
	stateUnknown = "unknown"
	stateGone    = "gone"
	stateLate    = "late"
	stateReady   = "ready"
)

func stateOf(p calls.Pulse) string {
	switch {
	case p.Alive != nil && !*p.Alive:
		return stateGone
	case p.Fresh && p.Vitals == nil:
		return "alive" // a version without vital signs
	case p.Fresh && p.Vitals.Ready:
		return stateReady
	case p.Fresh:
		return cmp.Or(console.Shown(p.Vitals.Code), "not_ready")
	case p.Alive == nil:
		return stateUnknown
	default:
		return stateLate
	}
}

func stateColour(state string) console.Colour {
	switch state {
	case stateReady, "alive":
		return console.Green
	case stateLate, stateUnknown, string(codes.Waiting), string(codes.Detached):
		return console.Yellow
	default:
		return console.Red
	}
}

// membersTable describes all members, by name.
func (p *program) membersTable(s calls.Status, wide bool) string {
	columns := []console.Column{
		{Head: "NODE"},
		{Head: "MEMBER"},
		{Head: "STATE", Colour: p.colours(stateColour)},
		{Head: "IDS/S", Right: true},
		{Head: "CLOCK", Right: true},
		{Head: "LEFT", Right: true},
		{Head: "STORE", Right: true},
		{Head: "UP", Right: true},
		{Head: "SEEN", Right: true},
	}
	if wide {
		columns = append(columns, console.Column{Head: "GIVEN", Right: true},
			console.Column{Head: "JUDGED", Right: true}, console.Column{Head: "WATCHES"},
			console.Column{Head: "JOINED AT", Right: true}, console.Column{Head: "VERSION"},
			console.Column{Head: "ADDRESSES"})
	}
	names := calls.Names(s)
	members := slices.SortedFunc(slices.Values(s.Members), func(a, b calls.StatusMember) int {
		return cmp.Or(cmp.Compare(names[a.ID], names[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	var rows [][]string
	for _, m := range members {
		name := printable(names[m.ID])
		if m.Owner == "" {
			name = "-"
		}
		row := append([]string{name, console.Shown(m.ID), stateOf(m.Pulse)}, vitalColumns(m.Pulse, s.At)...)
		if wide {
			row = append(row, wideColumns(m, s.At)...)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return "no members\n"
	}
	return console.Table(columns, rows)
}

// vitalColumns are IDS/S to SEEN. What is not confirmed is left out.
func vitalColumns(p calls.Pulse, now time.Time) []string {
	row := []string{"-", "-", "-", "-", "-", "-"}
	if p.AsOf != nil {
		row[5] = short(now.Sub(*p.AsOf).Round(time.Second))
	}
	v := p.Vitals
	if !p.Fresh || v == nil {
		return row
	}
	row[0] = console.Number(v.Rate)
	if v.Others > 0 {
		row[1] = short(v.Offset.Round(100 * time.Millisecond))
		if v.Offset >= 0 {
			row[1] = "+" + row[1]
		}
	}
	if v.Left != 0 && p.AsOf != nil {
		row[2] = short((v.Left - now.Sub(*p.AsOf)).Round(time.Second))
	}
	if v.RoundTrip > 0 {
		row[3] = short(v.RoundTrip)
	}
	if !v.Since.IsZero() {
		row[4] = short(now.Sub(v.Since).Round(time.Second))
	}
	return row
}

// wideColumns are GIVEN to ADDRESSES. The last two are of use also where they are not confirmed.
func wideColumns(m calls.StatusMember, now time.Time) []string {
	row := []string{"-", "-", "nobody", strconv.FormatInt(m.Joined, 10), "-", "-"}
	if m.Watches != "" {
		row[2] = console.Shown(m.Watches)
	}
	v := m.Vitals
	if v == nil {
		return row
	}
	if m.Fresh {
		row[0] = console.Number(float64(v.Given))
		if !v.Judged.IsZero() {
			row[1] = short(now.Sub(v.Judged).Round(time.Second))
		}
	}
	row[4] = cmp.Or(console.Shown(v.Version), "-")
	var at []string
	for _, protocol := range slices.Sorted(maps.Keys(v.Addresses)) {
		at = append(at, console.Shown(protocol)+"="+console.Shown(v.Addresses[protocol]))
	}
	row[5] = cmp.Or(strings.Join(at, " "), "-")
	return row
}

// memberTable says who watches whom.
func memberTable(members []calls.StatusMember) string {
	columns := []console.Column{{Head: "MEMBER"}, {Head: "WATCHES"}}
	var rows [][]string
	for _, m := range members {
		watches := "nobody"
		if m.Watches != "" {
			watches = console.Shown(m.Watches)
		}
		rows = append(rows, []string{console.Shown(m.ID), watches})
	}
	if len(rows) == 0 {
		return "no members\n"
	}
	return console.Table(columns, rows)
}

func (p *program) joinTable(joins []calls.StatusJoin, owners bool) string {
	columns := []console.Column{
		{Head: "JOINER"},
		{Head: "TARGET"},
		{Head: "PHASE"},
		{Head: "OWNER", Colour: p.colours(ownerColour)},
	}
	var rows [][]string
	for _, j := range joins {
		rows = append(rows,
			[]string{console.Shown(j.Joiner), console.Shown(j.Target), console.Shown(j.Phase), owner(j.Pulse)})
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
func owner(p calls.Pulse) string {
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

func sequencerTable(sequencers []calls.StatusSequencer) string {
	columns := []console.Column{
		{Head: "SEQUENCER"},
		{Head: "NODE IDS", Right: true},
		{Head: "FREE", Right: true},
		{Head: "IDS/S", Right: true},
		{Head: "FOR"},
		{Head: "LAYOUT"},
	}
	var rows [][]string
	for _, s := range sequencers {
		rate := "-"
		if s.Given != nil {
			rate = console.Number(*s.Given)
		}
		capacity := s.Free + int64(len(s.Nodes))
		rows = append(rows, []string{
			console.Shown(s.Name), strconv.FormatInt(capacity, 10), strconv.FormatInt(s.Free, 10), rate,
			forText(s), s.Definition.IDLayout().String(),
		})
	}
	return console.Table(columns, rows)
}

func nodeTable(sequencers []calls.StatusSequencer) string {
	columns := []console.Column{{Head: "SEQUENCER"}, {Head: "NODE ID", Right: true}, {Head: "MEMBER"}}
	var rows [][]string
	for _, s := range sequencers {
		for _, node := range slices.Sorted(maps.Keys(s.Nodes)) {
			rows = append(rows,
				[]string{console.Shown(s.Name), strconv.FormatInt(node, 10), console.Shown(s.Nodes[node])})
		}
		for _, member := range s.Waiting {
			rows = append(rows, []string{console.Shown(s.Name), "waiting", console.Shown(member)})
		}
	}
	return console.Table(columns, rows)
}
