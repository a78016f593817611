package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/console"
	"github.com/firn-id/firn/internal/idtext"
	"github.com/firn-id/firn/internal/remote"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/setting"
)

const decodeHelp = `Decode shows when and by which node IDs were made.

IDs are arguments, or lines of standard input if there is none or it is "-". Digits
are a decimal ID. Decode guesses the encoding of other text, and refuses text that is
an ID in two encodings, or too short to be one: name the encoding with --format.

An ID does not contain its layout. Name the layout, or with --sequencer the sequencer,
whose layout decode then gets from a server. Without both, decode uses the default
layout; if the server that FIRN_ADMIN names runs (by default on this machine), and one
of its sequencers with another layout could have made an ID, decode warns.

Decode reports what it cannot read on standard error, prints the rest, and exits with
status 1. With --json each line is an object: the text as "input", its encoding as
"format", the layout that was used as "layout", and the parts of the ID.`

const decodeExamples = `  firn decode --layout twitter 1541815603606036480
  firn decode --layout discord --json 175928847299117063
  firn id -n 5 --format base58 | firn decode --format base58
  firn id --sequencer orders | firn decode --sequencer orders`

func (p *program) decodeCommand() *cobra.Command {
	var layout layoutFlags
	var format, name string
	var ask serverFlags
	var asJSON bool
	c := &cobra.Command{
		Use:     "decode [ID...]",
		Short:   "Show when and by which node IDs were made",
		Long:    decodeHelp,
		Example: decodeExamples,
	}
	flags := c.Flags()
	formats := append([]string{"auto"}, idtext.Encodings()...)
	setting.Add(flags, &format, "format", "format", "auto", "the encoding of the IDs: "+strings.Join(formats, ", "), setting.OneOf(formats...))
	must(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	layout.add(c, flags)
	addSequencer(flags, &name, "the sequencer that made the IDs, instead of --layout and --epoch")
	ask.addPublic(flags)
	setting.Bool(flags, &asJSON, "json", "print a JSON object for each ID, one per line")
	c.RunE = func(c *cobra.Command, args []string) error {
		chosen, err := p.layoutToDecode(c, name, &ask, &layout)
		if err != nil {
			return err
		}
		read, err := idtext.Reader(format)
		if err != nil {
			return usageError{err}
		}
		d := decoder{program: p, layout: chosen, read: read, columns: partsColumns(chosen)}
		if name == "" && !flags.Changed("layout") && !flags.Changed("epoch") {
			d.others = p.sequencers(c)
		}
		d.print = d.printRow
		if asJSON {
			d.print = d.printJSON
		}
		if err = d.all(args); err == nil && d.bad > 0 {
			err = errReported
		}
		return err
	}
	return c
}

// layoutToDecode is the layout of the sequencer that the flags name, or of the flags themselves.
func (p *program) layoutToDecode(c *cobra.Command, name string, ask *serverFlags, layout *layoutFlags) (firn.Layout, error) {
	flags := c.Flags()
	if name == "" {
		for _, asks := range ask.names() {
			if flags.Changed(asks) {
				return firn.Layout{}, usagef("--%s goes with --sequencer; without, nobody is asked", asks)
			}
		}
		if err := p.fromEnvironment(flags, "layout", "epoch"); err != nil {
			return firn.Layout{}, err
		}
		return layout.chosen()
	}
	for _, other := range []string{"layout", "epoch"} {
		if flags.Changed(other) {
			return firn.Layout{}, usagef("--sequencer and --%s exclude each other; a sequencer has its own", other)
		}
	}
	if err := p.fromEnvironment(flags, ask.names()...); err != nil {
		return firn.Layout{}, err
	}
	client, err := ask.client()
	if err != nil {
		return firn.Layout{}, err
	}
	var s server.StatusSequencer
	if _, err := client.Call(c.Context(), http.MethodGet, remote.SequencerPath(name, ""), nil, &s); err != nil {
		return firn.Layout{}, err
	}
	return s.Definition.IDLayout(), nil
}

// decoder prints one ID after the other.
type decoder struct {
	*program
	layout  firn.Layout
	read    func(string) (firn.ID, *firn.Encoding, error)
	print   func(decoded) error
	columns []console.Column
	others  []server.StatusSequencer // that may have made an ID instead; nil once that was said
	rows    int                      // printed so far
	bad     int                      // reported so far
}

// decoded is an ID as it was given, and what it says.
type decoded struct {
	Input  string `json:"input"`
	Format string `json:"format"`
	Layout string `json:"layout"` // that was used
	server.Parts
}

func (d *decoder) all(args []string) error {
	if len(args) > 0 && (len(args) > 1 || args[0] != "-") {
		for _, text := range args {
			if err := d.one(text); err != nil {
				return err
			}
		}
		return nil
	}
	lines := bufio.NewScanner(d.stdin)
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		if err := d.one(text); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading standard input: %w", err)
	}
	return nil
}

// one prints an ID, or reports what is wrong with it. The error is that of printing.
func (d *decoder) one(text string) error {
	id, encoding, err := d.read(text)
	if err == nil {
		var parts server.Parts
		if parts, err = server.Decode(d.layout, id); err == nil {
			d.doubt(id)
			return d.print(decoded{text, encoding.String(), d.layout.String(), parts})
		}
	}
	d.bad++
	d.report(err)
	return nil
}

// doubt warns once, if a sequencer with another layout than the one that is used could have made an ID.
func (d *decoder) doubt(id firn.ID) {
	var names []string
	for _, s := range d.others {
		l := s.Definition.IDLayout()
		at, err := l.Time(id)
		if err == nil && l.String() != d.layout.String() && !at.After(time.Now()) {
			names = append(names, fmt.Sprintf("%s (%v)", s.Name, l))
		}
	}
	if len(names) > 0 {
		d.warnf("decoded by the layout %v; but %v may also be an ID of the sequencer %s: --sequencer says which", d.layout, id, strings.Join(names, ", or "))
		d.others = nil
	}
}

func (d *decoder) printJSON(v decoded) error { return json.NewEncoder(d.stdout).Encode(v) }

func (d *decoder) printRow(v decoded) error {
	if d.rows == 0 {
		if err := d.printf("%s", console.Row(d.columns, nil)); err != nil {
			return err
		}
	}
	d.rows++
	values := []string{v.IDStr, v.Time, strconv.FormatInt(v.NodeID, 10)}
	if d.layout.DatacenterBits > 0 {
		values = append(values, strconv.FormatInt(v.Datacenter, 10), strconv.FormatInt(v.Node, 10))
	}
	return d.printf("%s", console.Row(d.columns, append(values, strconv.FormatInt(v.Sequence, 10))))
}

// partsColumns are wide enough for every ID of the layout, so that rows can be printed as they come.
func partsColumns(l firn.Layout) []console.Column {
	digits := func(bits int) int { return len(strconv.FormatUint(1<<bits-1, 10)) }
	nodeBits := l.DatacenterBits + l.NodeBits
	columns := []console.Column{
		{Head: "ID", Width: digits(l.TimeBits + nodeBits + l.SequenceBits), Right: true},
		{Head: "TIME", Width: len("2026-01-01T00:00:00.000Z")},
		{Head: "NODE ID", Width: digits(nodeBits), Right: true},
	}
	if l.DatacenterBits > 0 {
		columns = append(columns, console.Column{Head: "DATACENTER", Width: digits(l.DatacenterBits), Right: true}, console.Column{Head: "NODE", Width: digits(l.NodeBits), Right: true})
	}
	return append(columns, console.Column{Head: "SEQUENCE", Width: digits(l.SequenceBits), Right: true})
}
