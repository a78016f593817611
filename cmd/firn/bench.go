package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/load"
	"github.com/firn-id/firn/internal/ops/setting"
)

const benchHelp = `Bench takes IDs from a running service, as fast as possible or at a fixed rate,
and shows the number of IDs, latencies, errors and duplicates.

Each connection makes one call at a time, to one server; bench spreads
connections evenly over several servers. The first call of a connection includes
connecting. Bench counts a failed call by its error code, rests briefly, and
does not repeat it.

Latencies count successful calls only. Without --rate each connection waits for
an answer before its next call, so a server that hangs for a second delays one
call per connection, and hides the calls that independent callers would have
made. With --rate calls are due at fixed times, and latency counts from then:
callers see the same.

Bench compares all IDs, from all servers and connections. It needs up to 6 bytes
of memory for each ID, and uses at most 1 GiB; it counts further IDs without
comparing them. Answers from a server of another cluster count as errors
(mixed), because two clusters can give the same IDs.

With --against bench also runs a command, by sh, that prints IDs of another
generator: decimals, one per line. Bench begins when the first ID is there, and
ends the command when it has the IDs of the service; it shows whether the
command had ended before. Bench shows which IDs came from both, and which node
IDs both use by the layout of the sequencer: those can give the same ID at any
time. It also shows how often the command repeated an ID, and which of its node
IDs no firn sequencer reserve keeps for it; these are no errors. If the times
that it shows of the command's IDs are wrong, the other generator has another
layout, and its node IDs are wrong too. These IDs get half of the memory.

SIGINT (Ctrl-C) ends bench early, with the results so far. The exit status is 1
if an ID came twice, if the servers belong to several clusters, or if no call
brought IDs; with --against also if an ID or a node ID is on both sides, or if
the command fails or prints something else.`

const benchExamples = `  firn bench
  firn bench --duration 1m --rate 5000
  firn bench --protocol grpc --server ids-1:9090,ids-2:9090 --batch 1000
  firn bench --protocol redis --concurrency 64 --count 1000000
  firn bench --server https://ids.example.org --ca ca.pem --token-file token --sequencer orders
  firn bench --sequencer tweets --against ./print-old-ids`

func (p *program) benchCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Measure a running service, and look for duplicate IDs",
		Long:    benchHelp,
		Example: benchExamples,
		Args:    noArguments,
	}
	flags := c.Flags()
	var protocols, defaults []string
	for _, known := range load.Protocols {
		protocols, defaults = append(protocols, known.Name), append(defaults, known.Default)
	}
	o.access.name = "server"
	setting.Add(flags, &o.servers, o.access.name, setting.KindList, "",
		"the servers to ask, separated by commas (default: "+strings.Join(defaults, ",\n")+")", setting.ParseList)
	setting.Add(flags, &o.protocol, "protocol", "protocol", protocols[0],
		"the protocol: "+strings.Join(protocols, ", "), load.ProtocolByName)
	setting.Number(flags, &o.concurrency, "concurrency", "16", 1,
		"how many connections to use; each makes one call at a time")
	setting.Number(flags, &o.batch, "batch", "1", 1, "how many IDs to take with each call")
	setting.Duration(flags, &o.duration, "duration", "10s", time.Millisecond, "how long to run")
	setting.Number(flags, &o.count, "count", "", 1, "take this many IDs, instead of running for --duration")
	setting.Add(flags, &o.rate, "rate", "rate", "", "take at most this many IDs per second (default: no limit)",
		parseRate)
	addSequencer(flags, &o.sequencer, "the sequencer to take IDs from (default: default)")
	setting.Bool(flags, &o.scattered, "scattered",
		"the sequencer scatters its IDs: check the order of their\nunscattered form")
	setting.Text(flags, &o.against, "against", "command",
		"compare with the IDs that this command prints, one per line")
	setting.Bool(flags, &o.json, "json", "print a JSON object")
	o.access.add(flags)
	must(c.RegisterFlagCompletionFunc("protocol",
		cobra.FixedCompletions(protocols, cobra.ShellCompDirectiveNoFileComp)))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if flags.Changed("count") && flags.Changed("duration") {
			return usagef("--count and --duration exclude each other")
		}
		if flags.Changed("against") && o.against == "" {
			return usagef("--against: want a command that prints IDs")
		}
		if flags.Changed("count") {
			o.duration = 0
		}
		if err := p.fromEnvironment(flags, o.access.names()...); err != nil {
			return err
		}
		plan, err := o.plan()
		if err != nil {
			return err
		}
		ctx := untilSignal(c.Context())
		if err := p.planAgainst(ctx, &o, &plan); err != nil {
			return interrupted(ctx, err)
		}
		return p.bench(ctx, &o, plan)
	}
	return c
}

// bench makes the load and prints what came of it.
func (p *program) bench(ctx context.Context, o *benchOptions, plan load.Plan) error {
	run := load.New(plan)
	stop := p.watch(run, plan)
	err := run.Do(ctx)
	stop()
	if err != nil {
		return err
	}
	r := run.Result()
	if o.json {
		err = p.printf("%s\n", marshal(benchJSON(o, r, ctx.Err() != nil)))
	} else {
		err = p.printf("%s", benchText(o, r))
	}
	switch mixed, same := o.clusters.Err(), againstErr(o, r.Against); {
	case err != nil:
		return err
	case mixed != nil:
		return mixed
	case r.Duplicates.More > 0:
		return fmt.Errorf("%s came more than once, such as %d: the service is broken, or its servers belong to two "+
			"clusters", console.Plural(r.Duplicates.More, "ID"), r.Duplicates.Some[0])
	case same != nil:
		return same
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.IDs == 0 && r.Calls > 0:
		return noIDs(o, r.Errors[0])
	}
	return nil
}

// noIDs is the error when nothing but errors came, this one most often.
func noIDs(o *benchOptions, most load.Failure) error {
	hint := ""
	if most.Code == "unreachable" || most.Code == "timeout" {
		hint = fmt.Sprintf("; is `firn serve` running at %s? --server or %s says where to ask",
			strings.Join(o.servers, ", "), setting.Variable("server"))
	}
	return fmt.Errorf("no call brought IDs: %s%s", printable(most.Example), hint)
}

// watch shows on a terminal how far a run has come, until stop is called.
func (p *program) watch(run *load.Run, plan load.Plan) (stop func()) {
	return console.NewStatusLine(p.stderr).Progress(func() string {
		now := run.Progress()
		of := fmt.Sprintf("%v of %v", now.Took.Truncate(time.Second), plan.Duration)
		if plan.Count > 0 {
			of = fmt.Sprintf("%s of %s IDs", console.Number(float64(now.IDs)), console.Number(float64(plan.Count)))
		}
		text := fmt.Sprintf("%s  %s  %s IDs/s", console.Bar(now.Done), of, console.Number(perSecond(now.IDs, now.Took)))
		if now.Failed > 0 {
			text += "  " + console.Plural(now.Failed, "error")
		}
		return text
	})
}
