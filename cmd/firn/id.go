package main

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/idtext"
)

const idHelp = `Id prints new IDs, one per line, in the order in which they were made. It takes
them from a server, at most 100000 with each call, from the default sequencer or
the one that --sequencer names (firn sequencer list shows them).

--form chooses how IDs are written. Prefixed IDs begin with the prefix of their
sequencer. Checked ones end with two check digits, by which mistakes are found.
The server seals IDs with a key, so that strangers can't tell their order.

--after has all of them exceed an ID, whichever server made it.

With --local it makes the IDs itself, under the node ID that --node gives. IDs
of successive runs on one machine are unique. Runs at the same time, or under
the same node ID on other machines, can give the same IDs: use firn serve for
those.`

const idExamples = `  firn id
  firn id -n 1000000 --form base32 > ids.txt
  firn id --server http://ids.example.org:8080 --json
  firn id --sequencer orders
  firn id --local --layout twitter --node 378`

// idOptions are the flags of firn id.
type idOptions struct {
	count  int64
	form   idtext.Form
	json   bool
	after  firn.ID // the IDs exceed this one; zero: any
	server serverFlags
	name   string // of the sequencer; empty: the default one
	local  bool
	node   int64
	layout layoutFlags
}

func (p *program) idCommand() *cobra.Command {
	var o idOptions
	c := &cobra.Command{
		Use:     "id",
		Short:   "Print new IDs",
		Long:    idHelp,
		Example: idExamples,
		Args:    noArguments,
	}
	flags := c.Flags()
	setting.Number(flags, &o.count, "count,n", "1", 1, "how many IDs")
	addForm(c, &o.form, "decimal", idtext.Names(), idtext.ParseForm)
	setting.Bool(flags, &o.json, "json", "print a JSON object for each ID, one per line")
	o.server.addPublic(flags)
	addSequencer(flags, &o.name, "the sequencer to take IDs from (default: default)")
	setting.Add(flags, &o.after, "after", "ID", "", "an ID that the new ones exceed, in decimal", firn.Decimal.Parse)
	setting.Bool(flags, &o.local, "local", "make the IDs in this process, and ask no server")
	setting.Number(flags, &o.node, "node", "0", 0, "the node ID to use; only with --local")
	o.layout.add(c, flags)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if o.local && o.form.NeedsServer() {
			return usagef("--form %v goes with a server: --local has no prefix and no key", o.form)
		}
		for _, name := range []string{"node", "layout", "epoch"} {
			if flags.Changed(name) && !o.local {
				return usagef("--%s goes with --local; a server has its own", name)
			}
		}
		for _, name := range append(o.server.names(), "sequencer", "after") {
			if flags.Changed(name) && o.local {
				return usagef("--%s and --local exclude each other", name)
			}
		}
		if err := p.fromEnvironment(flags, append(o.server.names(), "layout", "epoch")...); err != nil {
			return err
		}
		ctx := untilSignal(c.Context())
		return interrupted(ctx, p.printIDs(ctx, o))
	}
	return c
}

// line is an ID as it is printed.
type line struct {
	id   firn.ID // negative: it is sealed, and this caller may not open it
	text string  // empty: it is made of the ID
}

// source gives the next IDs, in the order in which they were made: as many as lines has room for.
type source func(ctx context.Context, lines []line) error

// source is where the IDs come from, and what to do after the last.
func (o idOptions) source(ctx context.Context) (next source, end func() error, err error) {
	var fill func(context.Context, []firn.ID) error
	if o.local {
		l, err := newLocal(o)
		if err != nil {
			return nil, nil, err
		}
		fill, end = l.Fill, func() error { return l.end(ctx) }
	} else {
		c, err := o.server.client()
		if err != nil {
			return nil, nil, err
		}
		c.Sequencer, c.After, c.Hint = o.name, o.after, c.Hint+", and --local asks nobody"
		fill, end = c.Fill, func() error { return nil }
		if o.form.Encoding() == nil {
			return fromServer(c, o.form), end, nil
		}
	}
	ids := make([]firn.ID, min(o.count, calls.MaxCount))
	return func(ctx context.Context, lines []line) error {
		if err := fill(ctx, ids[:len(lines)]); err != nil {
			return err
		}
		for i := range lines {
			lines[i].id = ids[i]
		}
		return nil
	}, end, nil
}

// fromServer takes IDs of which the server knows the text.
func fromServer(c remote.Client, form idtext.Form) source {
	return func(ctx context.Context, lines []line) error {
		all, ids, err := c.Texts(ctx, form.String(), len(lines))
		if err != nil {
			return err
		}
		for i := range lines {
			lines[i] = line{-1, all[i]}
			if ids != nil {
				lines[i].id = ids[i]
			}
		}
		return nil
	}
}

func (p *program) printIDs(ctx context.Context, o idOptions) error {
	next, end, err := o.source(ctx)
	if err != nil {
		return err
	}
	write, err := o.writer()
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(p.stdout, 64<<10)
	lines := make([]line, min(o.count, calls.MaxCount))
	for left := o.count; left > 0; left -= int64(len(lines)) {
		lines = lines[:min(int64(len(lines)), left)]
		if err := next(ctx, lines); err != nil {
			return err
		}
		if err := printBatch(out, lines, write, o); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return end()
}

// writer is what makes the texts that no server makes.
func (o idOptions) writer() (idtext.Append, error) {
	if !o.local && o.form.Encoding() == nil {
		return nil, nil
	}
	layout, err := o.layout.chosen()
	if err != nil {
		return nil, err
	}
	return idtext.Sequencer{Layout: layout}.In(o.form)
}

func printBatch(out *bufio.Writer, lines []line, write idtext.Append, o idOptions) (err error) {
	var b, text []byte
	for _, l := range lines {
		if text = append(text[:0], l.text...); l.text == "" {
			if text, err = write(text, l.id); err != nil {
				return err
			}
		}
		if b = append(b[:0], text...); o.json {
			b = appendJSON(b[:0], l.id, o.form, text)
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

func appendJSON(b []byte, id firn.ID, form idtext.Form, text []byte) []byte {
	if id < 0 {
		return fmt.Appendf(b, `{%q:%q}`, form, text)
	}
	b = fmt.Appendf(b, `{"id":"%d","id_str":"%[1]d"`, int64(id))
	if form != idtext.Decimal {
		b = fmt.Appendf(b, `,%q:%q`, form, text)
	}
	return append(b, '}')
}

// local makes IDs in this process.
type local struct{ *firn.Generator }

func newLocal(o idOptions) (local, error) {
	layout, err := o.layout.chosen()
	if err != nil {
		return local{}, err
	}
	if o.node >= layout.NodeIDs() {
		return local{}, usagef("--node: the layout %v has node IDs 0 to %d, not %d", layout, layout.NodeIDs()-1, o.node)
	}
	g, err := firn.NewGenerator(layout, o.node)
	return local{g}, err
}

// end waits until the last tick that was used is over, so that the next run can't use it too.
func (l local) end(ctx context.Context) error {
	over := l.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(over)):
		return nil
	}
}
