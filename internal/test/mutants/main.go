// Command mutants shows that the tests find faults: it runs the tests of a package with one deliberate fault in the
// code at a time, and fails if they pass each time. Run it in the module's root:
//
//	go run ./internal/test/mutants
//
// It takes half an hour of two CPUs. With -part, it runs a third of them.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/test/overlay"
)

// mutant is a fault: in file, old becomes change; a test of the package that matches run must fail.
type mutant struct {
	name        string
	file        string
	old, change string
	pkg, run    string
}

func main() {
	only := flag.String("only", "", "run only the mutants whose `name` matches this regular expression")
	part := flag.Int("part", -1, "run only every third of them, from this `number` on; negative: all")
	atOnce := flag.Int("parallel", runtime.NumCPU(), "how many to run at a time")
	flag.Parse()
	if err := run(*only, *part, max(1, *atOnce)); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// parts is how many parts the mutants have, see -part. Each has some of every file.
const parts = 3

// every returns all mutants.
func every() []mutant {
	return slices.Concat(mutants, clocks, times, coarse, horizonFile, adapters, counters, advance, local, reservations,
		compared, imports)
}

func run(only string, part, atOnce int) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	mutants := every()
	results := make([]error, len(mutants))
	free := make(chan struct{}, atOnce)
	for i, m := range mutants {
		if !match.MatchString(m.name) || part >= 0 && i%parts != part%parts {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			began := time.Now()
			by, err := kill(m)
			if err != nil {
				by = "NOTHING"
				results[i] = fmt.Errorf("%s: %w", m.name, err)
			}
			fmt.Printf("%-62s  killed by %-46s %5.1fs\n", m.name, by, time.Since(began).Seconds())
		})
	}
	all.Wait()
	return errors.Join(results...)
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// attempts is how often the tests run before a mutant counts as not found: some faults show only if goroutines meet.
const attempts = 3

// kill runs the tests over a mutant and returns the name of the first that fails. An error is returned when all pass at
// each attempt, and when they can't be run, because the mutant does not build.
func kill(m mutant) (by string, err error) {
	text, err := overlay.Edit(m.file, m.old, m.change)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "firn-mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	argument, err := overlay.Write(dir, map[string]string{m.file: text})
	if err != nil {
		return "", err
	}
	for n := range attempts {
		out, err := exec.Command("go", "test", argument, "-count=1", "-vet=off", "-failfast", "-timeout=60s", "-run",
			m.run, m.pkg).CombinedOutput()
		if err == nil {
			continue
		}
		by = "a panic"
		if name := failed.FindSubmatch(out); name != nil {
			by = string(name[1])
		} else if !bytes.Contains(out, []byte("panic: ")) {
			return "", fmt.Errorf("the tests did not run: %w\n%s", err, out)
		}
		if n > 0 {
			by += fmt.Sprintf(", attempt %d", n+1)
		}
		return by, nil
	}
	return "", errors.New("no test fails")
}
