package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/idtext"
)

const decodeHelp = `Decode shows when, and under which node IDs, IDs were made.

It reads IDs from its arguments, or from standard input, one per line, if there
are none or the argument is "-". It recognises the form of an ID. It refuses
ambiguous texts, such as 16 digits (decimal or hex), and short ones; name their
form with --form. A server opens sealed IDs, if the token has the right open.

An ID does not contain its layout. Name the layout, or with --sequencer the
sequencer, whose definition decode gets from a server. Only with --sequencer
does decode read scattered and sealed IDs, refuse other prefixes, and warn of a
node ID that no member ever had. The numbers of a counter have no parts.

Without both, decode uses the default layout, and warns if a sequencer of the
server at FIRN_ADMIN (by default on this machine) with another layout could have
made an ID. It warns of times in the future, and names presets that give a past
time. It also warns if more than half of the IDs look rounded by JavaScript.

Decode reports unreadable IDs on standard error, prints the rest, and exits with
status 1. With --json each line is an object: the text as "input", its form as
"form", the layout used as "layout", and the parts of the ID.`

const decodeExamples = `  firn decode --layout twitter 1541815603606036480
  firn decode --layout discord --json 175928847299117063
  firn id -n 5 --form base58 | firn decode --form base58
  firn id --sequencer orders | firn decode --sequencer orders`

func (p *program) decodeCommand() *cobra.Command {
	var layout layoutFlags
	var as *idtext.Form // nil: it is recognised
	var name string
	var ask serverFlags
	var asJSON bool
	c := &cobra.Command{
		Use:     "decode [ID...]",
		Short:   "Show when, and under which node IDs, IDs were made",
		Long:    decodeHelp,
		Example: decodeExamples,
	}
	flags := c.Flags()
	addForm(c, &as, "auto", append([]string{"auto"}, idtext.Names()...), parseAs)
	layout.add(c, flags)
	addSequencer(flags, &name, "the sequencer that made the IDs, instead of --layout and --epoch")
	ask.addPublic(flags)
	setting.Bool(flags, &asJSON, "json", "print a JSON object for each ID, one per line")
	c.RunE = func(c *cobra.Command, args []string) error {
		out := bufio.NewWriterSize(p.stdout, 64<<10)
		buffered := *p
		buffered.stdout = out
		d := decoder{program: &buffered, out: out, as: as}
		err := d.setSequencer(c, name, &ask, &layout)
		if err != nil {
			return err
		}
		if d.sequencer.Kind == cluster.Snowflake {
			d.layout = d.sequencer.Layout.String()
		}
		d.columns = partsColumns(d.sequencer)
		if name == "" && !flags.Changed("layout") && !flags.Changed("epoch") {
			d.others = p.sequencers(c)
		}
		d.print = d.printRow
		if asJSON {
			d.print = d.printJSON
		}
		err = errors.Join(d.all(args), out.Flush())
		if d.warnOfRounding(); err == nil && d.bad > 0 {
			err = errReported
		}
		return err
	}
	return c
}

// parseAs reads the form of IDs; nil: auto.
func parseAs(text string) (*idtext.Form, error) {
	if text == "auto" {
		return nil, nil
	}
	f, err := idtext.ParseForm(text)
	return &f, err
}

// setSequencer sets what is known of the sequencer that the flags name, or only the layout that they choose.
func (d *decoder) setSequencer(c *cobra.Command, name string, ask *serverFlags, layout *layoutFlags) (err error) {
	flags := c.Flags()
	if name == "" {
		for _, asks := range ask.names() {
			if flags.Changed(asks) {
				return usagef("--%s goes with --sequencer; without it, decode asks no server", asks)
			}
		}
		if err := d.fromEnvironment(flags, "layout", "epoch"); err != nil {
			return err
		}
		d.sequencer.Layout, err = layout.chosen()
		return err
	}
	for _, other := range []string{"layout", "epoch"} {
		if flags.Changed(other) {
			return usagef("--sequencer and --%s exclude each other; a sequencer has its own", other)
		}
	}
	if err := d.fromEnvironment(flags, ask.names()...); err != nil {
		return err
	}
	client, err := ask.client()
	if err != nil {
		return err
	}
	var s calls.StatusSequencer
	if _, err := client.Call(c.Context(), http.MethodGet, remote.SequencerPath(name, ""), nil, &s); err != nil {
		return err
	}
	d.status = s
	d.sequencer, d.name, d.never = idtext.Of(name, s.Definition, nil), name, map[int64]bool{}
	d.open = func(text, query string) (parts calls.Parts, err error) {
		_, err = client.Call(c.Context(), http.MethodGet,
			remote.SequencerPath(name, "/ids/"+url.PathEscape(text)+query), nil, &parts)
		if err == nil && parts.Made == nil && s.Definition.Kind == cluster.Snowflake {
			err = fmt.Errorf("the server %s does not say when %.40q was made", client.Base, text)
		}
		return parts, err
	}
	return nil
}

// decoder prints one ID after the other.
type decoder struct {
	*program
	status    calls.StatusSequencer // of the server, if one was asked
	sequencer idtext.Sequencer
	layout    string                                        // of its IDs, as people read it; a counter has none
	as        *idtext.Form                                  // the form of all IDs; nil: it is recognised
	open      func(text, query string) (calls.Parts, error) // asks a server about an ID; nil: none is known
	never     map[int64]bool                                // what it said of each node ID
	name      string                                        // of the sequencer; empty: none is known
	print     func(decoded) error
	columns   []console.Column
	row       []byte                  // the last one that was written; the next takes its place
	others    []calls.StatusSequencer // that may have made an ID instead; nil once that was said
	out       *bufio.Writer           // flushed before decode waits for input, and before it reports
	early     bool                    // it has warned of a time that is still to come
	rows      int                     // printed so far, below a head
	count     int                     // read so far
	rounded   int                     // of them, those that JavaScript may have rounded
	last      string                  // of these
	bad       int                     // reported so far
}

