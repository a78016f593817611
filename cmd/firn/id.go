package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/idtext"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/setting"
)

const idHelp = `Id prints new IDs, one per line, in ascending order. It takes them from a server, at
most 100000 with each call: those of the default sequencer, or of the one that
--sequencer names. firn sequencer list shows the sequencers.

With --local it makes the IDs itself, under the node ID that --node gives. IDs of runs
that follow each other on one machine are unique. Runs at the same time, or under the
same node ID on other machines, can give the same IDs: use firn serve for those.`

const idExamples = `  firn id
  firn id -n 1000000 --format base32 > ids.txt
  firn id --server http://ids.example.org:8080 --json
  firn id --sequencer orders
  firn id --local --layout twitter --node 378`

// idOptions are the flags of firn id.
type idOptions struct {
	count    int64
	encoding *firn.Encoding
	json     bool
	server   serverFlags
	name     string // of the sequencer; empty: the default one
	local    bool
	node     int64
	layout   layoutFlags
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
	setting.Add(flags, &o.encoding, "format", "format", "decimal", "the encoding: "+strings.Join(idtext.Encodings(), ", "), firn.EncodingByName)
	must(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(idtext.Encodings(), cobra.ShellCompDirectiveNoFileComp)))
	setting.Bool(flags, &o.json, "json", "print a JSON object for each ID, one per line")
	o.server.addPublic(flags)
	addSequencer(flags, &o.name, "the sequencer to take IDs from (default: default)")
	setting.Bool(flags, &o.local, "local", "make the IDs in this process, and ask no server")
	setting.Number(flags, &o.node, "node", "0", 0, "the node ID to use; only with --local")
	o.layout.add(c, flags)
	c.RunE = func(c *cobra.Command, _ []string) error {
		for _, name := range []string{"node", "layout", "epoch"} {
			if flags.Changed(name) && !o.local {
				return usagef("--%s goes with --local; a server has its own", name)
			}
		}
		for _, name := range append(o.server.names(), "sequencer") {
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

// source gives the next IDs, in ascending order: as many as ids has room for.
type source func(ctx context.Context, ids []firn.ID) error

// source is where the IDs come from, and what to do after the last.
func (o idOptions) source(ctx context.Context) (next source, end func() error, err error) {
	if o.local {
		l, err := newLocal(o)
		if err != nil {
			return nil, nil, err
		}
		return l.Fill, func() error { return l.end(ctx) }, nil
	}
	c, err := o.server.client()
	if err != nil {
		return nil, nil, err
	}
	c.Sequencer, c.Hint = o.name, c.Hint+", and --local asks nobody"
	return c.Fill, func() error { return nil }, nil
}

func (p *program) printIDs(ctx context.Context, o idOptions) error {
	next, end, err := o.source(ctx)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(p.stdout, 64<<10)
	ids := make([]firn.ID, min(o.count, server.MaxCount))
	for left := o.count; left > 0; left -= int64(len(ids)) {
		ids = ids[:min(int64(len(ids)), left)]
		if err := next(ctx, ids); err != nil {
			return err
		}
		if err := printBatch(out, ids, o); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return end()
}

func printBatch(out *bufio.Writer, ids []firn.ID, o idOptions) error {
	var b []byte
	for _, id := range ids {
		b = b[:0]
		if o.json {
			b = appendJSON(b, id, o.encoding)
		} else {
			b = o.encoding.Append(b, id)
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

func appendJSON(b []byte, id firn.ID, e *firn.Encoding) []byte {
	b = fmt.Appendf(b, `{"id":%d,"id_str":"%[1]d"`, int64(id))
	if e != firn.Decimal {
		b = fmt.Appendf(b, `,%q:%q`, e, e.Encode(id))
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
