// Command bench measures firn beside its peers, all of them in one run: absolute times
// depend on the machine and on what else it does, ratios much less.
//
//	go run . [--quick] [--json] [section ...]
//
// The sections are next, fill, limit, serve, http, crowd, grpc, redis, sequencer, cluster-cost and attach; without any, all of
// them run. Tables go to standard output, progress to standard error.
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
		{"limit", runLimit},
		{"serve", runServe},
		{"http", runHTTP},
		{"crowd", runCrowd},
		{"grpc", runGRPC},
		{"redis", runRedis},
		{"sequencer", runSequencer},
		{"cluster-cost", runClusterCost},
		{"attach", runAttach},
	}
}

// settings say how long to measure, and where to tell of it.
type settings struct {
	rounds   int           // samples of each contender
	sample   time.Duration // how long one sample takes
	limit    time.Duration // how long one sample at the limit of a layout takes
	limits   int           // samples at the limit of each contender
	loads    int           // samples of each server
	load     time.Duration // how long one of them takes
	window   time.Duration // of the member whose transactions are counted
	keeps    int           // rounds in which they are counted, at least
	attaches int           // how often members attach, detach and take over
	progress io.Writer
}

func (s settings) tell(format string, args ...any) {
	fmt.Fprintf(s.progress, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

var (
	thorough = settings{
		rounds: 101, sample: 5 * time.Millisecond, limit: 1500 * time.Millisecond, limits: 5,
		loads: 31, load: 250 * time.Millisecond,
		window: 3 * time.Second, keeps: 10, attaches: 300,
	}
	quick = settings{
		rounds: 5, sample: time.Millisecond, limit: 100 * time.Millisecond, limits: 1,
		loads: 1, load: 200 * time.Millisecond,
		window: 600 * time.Millisecond, keeps: 2, attaches: 10,
	}
)

// report is the whole result, for programs.
type report struct {
	Go     string  `json:"go"`
	System string  `json:"system"`
	CPUs   int     `json:"cpus"`
	Tables []table `json:"tables"`
}

func main() {
	if name := os.Getenv(rpcServerVariable); name != "" {
		if err := beRPCServer(name, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
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

	r := report{Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
	for _, c := range chosen {
		tables, err := c.run(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		r.Tables = append(r.Tables, tables...)
	}
	if *asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	fmt.Fprintf(stdout, "%s %s, %d CPUs\n", r.Go, r.System, r.CPUs)
	for _, t := range r.Tables {
		fmt.Fprintf(stdout, "\n%s", t)
	}
	return nil
}

func choose(names []string) (chosen []section, err error) {
	all := sections()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(s section) bool { return s.name == name })
		if i < 0 {
			known := make([]string, 0, len(all))
			for _, s := range all {
				known = append(known, s.name)
			}
			return nil, fmt.Errorf("there is no section %q; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
