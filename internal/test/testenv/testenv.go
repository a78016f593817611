// Package testenv skips the tests for which there is no time, or no program, where they run. It is for tests alone.
package testenv

import (
	"flag"
	"os"
	"os/exec"
	"testing"
)

const (
	// variable selects the tests that run: with the value all, the slow ones too.
	variable = "FIRN_TESTS"

	// programs with the value all says that every program is installed: a test that misses one fails.
	programs = "FIRN_PROGRAMS"
)

// Slow skips a test unless FIRN_TESTS=all is in the environment or -run names tests. It is for tests that take more
// than ten seconds, or that need a browser, a balancer or a package manager: go test ./... is to end within minutes.
func Slow(t testing.TB) {
	t.Helper()
	named := flag.Lookup("test.run").Value.String() != ""
	switch value := os.Getenv(variable); {
	case value != "" && value != "all":
		t.Fatalf("%s is %q; want all, or nothing", variable, value)
	case value == "" && !named:
		t.Skipf("slow: runs with %s=all, or when -run names it", variable)
	}
}

// Exploration is Slow, and skips the test under the race detector, too: an exploration goes through many worlds one by
// one, and would take many minutes.
func Exploration(t testing.TB) {
	t.Helper()
	Slow(t)
	if Race {
		t.Skip("runs without the race detector")
	}
}

// Program returns the path of a program. Where the program is not installed, the test ends as Missing says.
func Program(t testing.TB, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, debian)
	}
	return path
}

// Missing skips a test because what it needs is not installed, and names the Debian package that has it. With
// FIRN_PROGRAMS=all in the environment, as where it is decided what lands, the test fails.
func Missing(t testing.TB, what, debian string) {
	t.Helper()
	say := t.Skipf
	if os.Getenv(programs) == "all" {
		say = t.Fatalf
	}
	say("%s is not installed; on Debian: apt-get install %s", what, debian)
}
