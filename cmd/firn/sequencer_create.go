package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/sequencer"
)

const createHelp = `Create creates a sequencer, and shows it. Its definition never changes:
--dry-run shows the definition first, and asks no server. If the sequencer
exists with the same definition, create succeeds; if its definition differs,
create shows the differing fields, and the exit status is 1.

A new sequencer has no nodes. A call for an ID attaches a node; with --attach
explicit, only firn sequencer attach does.

How many IDs a second must one node make, and how many nodes are there? --nodes
is how many can make IDs at a time, rounded up to a power of two. Unneeded node
bits go to the sequence: fewer nodes make more IDs each. --rate takes as many
nodes as can make that many each; firn layout --rate shows what follows.

Which order do you need?

  by time                       the default: the IDs of one node ascend, those of
                                several as well as their clocks agree
  1, 2, 3, with few gaps        --kind counter
  a date first: 20261126000123  --kind counter --dated day
  as the calls came             --order strict, also with --kind counter
  none: keys for shards         --scattered

--reserve keeps the highest node IDs for what does not make IDs yet, such as a
database: firn sequencer reserve takes its node IDs from there. Repeat a create
that failed with the same number. If the sequencer exists and another number is
reserved for later, create with --reserve fails.

Of the flags for IDs, a counter takes only --order, --after, --max, --dated,
--digits, --zone and --prefix. Each node that is asked for its numbers reserves a
block of them.

With --order strict, an ID is greater than all that anybody was given before the
call began, whatever nodes and clocks do. Each answer waits for the store. The
IDs have a time and no node ID: of the flags for IDs, only --layout, --epoch,
--tick, --after and --prefix go with it.`

const createExamples = `  firn sequencer create orders
  firn sequencer create orders --nodes 128 --dry-run
  firn sequencer create orders --reserve 16
  firn sequencer create events --rate 10000000
  firn sequencer create users --layout 41/5/5/12 --epoch 2024-01-01 --allocation 50%
  firn sequencer create ledger --nodes 1 --attach explicit --window 2s
  firn sequencer create tweets --layout twitter --after 1541815603606036480
  firn sequencer create users-2 --prefix usr --scattered
  firn sequencer create invoices --kind counter --prefix inv
  firn sequencer create receipts --kind counter --dated day --zone Europe/Berlin
  firn sequencer create events --order strict`

const randomStartHelp = "begin each tick's sequence at a random\n" +
	"number: at low rates the IDs are then not all divisible by 4096, and\n" +
	"one of them does not tell how many came before it in its tick"

// createOptions are the flags of firn sequencer create.
type createOptions struct {
	lookOptions
	kind       cluster.Kind
	layout     layoutFlags
	nodes      int64 // 0: as many as the layout has
	rate       int64 // IDs per second that each node must be able to make; 0: any
	allocation cluster.Allocation
	tick       time.Duration // 0: that of the layout
	nodeLowest bool
	after      firn.ID
	max        firn.ID // of a counter; 0: firn.MaxID
	order      cluster.Order
	dated      sequencer.Dated // of a counter
	attach     cluster.AttachPolicy
	window     time.Duration // 0: that of each node
	prefix     string        // empty: none
	scattered  bool
	random     bool  // the start of each tick
	reserve    int64 // so many node IDs for later
	dryRun     bool
}

