package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/ops/manpage"
	"github.com/firn-id/firn/internal/test/testenv"
)

// everyCommand calls f for each command, but help.
func everyCommand(t *testing.T, f func(c *cobra.Command)) {
	t.Helper()
	var began bool
	root := (&program{stdout: io.Discard, stderr: io.Discard}).root(&began)
	count := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.InitDefaultHelpFlag()
		count++
		f(c)
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(root)
	if count < 20 {
		t.Errorf("only %d commands were looked at", count)
	}
}

// Every command says what it is and does, and shows how it is called.
func TestEveryCommandIsExplained(t *testing.T) {
	everyCommand(t, func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: its short text is %q; want one without a full stop", c.CommandPath(), c.Short)
		}
		if c.Long == "" || c.Example == "" && c.HasParent() {
			t.Errorf("%s has no text, or no examples", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: the example %q is not indented by two", c.CommandPath(), line)
			}
		}
	})
}

var ofPages = manpage.Release{Version: "v1.2.3", Date: time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)}

// A page has all that the help has: the text, each flag, the examples, and where to read on.
func TestEveryPageIsComplete(t *testing.T) {
	everyCommand(t, func(c *cobra.Command) {
		page := manpage.Page(c, ofPages)
		wanted := []string{
			".TH ", `"2026-11-21"`, "firn v1.2.3", ".SH NAME\n" + manpage.Escape(manpage.Name(c)),
			".SH SYNOPSIS", ".SH DESCRIPTION",
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				wanted = append(wanted, `\fB\-\-`+manpage.Escape(f.Name)+`\fR`)
			}
		})
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			wanted = append(wanted, manpage.Escape(strings.TrimSpace(line)))
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				wanted = append(wanted, ".BR "+manpage.Escape(manpage.Name(sub))+" (1)")
			}
		}
		for _, want := range wanted {
			if !strings.Contains(page, want) {
				t.Errorf("the page of %s does not have %q", c.CommandPath(), want)
			}
		}
	})
}

// What programs make of the pages they find nothing wrong with, and people read what the help says.
func TestPagesAreAcceptedByTheirPrograms(t *testing.T) {
	groff := testenv.Program(t, "groff", "groff-base")
	dir := t.TempDir()
	everyCommand(t, func(c *cobra.Command) {
		page := filepath.Join(dir, manpage.Name(c)+".1")
		text := manpage.Page(c, ofPages)
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		// Lines that stay as they are may be longer than a terminal is wide.
		format := exec.Command(groff, "-ww", "-man", "-Tutf8", "-rLL=130n", page)
		var warnings strings.Builder
		format.Stderr = &warnings
		shown, err := format.Output()
		if err != nil || warnings.Len() > 0 || len(shown) == 0 {
			t.Errorf("groff says of %s: %v %s", page, err, warnings.String())
		}
		if lint, err := exec.LookPath("mandoc"); err == nil {
			if out, _ := exec.Command(lint, "-Tlint", "-Wwarning", page).CombinedOutput(); len(out) > 0 {
				t.Errorf("mandoc says of %s: %s", page, out)
			}
		}
	})
}
