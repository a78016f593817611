// Command bench measures firn beside its peers, all of them in one run: absolute times
// depend on the machine and on what else it does, ratios much less.
//
//	go run . [--quick] [--json] [section ...]
//
// The sections are next, fill, fresh, text, limit, serve, http, packed, unix, crowd, grpc, redis, sequencer,
// cluster-cost, attach, counter, counter-busy, strict and stores; without any, all of them run. Tables go to standard
// output, progress to standard error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/core/fence"
)

// section is one part of the benchmark.
type section struct {
	name string
	run  func(context.Context, settings) ([]table, error)
}

func sections() []section {
	return []section{
		{"next", runNext},
		{"fill", runFill},
		{"fresh", runFresh},
		{"text", runText},
		{"limit", runLimit},
		{"serve", inContest(runServe)},
		{"http", inContest(runHTTP)},
		{"packed", inContest(runPacked)},
		{"unix", inContest(runUnix)},
		{"crowd", inContest(runCrowd)},
		{"grpc", inContest(runGRPC)},
		{"redis", inContest(runRedis)},
		{"client", runClient},
		{"sequencer", runSequencer},
		{"cluster-cost", runClusterCost},
		{"attach", runAttach},
		{"counter", runCounter},
		{"counter-busy", runCounterBusy},
		{"strict", inContest(runStrict)},
		{"stores", runStores},
	}
}

// settings say how long to measure, and where to tell of it.
type settings struct {
	rounds     int           // samples of each contender
	sample     time.Duration // how long one sample takes
	limit      time.Duration // how long one sample at the limit of a layout takes
	limits     int           // samples at the limit of each contender
	fresh      time.Duration // for how long the age of IDs is measured, each time
	loads      int           // samples of each server
	load       time.Duration // how long one of them takes
	crowds     int           // rounds of single IDs, alone and beside others
	crowd      time.Duration // how long each of the two takes
	window     time.Duration // of the member whose transactions are counted
	keeps      int           // rounds in which they are counted, at least
	attaches   int           // how often members attach, detach and take over
	fences     int           // that are claimed at once at most, over each store
	extensions int           // how often they are extended
	joining    int           // members that join at once
	idling     int           // of them that stay
	rest       time.Duration // how long what they cost is counted
	programs   string        // the folder for those that are built
	progress   io.Writer
}

func (s settings) tell(format string, args ...any) {
	fmt.Fprintf(s.progress, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

var (
	thorough = settings{
		rounds: 101, sample: 5 * time.Millisecond, limit: 1500 * time.Millisecond, limits: 5, fresh: 4 * time.Second,
		loads: 31, load: 250 * time.Millisecond, crowds: 5, crowd: 3 * time.Second,
		window: 3 * time.Second, keeps: 10, attaches: 300,
		fences: 1000, extensions: 5, joining: 256, idling: 100, rest: fence.DefaultWindow,
	}
	quick = settings{
		rounds: 5, sample: time.Millisecond, limit: 100 * time.Millisecond, limits: 1, fresh: 50 * time.Millisecond,
		loads: 1, load: 200 * time.Millisecond, crowds: 1, crowd: 200 * time.Millisecond,
		window: 600 * time.Millisecond, keeps: 2, attaches: 10,
		fences: 64, extensions: 1, joining: 4, idling: 2, rest: 500 * time.Millisecond,
	}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print JSON instead of tables")
	short := flags.Bool("quick", false, "a short run that shows that everything works; its figures mean little")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	s := thorough
	if *short {
		s = quick
	}
	s.progress = stderr
	if s.programs, err = os.MkdirTemp("", "firn-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.programs)

	report := struct {
		Go     string  `json:"go"`
		System string  `json:"system"`
		CPUs   int     `json:"cpus"`
		Tables []table `json:"tables"`
	}{Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
	for _, c := range chosen {
		tables, err := c.run(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		report.Tables = append(report.Tables, tables...)
	}
	if *asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		return out.Encode(report)
	}
	fmt.Fprintf(stdout, "%s %s, %d CPUs\n", report.Go, report.System, report.CPUs)
	for _, t := range report.Tables {
		fmt.Fprintf(stdout, "\n%s", t)
	}
	return nil
}

// choose returns the named sections, or all.
func choose(names []string) (chosen []section, err error) {
	var known []string
	for _, one := range sections() {
		known = append(known, one.name)
	}
	if len(names) == 0 {
		return sections(), nil
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, fmt.Errorf("unknown section %q; want one of %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, sections()[i])
	}
	return chosen, nil
}