func (p *program) createCommand() *cobra.Command {
	var o createOptions
	c := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create a sequencer",
		Long:    createHelp,
		Example: createExamples,
		Args:    oneName,
	}
	flags := c.Flags()
	setting.Add(flags, &o.kind, "kind", "kind", "snowflake",
		"what the IDs are: snowflake, of a time, a node ID and a sequence; or\ncounter, the numbers 1, 2, 3 and so on",
		parseWord[cluster.Kind]("snowflake or counter"))
	setting.Number(flags, &o.nodes, "nodes", "", 1,
		"how many nodes can make IDs at a time (default: as many as the layout\nhas)")
	setting.Number(flags, &o.rate, "rate", "", 1,
		"how many IDs a second each node must be able to make, by as many\nnodes as can (default: any)")
	setting.Add(flags, &o.allocation, "allocation", "nodes", "all",
		"how many nodes get a node ID: all that want one, a number such as\n3, or a share of the cluster such as 50%",
		parseAllocation)
	o.layout.add(c, flags)
	setting.Duration(flags, &o.tick, "tick", "", time.Millisecond,
		"the tick of the layout, 1ms to 1s (default: that of the layout)")
	setting.Bool(flags, &o.nodeLowest, "node-lowest", "put the node bits below the sequence bits")
	setting.Add(flags, &o.after, "after", "ID", "", "all new IDs must exceed this decimal ID, the greatest that exists",
		firn.Parse)
	setting.Add(flags, &o.max, "max", "number", "",
		"the greatest number of a counter (default: 9223372036854775807)", parseMax)
	setting.Add(flags, &o.order, "order", "order", "node",
		"what their order says: node, the IDs of one node ascend, and others\n"+
			"as well as clocks agree; or strict, a later call gets a greater ID,\n"+
			"and each answer waits for the store", parseWord[cluster.Order]("node or strict"))
	setting.Add(flags, &o.dated.Every, "dated", "date", "",
		"begin the numbers of a counter with a date that changes each day,\nmonth or year",
		parseWord[sequencer.Every]("day, month or year"))
	setting.Number(flags, &o.dated.Digits, "digits", "", 1,
		"how many digits follow the date: 1 to 10 for a day, to 12 for a\nmonth, to 14 for a year (default: 6)")
	setting.Text(flags, &o.dated.Zone, "zone", "name",
		"the time zone of the date, such as Europe/Berlin (default: UTC)")
	setting.Add(flags, &o.attach, "attach", "policy", "on-demand",
		"what attaches a node: on-demand, a call for an ID; or explicit,\nonly firn sequencer attach",
		parseWord[cluster.AttachPolicy]("on-demand or explicit"))
	setting.DurationIn(flags, &o.window, "window", "", time.Second, peer.MaxWindow,
		"how far ahead a node reserves time, at most its own --window; a\n"+
			"short window lets another node take over a node ID soon after a\ncrash (default: that of each node)")
	setting.Text(flags, &o.prefix, "prefix", "text",
		"what prefixed IDs begin with, before an underscore: 1 to 16 of a-z\n"+
			"and 0-9, the first a letter (default: none)")
	setting.Bool(flags, &o.scattered, "scattered",
		"spread the IDs over the whole range of numbers, as keys for a\n"+
			"store that is split into ranges; they do not sort by time")
	setting.Bool(flags, &o.random, "random-start", randomStartHelp)
	setting.Number(flags, &o.reserve, "reserve", "", 1,
		"how many node IDs no node gets, from the beginning: firn sequencer\nreserve takes them first (default: none)")
	setting.Bool(flags, &o.dryRun, "dry-run", "show the definition, and ask no server")
	o.add(flags, "print a JSON object")
	must(c.RegisterFlagCompletionFunc("kind",
		cobra.FixedCompletions([]string{"snowflake", "counter"}, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("order",
		cobra.FixedCompletions([]string{"node", "strict"}, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("dated",
		cobra.FixedCompletions([]string{"day", "month", "year"}, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("attach",
		cobra.FixedCompletions([]string{"on-demand", "explicit"}, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("allocation",
		cobra.FixedCompletions([]string{"all", "50%"}, cobra.ShellCompDirectiveNoFileComp)))
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.checkKind(flags); err != nil {
			return err
		}
		if o.kind == cluster.Snowflake {
			if err := p.fromEnvironment(flags, "layout", "epoch"); err != nil {
				return err
			}
		}
		d, err := o.definition(flags.Changed("node-lowest"))
		if err != nil {
			return err
		}
		if o.nodes != 0 && o.nodes != d.Capacity() {
			p.notef("--nodes %d is rounded up to %d, a power of two", o.nodes, d.Capacity())
		}
		if o.tick != 0 && o.tick != o.layout.layout.Tick {
			p.notef("--tick %v overrides the tick of the layout, %v", o.tick, o.layout.layout.Tick)
		}
		if most := min(d.Capacity(), cluster.MaxReserved); o.reserve > most {
			return usagef("--reserve is %d; want 1 to %d", o.reserve, most)
		}
		n := httpapi.NewSequencer{Name: args[0], Definition: d, Reserve: o.reserve}
		if o.dryRun {
			return p.dryRun(n, o.json)
		}
		return p.look(c, &o.lookOptions, func(ctx context.Context, ask remote.Client) error {
			return p.create(ctx, ask, n, o.json)
		})
	}
	return c
}

// checkKind refuses flags that do not go with the kind.
func (o createOptions) checkKind(flags *pflag.FlagSet) error {
	if o.kind == cluster.Snowflake {
		if flags.Changed("max") {
			return usagef("--max goes with --kind counter; other IDs end with the time of their layout")
		}
		for _, name := range []string{"dated", "digits", "zone"} {
			if flags.Changed(name) {
				return usagef("--%s goes with --kind counter; other IDs have a time already", name)
			}
		}
	}
	if o.dated.Every == 0 && (flags.Changed("digits") || flags.Changed("zone")) {
		return usagef("--digits and --zone go with --dated")
	}
	if o.kind == cluster.Snowflake && o.order == cluster.OrderNode {
		return nil
	}
	for _, name := range []string{
		"nodes", "rate", "allocation", "node-lowest", "attach", "window", "scattered", "random-start", "reserve",
		"layout", "epoch", "tick",
	} {
		switch {
		case !flags.Changed(name):
		case o.kind == cluster.Counter:
			return usagef("--%s does not go with --kind counter; a counter takes only --order, --after, --max, "+
				"--dated, "+
				"--digits, --zone and --prefix", name)
		case name != "layout" && name != "epoch" && name != "tick":
			return usagef("--%s does not go with --order strict, whose IDs have no node ID; want only --layout, "+
				"--epoch, "+
				"--tick, --after and --prefix", name)
		}
	}
	return nil
}

// counter is what the flags say of a counter.
func (o createOptions) counter() (cluster.Definition, error) {
	d := cluster.Definition{Kind: o.kind, Order: o.order, After: o.after, Max: o.max, Dated: o.dated, Prefix: o.prefix}
	if d.Dated.Every != 0 && d.Dated.Digits == 0 {
		d.Dated.Digits = sequencer.DefaultDigits
	}
	err := d.Validate()
	if err == nil {
		_, err = d.Dated.Location()
	}
	if err != nil {
		return d, usageError{err}
	}
	return d, nil
}

// definition is what the flags say.
func (o createOptions) definition(nodeLowest bool) (cluster.Definition, error) {
	if o.kind == cluster.Counter {
		return o.counter()
	}
	l, err := o.layout.chosen()
	if err != nil {
		return cluster.Definition{}, err
	}
	switch {
	case o.tick > time.Second:
		return cluster.Definition{}, usagef("--tick: %v is too long; want at most 1s", o.tick)
	case o.tick != 0:
		l.Tick = o.tick
	}
	if nodeLowest {
		l.NodeLowest = o.nodeLowest
	}
	if err := l.Validate(); err != nil {
		return cluster.Definition{}, usageError{err}
	}
	d := cluster.Definition{Layout: l, Order: o.order, After: o.after, Prefix: o.prefix}
	if o.order == cluster.OrderStrict {
		if err := d.Validate(); err != nil {
			return d, usageError{err}
		}
		return d, nil
	}
	d = cluster.Define(l)
	d.Allocation, d.After, d.Attach, d.Window = o.allocation, o.after, o.attach, o.window
	d.Prefix, d.Scattered, d.RandomStart = o.prefix, o.scattered, o.random
	if o.nodes != 0 {
		d.Nodes = o.nodes
	}
	if err := d.Validate(); err != nil {
		return d, usageError{err}
	}
	if o.rate == 0 {
		return d, nil
	}
	fast, err := d.ForRate(float64(o.rate))
	if err == nil && o.nodes > fast.Nodes {
		err = fmt.Errorf("%d nodes make at most %s IDs a second each; want --nodes %d or fewer for %s", o.nodes,
			console.Number(d.IDLayout().Rate()), fast.Nodes, console.Number(float64(o.rate)))
	}
	if err != nil {
		return d, usagef("--rate: %w", err)
	}
	return fast, nil
}

// dryRun prints the sequencer that would be created.
func (p *program) dryRun(n httpapi.NewSequencer, asJSON bool) error {
	name, d := n.Name, n.Definition
	warning, err := d.Check(time.Now())
	if err != nil {
		return usageError{err}
	}
	if warning != "" {
		p.warnf("%s: %s", name, warning)
	}
	s := calls.StatusSequencer{Name: name, Definition: d}
	layout := ""
	if d.Kind == cluster.Snowflake {
		l := d.IDLayout()
		s.Until, layout = calls.Until(l), l.String()
		if !d.Claimed() {
			s.Capacity, s.Free = d.Capacity(), new(d.Capacity()-n.Reserve)
			s.Allocation, s.Rate = &d.Allocation, l.Rate()
		}
	}
	if asJSON {
		return p.printf("%s\n", marshal(struct {
			Name       string             `json:"name"`
			Definition cluster.Definition `json:"definition"`
			Layout     string             `json:"layout,omitempty"` // of its IDs; a counter has none
			Capacity   int64              `json:"capacity,omitzero"`
			Until      time.Time          `json:"until,omitzero"`
			Rate       float64            `json:"rate,omitzero"`
			Reserve    int64              `json:"reserve,omitzero"`
		}{name, d, layout, s.Capacity, s.Until, s.Rate, n.Reserve}))
	}
	return p.printf("create would make %s as follows; its definition never changes\n\n%s", name,
		linesText(definitionLines(s)))
}

// create has a server create a sequencer, and prints it.
func (p *program) create(ctx context.Context, ask remote.Client, n httpapi.NewSequencer, asJSON bool) error {
	var s calls.Created
	status, body, err := ask.CallStatus(ctx, http.MethodPost, "/api/v1/sequencers", marshal(n), &s)
	if err != nil {
		return p.conflict(n.Name, err, asJSON)
	}
	for _, w := range s.Warnings {
		p.warnf("%s: %s", n.Name, console.ShownText(w))
	}
	what := "is there already, with this definition"
	if status == http.StatusCreated {
		what = "is created"
	}
	return p.answer(body, nil, asJSON, func() string {
		return fmt.Sprintf("%s %s\n\n%s", n.Name, what, sequencerText(s.StatusSequencer))
	})
}

// conflict tells how what is in force differs from what was wanted, if that is the error.
func (p *program) conflict(name string, err error, asJSON bool) error {
	var answer *remote.AnswerError
	var c httpapi.Conflict
	if !errors.As(err, &answer) || json.Unmarshal(answer.Body, &c) != nil || len(c.Differences) == 0 {
		return err
	}
	if asJSON {
		return errors.Join(p.printf("%s", answer.Body), err)
	}
	columns := []console.Column{{Head: "FIELD"}, {Head: "IN FORCE"}, {Head: "WANTED"}}
	var rows [][]string
	for _, d := range c.Differences {
		rows = append(rows, []string{console.Shown(d.Field), console.ShownText(d.InForce), console.ShownText(d.Wanted)})
	}
	fmt.Fprintf(p.stderr,
		"firn: a sequencer %q exists with another definition; use it as it is, or choose another name\n\n%s", name,
		console.Table(columns, rows))
	return errReported
}
