package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/core/journal"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/setting"
)

const journalHelp = `Journal checks the journals of a cluster's nodes: that each node followed the
protocol for node IDs, and that no ID was given twice.

With firn serve --journal FILE a node writes there what it reads from the store
and sends to it, its horizons, and the IDs that it gives, before each takes
effect. Journal replays the files of all nodes against the model for which a
proof shows that no ID repeats. It names each line that breaks a rule, and then
exits with status 1. A file of a killed node is valid up to its end.

With --json it prints an object with counts, and the lines as "violations".`

const journalExamples = `  firn serve --journal /var/log/firn/ids-1.journal
  firn journal ids-1.journal ids-2.journal ids-3.journal`

// mostShown is how many violations are printed: one leads to many.
const mostShown = 20

func (p *program) journalCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "journal FILE...",
		Short:   "Check the journals of nodes against the proof's model",
		Long:    journalHelp,
		Example: journalExamples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no file; want the journals of all nodes of a cluster")
			}
			return nil
		},
	}
	setting.Bool(c.Flags(), &asJSON, "json", "print a JSON object")
	c.RunE = func(_ *cobra.Command, args []string) error {
		report, err := checkJournals(args)
		if err != nil {
			return err
		}
		if asJSON {
			err = json.NewEncoder(p.stdout).Encode(report)
		} else {
			err = printJournals(p.stdout, report)
		}
		if err == nil && len(report.Violations) > 0 {
			err = errReported
		}
		return err
	}
	return c
}

func checkJournals(paths []string) (journal.Report, error) {
	var files []journal.File
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return journal.Report{}, err
		}
		defer f.Close()
		files = append(files, journal.File{Name: path, Reader: f})
	}
	return journal.Check(files...)
}

func printJournals(to io.Writer, r journal.Report) error {
	for i, v := range r.Violations {
		if i == mostShown {
			fmt.Fprintf(to, "... and %d more\n", len(r.Violations)-i)
			break
		}
		fmt.Fprintln(to, v)
	}
	fmt.Fprintf(to, "%s of %s, who owned %s %s: %s given\n", console.Plural(int64(r.Lines), "line"),
		console.Plural(int64(r.Members), "member"),
		console.Plural(int64(r.NodeIDs), "node ID"), console.Plural(int64(r.Owners), "time"),
		console.Plural(r.IDs, "ID"))
	if r.Lost {
		fmt.Fprintln(to, "The store has lost data: what was written by members before and after that is not compared.")
	}
	var err error
	if len(r.Violations) == 0 {
		_, err = fmt.Fprintln(to, "Each line is a step of the proof's model, and no ID was given twice.")
	}
	return err
}