// decoded is an ID as it was given, and what it says.
type decoded struct {
	Input  string `json:"input"`
	Form   string `json:"form"`
	Layout string `json:"layout,omitempty"` // that was used; a counter has none
	calls.Parts
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
	lines := bufio.NewScanner(flushing{d.stdin, d.out})
	for lines.Scan() {
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff")) // a file of Windows begins so
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

// flushing is input that may be waited for, by somebody who reads what was printed before.
type flushing struct {
	io.Reader
	out *bufio.Writer
}

func (f flushing) Read(b []byte) (int, error) {
	if err := f.out.Flush(); err != nil {
		return 0, err
	}
	return f.Reader.Read(b)
}

// one prints an ID, or reports what is wrong with it. The error is that of printing.
func (d *decoder) one(text string) error {
	now := time.Now()
	v, err := d.decode(text, now)
	if err != nil {
		d.bad++
		if err := d.out.Flush(); err != nil {
			return err
		}
		d.report(err)
		return nil
	}
	if v.Made != nil {
		d.doubt(v, now)
		d.ahead(v, now)
		v.NeverHeld = d.open != nil && d.neverHeld(v)
	}
	if v.Form == idtext.Decimal.String() && idtext.Rounded(firn.ID(v.ID)) {
		d.rounded++
		d.last = v.IDStr
	}
	d.count++
	return d.print(v)
}

// warnOfRounding warns if more IDs end as numbers do that JavaScript has rounded than do by chance.
func (d *decoder) warnOfRounding() {
	if 2*d.rounded > d.count {
		d.warnf("%s looks rounded by JavaScript: a program may have read another ID as a number; read id_str, or ask "+
			"for text", d.last)
	}
}

// neverHeld tells whether a server says that no member ever had the node ID. It asks, and warns, once for each.
func (d *decoder) neverHeld(v decoded) bool {
	never, asked := d.never[v.NodeID]
	if !asked {
		parts, err := d.open(v.IDStr, "?as=decimal")
		never = err == nil && parts.NeverHeld
		d.never[v.NodeID] = never
	}
	if never && !asked {
		d.warnf("no member holds, or ever held, node ID %d of %s: %s is from another cluster, or older than the "+
			"sequencer", v.NodeID, d.name, v.IDStr)
	}
	return never
}

func (d *decoder) decode(text string, now time.Time) (v decoded, err error) {
	v.Input, v.Layout = text, d.layout
	form := idtext.Sealed
	if sealed := d.as == nil && idtext.IsSealed(text) || d.as != nil && *d.as == form; sealed {
		if d.open == nil {
			return v, fmt.Errorf("%.40q is sealed, and only a server that has the key can open it: name its sequencer "+
				"with --sequencer", text)
		}
		v.Parts, err = d.open(text, "")
	} else {
		var id firn.ID
		if d.as == nil {
			id, form, err = d.sequencer.Read(text, now)
			err = idtext.Explain(err, "--form ")
		} else {
			form = *d.as
			id, err = d.sequencer.ReadIn(form, text)
		}
		if err == nil {
			v.Parts, err = calls.Decode(d.sequencer, id)
		}
	}
	v.Form = form.String()
	return v, err
}

// doubt warns once, if a sequencer with another layout than the one that is used could have made an ID.
func (d *decoder) doubt(v decoded, now time.Time) {
	id := firn.ID(v.ID)
	var names []string
	for _, s := range d.others {
		if s.Definition.Kind == cluster.Counter {
			continue
		}
		q := idtext.Of(s.Name, s.Definition, nil)
		if _, err := q.ReadIn(idtext.UUID, v.Input); err != nil && v.Form == idtext.UUID.String() {
			continue // it has another tag, or the time of another layout
		}
		at, err := q.Layout.Time(q.Made(id))
		if err == nil && (q.Scattered || q.Layout.String() != d.sequencer.Layout.String()) && !at.After(now) {
			names = append(names, fmt.Sprintf("%s (%v%s)", s.Name, q.Layout, scatteredText(q.Scattered)))
		}
	}
	if len(names) > 0 {
		d.warnf("decoded by the layout %v; but %v may also be an ID of the sequencer %s: name it with --sequencer",
			d.sequencer.Layout, id, strings.Join(names, ", or "))
		d.others = nil
	}
}

// ahead warns once, if an ID would be made only later: its layout is another, or its clock was wrong.
func (d *decoder) ahead(v decoded, now time.Time) {
	at := time.UnixMilli(v.UnixMS)
	if d.early || !at.After(now.Add(ahead)) {
		return
	}
	d.early = true
	var past []string
	for _, l := range firn.Presets() {
		if made, err := l.Time(firn.ID(v.ID)); err == nil && !made.After(now) {
			past = append(past, fmt.Sprintf("%s (%s)", l.Name, made.UTC().Format(time.DateOnly)))
		}
	}
	advice := "its clock was wrong, or its layout is another one"
	if len(past) > 0 && d.open == nil {
		advice = "by another layout it is in the past: " + strings.Join(past, ", ")
	}
	d.warnf("by the layout %v, the time of %s is in the future; %s", d.sequencer.Layout, v.IDStr, advice)
}

// ahead is how far the clock of who made an ID may be ahead of this machine's without a warning.
const ahead = time.Minute
