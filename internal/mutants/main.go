// Command mutants shows that the tests have teeth: it builds the tests of a package with one deliberate
// fault in the code at a time, and fails if they still pass. Run it in the module's root:
//
//	go run ./internal/mutants
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/overlay"
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
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(only string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var alive []string
	for _, m := range mutants {
		if !match.MatchString(m.name) {
			continue
		}
		begin := time.Now()
		by, err := kill(m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if by == "" {
			alive = append(alive, m.name)
			by = "NOBODY"
		}
		fmt.Printf("%-62s  killed by %-46s %5.1fs\n", m.name, by, time.Since(begin).Seconds())
	}
	if alive != nil {
		return fmt.Errorf("no test fails with: %s", strings.Join(alive, "; "))
	}
	return nil
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// kill runs the tests over a mutant and returns the name of the first that fails, or nothing when all pass.
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
	if out, err := exec.Command("go", "vet", argument, m.pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not build: %w\n%s", err, out)
	}
	out, err := exec.Command("go", "test", argument, "-failfast", "-timeout=60s", "-run", m.run, m.pkg).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &exit):
		return "", err
	}
	if by := failed.FindSubmatch(out); by != nil {
		return string(by[1]), nil
	}
	if strings.Contains(string(out), "panic: ") {
		return "a panic", nil
	}
	return "", fmt.Errorf("the tests did not run: %w\n%s", err, out)
}
