package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/idtext"
	"github.com/firn-id/firn/sequencer"
)

const layoutHelp = `Layout lists the presets, or shows one layout in detail: how it splits the bits
of an ID, when its time begins and ends, and how many nodes and IDs it allows.
Layouts are for IDs that begin with a time: for other orders, such as numbers
without gaps, see firn sequencer create --help.

How many IDs a second must one node make? With --rate it shows the layout with
as many nodes as can make that many each: the bits of the others go to the
sequence. Of a sequencer, firn sequencer create --rate does the same.

A layout is a preset, or bits as time/node/sequence or
time/datacenter/node/sequence, followed by @ and the tick if that is not 1ms.

With --at it prints the first and the last ID of the tick at a time instead, for
queries of a range: WHERE id BETWEEN the first of one time AND the last of
another. The formats of times are those of firn cluster log: 03:12, "2026-11-22
03:12", 15m, or RFC 3339. The IDs of a scattered sequencer do not sort by time.`

const layoutExamples = `  firn layout
  firn layout twitter
  firn layout --rate 10000000
  firn layout 39/5/11/8@10ms --epoch 2024-01-01 --json
  firn layout default --at 2026-11-21T03:25:36.425Z
  firn layout default --at 15m --form uuid --sequencer orders`

func (p *program) layoutCommand() *cobra.Command {
	var asJSON bool
	var at setting.Instant // zero: none is asked for
	var form idtext.Form
	var name string // of a sequencer; empty: the default one
	var rate int64  // 0: any
	epoch := layoutFlags{}
	c := &cobra.Command{
		Use:       "layout [LAYOUT]",
		Short:     "List the layouts of IDs, or show one",
		Long:      layoutHelp,
		Example:   layoutExamples,
		ValidArgs: presetNames(),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%q: firn layout takes one layout at most", args[1])
			}
			return nil
		},
	}
	epoch.addEpoch(c.Flags())
	setting.Add(c.Flags(), &at, "at", "time", "",
		"print the first and the last ID of this time, such as 03:12 or RFC 3339", setting.ParseInstant)
	addForm(c, &form, "decimal", []string{"decimal", "hex", "base32", "base58", "base62", "checked", "uuid"},
		idtext.ParseForm)
	setting.Add(c.Flags(), &name, "sequencer", "name", "",
		"the sequencer of the UUIDs, which contain a tag of its name\n(default: default)",
		func(name string) (string, error) { return name, cluster.CheckName(name) })
	setting.Number(c.Flags(), &rate, "rate", "", 1,
		"how many IDs a second one node must be able to make")
	setting.Bool(c.Flags(), &asJSON, "json", "print a JSON object for each layout, one per line")
	c.RunE = func(c *cobra.Command, args []string) error {
		if at.IsZero() && c.Flags().Changed("form") {
			return usagef("--form goes with --at; a layout alone has no IDs to write")
		}
		if name != "" && form != idtext.UUID {
			return usagef("--sequencer goes with --form uuid; no other text depends on it")
		}
		if form.NeedsServer() {
			return usagef("--form %v goes with a server: a layout has no prefix and no key", form)
		}
		shown := firn.Presets()
		if rate != 0 && len(args) == 0 {
			args = []string{"default"}
		}
		if len(args) == 1 {
			l, err := firn.ParseLayout(args[0])
			if err != nil {
				return usageError{err}
			}
			epoch.layout = l
			if l, err = epoch.chosen(); err != nil {
				return err
			}
			shown = []firn.Preset{{Name: args[0], Layout: l}}
			if rate != 0 {
				d, err := sequencer.Define(l).ForRate(float64(rate))
				if err != nil {
					return usagef("--rate: %w", err)
				}
				shown[0] = firn.Preset{Name: layoutText(d.IDLayout()), Layout: d.IDLayout()}
			}
		} else if !epoch.epoch.IsZero() {
			return usagef("--epoch changes one layout; name it, as in: firn layout default --epoch 2024-01-01")
		} else if !at.IsZero() {
			return usagef("--at goes with one layout; name it, as in: firn layout default --at 2026-11-21T03:25:36Z")
		}
		switch {
		case !at.IsZero():
			return p.layoutSpan(idtext.Sequencer{Name: name, Layout: shown[0].Layout}, at.Time, form, asJSON)
		case asJSON:
			return p.layoutsJSON(shown)
		case len(args) == 1:
			return p.layoutDetail(shown[0])
		default:
			return p.layoutTable(shown)
		}
	}
	return c
}

// layoutText is a layout as --layout takes it, without the epoch, and says whether it wants --node-lowest, too.
func layoutText(l firn.Layout) string {
	lowest := l.NodeLowest
	l.NodeLowest = false
	text, _, _ := strings.Cut(l.String(), ", ")
	if l.Tick != time.Millisecond {
		text += "@" + l.Tick.String()
	}
	if lowest {
		text += " --node-lowest"
	}
	return text
}

func (p *program) layoutTable(presets []firn.Preset) error {
	columns := []console.Column{
		{Head: "LAYOUT"},
		{Head: "BITS"},
		{Head: "TICK", Right: true},
		{Head: "FROM"},
		{Head: "UNTIL"},
		{Head: "NODES", Right: true},
		{Head: "IDS/S PER NODE", Right: true},
		{Head: "IN JAVASCRIPT"},
	}
	var rows [][]string
	for _, l := range presets {
		rows = append(rows, []string{
			l.Name, bits(l.Layout), l.Tick.String(), l.Epoch.Format(time.DateOnly),
			calls.Until(l.Layout).Format(time.DateOnly),
			strconv.FormatInt(l.NodeIDs(), 10), console.Number(l.Rate()), asDouble(l.Layout),
		})
	}
	return p.printf("%s", console.Table(columns, rows))
}

