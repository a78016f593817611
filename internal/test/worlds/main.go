// Command worlds runs whole clusters in simulated time: members of package peer over a store in memory that delays,
// loses and reorders, with everything that members, operators and machines do, chosen by a seed. It checks that no ID
// comes twice and that all is well once the trouble ends, and shrinks a world in which that fails. Run it in the
// module's root:
//
//	go run ./internal/test/worlds -seeds 1000
//	go run ./internal/test/worlds -for 1m
//
// Time, the store and the clocks are simulated, and a seed decides all that happens, but not the order in which
// goroutines run that have something to do at the same instant. So a seed that fails may pass the next time, and a
// world that is being shrunk is tried several times. Package internal/test/e2e is about real processes, a real etcd and
// real clocks.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	h := hunter{out: os.Stdout}
	flag.Uint64Var(&h.seeds, "seeds", 0, "run so `many` worlds; 0: without end, or as -for says")
	flag.DurationVar(&h.within, "for", 0, "run worlds for so `long`; 0: as many as -seeds says")
	flag.Uint64Var(&h.first, "first", 0, "the first `seed`; the others follow it. 0: one by the time of day")
	flag.IntVar(&h.workers, "parallel", runtime.NumCPU(), "how `many` worlds to run at a time")
	flag.BoolVar(&h.on, "keep-going", false, "go on after a world has failed")
	flag.BoolVar(&h.verbose, "v", false, "print each world's figures; with -plan or one seed, what happens in it")
	file := flag.String("plan", "", "run the world of a `file` that was written when a world had failed")
	worker := flag.Bool("worker", false,
		"run the worlds that standard input names, for another process of this command")
	flag.Parse()
	if *worker {
		work(os.Stdin, os.Stdout)
		return
	}
	if err := run(&h, *file); err != nil {
		fmt.Fprintln(os.Stderr, "worlds:", err)
		os.Exit(1)
	}
}

func run(h *hunter, file string) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("there are arguments, %q; want only flags", flag.Args())
	}
	if h.first == 0 {
		h.first = uint64(time.Now().UnixMilli()) * 1000
	}
	if file == "" {
		return h.hunt()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("%s is no plan of a world: %w", file, err)
	}
	w, err := newWorker()
	if err != nil {
		return err
	}
	defer w.close()
	r := w.run(order{Plan: &p, Verbose: h.verbose})
	fmt.Fprint(h.out, p, "\n")
	h.transcript(r)
	if len(r.Failures) > 0 {
		return errors.New("the world has failed")
	}
	return nil
}
