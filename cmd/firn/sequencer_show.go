package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/sequencer"
)

const showHelp = `Show shows a sequencer: its definition, how many nodes get its node IDs now,
which nodes have them or are drained, and whether the asked server is attached
or waits for a node ID.

With --json it prints the server's answer.`

func (p *program) showCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one sequencer",
		Long:    showHelp,
		Example: "  firn sequencer show orders",
		Args:    oneName,
	}
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var s calls.StatusSequencer
			return p.show(ctx, ask, remote.SequencerPath(args[0], ""), &s, o.json, func() string {
				if s.Definition.Claimed() {
					return sequencerText(s)
				}
				one := []calls.StatusSequencer{s}
				addOthers(ctx, ask, one)
				return sequencerText(s) + sections(nodeTable(one))
			})
		})
	}
	return c
}

// sequencerText describes a sequencer, without a table of its nodes.
func sequencerText(s calls.StatusSequencer) string {
	here := console.ShownText(hereText(s))
	if s.Here.Why != "" && s.Here.State != peer.Detached.String() {
		here += ": " + console.ShownText(s.Here.Why)
	}
	lines := append(definitionLines(s), [2]string{"created", fmt.Sprintf("at position %d", s.Created)})
	if s.Share != nil {
		lines = append(lines, [2]string{"policy", shareText(*s.Share) + " of the nodes"})
	}
	for _, id := range s.Drained {
		lines = append(lines, [2]string{"drained", console.Shown(id)})
	}
	return linesText(append(append(lines, reservationLines(s)...), [2]string{"here", here}))
}

// definitionLines describes what a sequencer is created with.
func definitionLines(s calls.StatusSequencer) [][2]string {
	if s.Definition.Kind == cluster.Counter {
		return counterLines(s)
	}
	l := s.Definition.IDLayout()
	lines := [][2]string{
		{"sequencer", console.Shown(s.Name)},
		{"layout", l.String()},
	}
	if s.Definition.Claimed() {
		lines = append(lines, orderLine)
	} else {
		lines = append(lines, [2]string{"nodes", nodesText(s)},
			[2]string{"IDs", fmt.Sprintf("%s a second under each node ID, %s in each tick", console.Number(s.Rate),
				console.Number(math.Ldexp(1, l.SequenceBits)))})
	}
	lines = append(lines,
		[2]string{"numbers", numbersText(idBits(s.Definition))},
		[2]string{"until", moment(s.Until) + timeLeft(time.Until(s.Until))})
	if after := s.Definition.After; after != 0 {
		lines = append(lines, [2]string{"after", after.String()})
	}
	if s.Definition.Attach == cluster.AttachExplicit {
		lines = append(lines, [2]string{"attach", "explicit: only firn sequencer attach has a node attach"})
	}
	if window := s.Definition.Window; window != 0 {
		lines = append(lines, [2]string{"window", window.String()})
	}
	if prefix := s.Definition.Prefix; prefix != "" {
		lines = append(lines, [2]string{"prefix", prefix})
	}
	if s.Definition.Scattered {
		lines = append(lines,
			[2]string{"scattered", "IDs are keys all over the range of numbers, and do not sort by time"})
	}
	if s.Definition.RandomStart {
		lines = append(lines, [2]string{"start", "the sequence of each tick begins at a random number"})
	}
	return append(lines, countLines(s)...)
}

var orderLine = [2]string{"order", "strict: each ID is greater than all that were given before"}

// counterLines is definitionLines of a counter.
func counterLines(s calls.StatusSequencer) [][2]string {
	d := s.Definition
	lines := [][2]string{{"sequencer", console.Shown(s.Name)}, {"kind", "counter"}}
	if d.After != 0 {
		lines = append(lines, [2]string{"after", d.After.String()})
	}
	if dated := d.Dated; dated.Every != 0 {
		lines = append(lines,
			[2]string{"dated", fmt.Sprintf("%v, then %s", dated.Every, console.Plural(int64(dated.Digits), "digit"))},
			[2]string{"zone", cmp.Or(dated.Zone, "UTC")})
	} else {
		lines = append(lines, [2]string{"max", d.Last().String()})
	}
	if d.Order == cluster.OrderStrict {
		lines = append(lines, orderLine)
	}
	if d.Prefix != "" {
		lines = append(lines, [2]string{"prefix", d.Prefix})
	}
	return append(lines, countLines(s)...)
}

// countLines says how far a sequencer whose IDs are claimed is.
func countLines(s calls.StatusSequencer) (lines [][2]string) {
	if s.Count == nil {
		return nil
	}
	lines = [][2]string{{"reserved", "up to " + s.Count.Reserved.String()}}
	if s.Count.Lost {
		lines = append(lines,
			[2]string{"lost", "the store has lost data; firn sequencer resume " + console.Shown(s.Name) +
				" --after N"})
	}
	return lines
}

// idBits is how many bits the IDs have.
func idBits(d cluster.Definition) int {
	if d.Scattered {
		return 63
	}
	return d.IDLayout().Bits()
}

func linesText(lines [][2]string) string {
	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&text, "%-9s  %s\n", l[0], l[1])
	}
	return text.String()
}

// timeLeft says that a layout's time ends within a year, or has ended.
func timeLeft(left time.Duration) string {
	switch {
	case left <= 0:
		return " (over)"
	case left < sequencer.MinLifetimeLeft:
		return fmt.Sprintf(" (in %.0f days)", left.Hours()/24)
	default:
		return ""
	}
}

// nodesText says how many nodes there can be.
func nodesText(s calls.StatusSequencer) string {
	text := strconv.FormatInt(s.Definition.Nodes, 10)
	if all := s.Definition.Capacity(); all != s.Definition.Nodes {
		text += fmt.Sprintf(", rounded up to %s", console.Plural(all, "node ID"))
	}
	if nodes, err := s.Region.Nodes(s.Definition); err == nil && s.Region != (cluster.Region{}) {
		text += fmt.Sprintf(", of which the region %v has %s, %d to %d", s.Region,
			console.Plural(nodes.Size(), "node ID"), nodes.From, nodes.To)
	}
	text += fmt.Sprintf(", for %v", allocationOf(s))
	if created := s.Definition.Allocation; allocationOf(s) != created {
		text += fmt.Sprintf(" (created for %v)", created)
	}
	_, free := s.NodeIDs()
	text += fmt.Sprintf("; %d held, ", len(s.Nodes))
	if reserved := s.Capacity - int64(len(s.Nodes)) - free; reserved > 0 {
		text += fmt.Sprintf("%d reserved, ", reserved)
	}
	text += fmt.Sprintf("%d free", free)
	if d := datacenters(s.Definition.IDLayout()); d != "" {
		text += "; " + d
	}
	return text
}

// reservationLines says which node IDs are reserved.
func reservationLines(s calls.StatusSequencer) (lines [][2]string) {
	for _, r := range s.Reservations {
		lines = append(lines, [2]string{"reserved", fmt.Sprintf("%s for %s since %s", console.Stretches(r.Nodes),
			console.Shown(r.For), moment(r.Since))})
	}
	return lines
}

func datacenters(l firn.Layout) string {
	if l.DatacenterBits == 0 {
		return ""
	}
	return fmt.Sprintf("in %d datacenters of %d", int64(1)<<l.DatacenterBits, int64(1)<<l.NodeBits)
}
