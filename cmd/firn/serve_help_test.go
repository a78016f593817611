package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Every flag of serve is in one group of its help, every group has flags, and commands that borrow the flags don't
// repeat them.
func TestServeHelpIsInGroups(t *testing.T) {
	help := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if status := run(t.Context(), append(args, "--help"), nil, nil, &out, &out); status != 0 {
			t.Fatalf("status %d: %s", status, out.String())
		}
		return out.String()
	}
	all := help("serve")
	_, parts, _ := strings.Cut(all, "Examples:\n")
	serveFlags().VisitAll(func(f *pflag.Flag) {
		if n := strings.Count(parts, "\n      --"+f.Name+" "); n != 1 && f.Name != "help" {
			t.Errorf("--%s is there %d times; want once", f.Name, n)
		}
	})
	for _, g := range serveGroups {
		if !strings.Contains(parts, "\n\n"+g.title+":\n  ") {
			t.Errorf("the group %q has no flags", g.title)
		}
	}
	for _, borrower := range [][]string{{"health"}, {"doctor"}, {"gen", "config"}} {
		if text := help(borrower...); strings.Contains(text, "      --quorum-key-file") {
			t.Errorf("firn %v repeats the flags of firn serve", borrower)
		}
	}
}