func (p *program) layoutDetail(l firn.Preset) error {
	nodes := fmt.Sprintf("%d", l.NodeIDs())
	if d := datacenters(l.Layout); d != "" {
		nodes += ", " + d
	}
	return p.printf("%s\n%-9s %s\n%-9s %v\n%-9s %s\n%-9s %s\n%-9s %s\n"+
		"%-9s %s a second under each node ID, %s in each tick\n%-9s %s\n",
		picture(l.Layout),
		"layout", l.Name,
		"tick", l.Tick,
		"from", l.Epoch.Format(time.RFC3339Nano),
		"until", calls.Until(l.Layout).Format(time.RFC3339Nano),
		"nodes", nodes,
		"IDs", console.Number(l.Rate()), console.Number(math.Ldexp(1, l.SequenceBits)),
		"numbers", numbersText(l.Bits()))
}

// layoutSpan prints the first and the last ID of a tick.
func (p *program) layoutSpan(q idtext.Sequencer, at time.Time, form idtext.Form, asJSON bool) error {
	span, err := calls.SpanOf(q.Layout, at)
	if err != nil {
		return usagef("--at: %w", err)
	}
	text, err := q.In(form)
	if err != nil {
		return err
	}
	first, err1 := text(nil, firn.ID(span.First))
	last, err2 := text(nil, firn.ID(span.Last))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !asJSON {
		return p.printf("%-6s %d\n%-6s %s\n%-6s %s\n%-6s %s\n", "tick", span.Tick, "time", span.Time, "first",
			first, "last", last)
	}
	printed := struct {
		First firn.ID `json:"first"` // in place of numbers, which jq rounds
		Last  firn.ID `json:"last"`
		calls.Span
		Form      string `json:"form,omitempty"` // of the texts; empty: there are none
		FirstText string `json:"first_text,omitempty"`
		LastText  string `json:"last_text,omitempty"`
	}{Span: span, First: firn.ID(span.First), Last: firn.ID(span.Last)}
	if form != idtext.Decimal {
		printed.Form, printed.FirstText, printed.LastText = form.String(), string(first), string(last)
	}
	return json.NewEncoder(p.stdout).Encode(printed)
}

// doubleBits is how many bits of a whole number are exact where numbers are doubles, as in JavaScript.
const doubleBits = 53

func asDouble(l firn.Layout) string {
	if l.Bits() > doubleBits {
		return "rounded"
	}
	return "exact"
}

// numbersText says whether IDs are exact as numbers everywhere.
func numbersText(bits int) string {
	if bits > doubleBits {
		return fmt.Sprintf("%d bits; JavaScript keeps %d: use text there, or --layout javascript", bits, doubleBits)
	}
	return fmt.Sprintf("%d bits; exact in JavaScript", bits)
}

// field is one of a layout's fields.
type field struct {
	name string
	bits int
}

// fields are those that have bits, from the highest.
func fields(l firn.Layout) []field {
	all := []field{
		{"time", l.TimeBits},
		{"datacenter", l.DatacenterBits},
		{"node", l.NodeBits},
		{"sequence", l.SequenceBits},
	}
	if l.NodeLowest {
		all = []field{all[0], all[3], all[1], all[2]}
	}
	some := all[:0]
	for _, f := range all {
		if f.bits > 0 {
			some = append(some, f)
		}
	}
	return some
}

// picture draws the bits, with the number of the lowest bit of each field above it.
func picture(l firn.Layout) string {
	var above, edge, row strings.Builder
	at := 0
	for _, f := range fields(l) {
		at += f.bits
	}
	for _, f := range fields(l) {
		text := fmt.Sprintf(" %s %d ", f.name, f.bits)
		fmt.Fprintf(&above, "%-*d", len(text)+1, at)
		edge.WriteString("+" + strings.Repeat("-", len(text)))
		row.WriteString("|" + text)
		at -= f.bits
	}
	return fmt.Sprintf("%s0\n%s+\n%s|\n%[2]s+\n", &above, &edge, &row)
}

// bits prints the split in the order of the fields.
func bits(l firn.Layout) string {
	var text []string
	for _, f := range fields(l) {
		text = append(text, fmt.Sprintf("%s %d", f.name, f.bits))
	}
	return strings.Join(text, ", ")
}

func (p *program) layoutsJSON(presets []firn.Preset) error {
	e := json.NewEncoder(p.stdout)
	for _, l := range presets {
		err := e.Encode(struct {
			Name           string  `json:"name"`
			Epoch          string  `json:"epoch"`
			Until          string  `json:"until"`
			TickNS         int64   `json:"tick_ns"`
			TimeBits       int     `json:"time_bits"`
			DatacenterBits int     `json:"datacenter_bits"`
			NodeBits       int     `json:"node_bits"`
			SequenceBits   int     `json:"sequence_bits"`
			NodeLowest     bool    `json:"node_lowest"`
			NodeIDs        int64   `json:"node_ids"`
			IDsPerSecond   float64 `json:"ids_per_second_and_node"`
			Exact          bool    `json:"exact_in_javascript"`
		}{
			l.Name, l.Epoch.Format(time.RFC3339Nano), calls.Until(l.Layout).Format(time.RFC3339Nano), int64(l.Tick),
			l.TimeBits, l.DatacenterBits, l.NodeBits, l.SequenceBits, l.NodeLowest, l.NodeIDs(), l.Rate(),
			l.Bits() <= doubleBits,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
