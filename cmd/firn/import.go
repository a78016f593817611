package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/importer"
	"github.com/firn-id/firn/internal/ops/setting"
)

const importHelp = `Import gives IDs to rows that exist already: each ID has the time of its row. It
reads a CSV with the times from standard input, and prints one decimal ID for
each row, in the order of the rows, below the header "id" if the CSV has one.

The times are in the first column, or in the one that --column names. The first
row is a header if its cell is no time. Import reads RFC 3339, times as
PostgreSQL and MySQL print them (2019-01-02 03:04:05.678+01), dates, and whole
numbers of milliseconds since 1970. Times without a zone are in --zone; of an
hour that clocks show twice, import takes the first. It checks all rows first:
if one has no time, or one in the future or outside of the sequencer's layout,
import lists the lines, makes no ID, and exits with status 1.

An import is a job of the server, with a node ID that no node has meanwhile. A
node ID has a limited number of IDs for each tick. If more rows share a tick,
--if-full refuse, the default, makes no ID, and --if-full next gives the others
IDs of the next tick that has some.

With --progress FILE an import that was killed, or has lost its server, goes on:
run the same command again, with the same input. Rows that have an ID keep it.
Without --progress run it again too, but all rows get other IDs: throw away what
you have of the first ones. After a crash without --progress the job keeps its
node ID until firn sequencer release SEQUENCER --for "import JOB".

Import repeats a call without an answer for 10 minutes. It sorts in files of the
folder for temporary files (TMPDIR): up to 32 bytes a row, and about 90 MB of
memory for any number of rows. On a terminal it shows how far it is; at its end
it prints a summary on standard error. It needs a token with the right import or
admin, if the server has tokens.`

const importExamples = `  firn import orders < times.csv > ids.csv
  firn import orders --column created_at --zone Europe/Berlin < orders.csv > ids.csv
  firn import orders --progress orders.progress --if-full next < times.csv > ids.csv`

type importOptions struct {
	server serverFlags
	column string
	zone   *time.Location
	job    string
	next   bool
	file   string
	json   bool
}

func (p *program) importCommand() *cobra.Command {
	var o importOptions
	c := &cobra.Command{
		Use:     "import SEQUENCER",
		Short:   "Give IDs to rows that exist already",
		Long:    importHelp,
		Example: importExamples,
		Args:    named("SEQUENCER"),
	}
	flags := c.Flags()
	setting.Text(flags, &o.column, "column", "column",
		"the column with the times: its name, or its number from 1 on\n(default: the first)")
	setting.Add(flags, &o.zone, "zone", "zone", "UTC", "the zone of times without one, such as Europe/Berlin",
		parseZone)
	setting.Add(flags, &o.next, "if-full", "refuse|next", "refuse",
		"what to do if more rows share a tick than it has IDs", parseIfFull)
	setting.Add(flags, &o.job, "job", "name", "", "the name of the job, up to 64 bytes (default: a random one)",
		parseJob)
	setting.Text(flags, &o.file, "progress", "file", "the file to keep the progress in, so that the import can go on")
	setting.Bool(flags, &o.json, "json", "print the summary as a JSON object")
	o.server.addAdmin(flags)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := p.fromEnvironment(flags, o.server.names()...); err != nil {
			return err
		}
		client, err := o.server.client()
		if err != nil {
			return err
		}
		i := importer.New(client, args[0])
		i.Column, i.Zone, i.Job, i.Next, i.Progress = o.column, o.zone, o.job, o.next, o.file
		return p.importRows(c.Context(), i, &o)
	}
	return c
}

func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("%.40q is not a zone; want one such as UTC or Europe/Berlin", name)
	}
	return zone, nil
}

func parseIfFull(text string) (next bool, err error) {
	_, err = setting.OneOf("refuse", "next")(text)
	return text == "next", err
}

func parseJob(name string) (string, error) {
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, unicode.IsControl) {
		return "", fmt.Errorf("%.80q is not a job; want a name of 1 to 64 bytes without control characters", name)
	}
	return name, nil
}

func (p *program) importRows(ctx context.Context, i *importer.Import, o *importOptions) error {
	began := time.Now()
	defer i.Close()
	if err := i.Open(ctx); err != nil {
		return err
	}
	status := console.NewStatusLine(p.stderr)
	i.Warn = func(err error) { _ = status.Print(fmt.Sprintln("firn: warning:", err)) }
	stop := status.Progress(importStatus(i))
	err := i.Read(p.stdin)
	if err == nil {
		ctx = untilSignal(ctx)
		err = i.Give(ctx)
	}
	var ended *importer.EndError
	errors.As(err, &ended)
	if err == nil || ended != nil {
		err = i.Write(p.stdout)
	}
	stop()
	if err != nil {
		return p.importFailed(ctx, i, err)
	}
	p.importDone(i.Result(), time.Since(began), o.json)
	if ended != nil {
		return interrupted(ctx, ended)
	}
	return nil
}

// importDone says what came of an import.
func (p *program) importDone(r importer.Result, took time.Duration, asJSON bool) {
	if asJSON {
		fmt.Fprintf(p.stderr, "%s\n", marshal(importJSON{r.Job, r.Rows, r.New, r.Moved, r.Node, took.Seconds()}))
		return
	}
	text := "firn: " + console.Plural(r.Rows, "ID")
	if before := r.Rows - r.New; before > 0 {
		text += fmt.Sprintf(" (%s from before)", console.Number(float64(before)))
	}
	if r.Node >= 0 {
		text += fmt.Sprintf(", %s moved to a later tick, node ID %d", console.Number(float64(r.Moved)), r.Node)
	}
	fmt.Fprintf(p.stderr, "%s, in %v\n", text, took.Round(time.Millisecond))
}

type importJSON struct {
	Job     string  `json:"job"`
	Rows    int64   `json:"rows"`
	New     int64   `json:"new"`   // IDs that this run has brought, and no earlier one
	Moved   int64   `json:"moved"` // IDs of a later tick than their row
	Node    int64   `json:"node"`  // -1: none
	Seconds float64 `json:"seconds"`
}

// importFailed says what is wrong, and how to go on.
func (p *program) importFailed(ctx context.Context, i *importer.Import, err error) error {
	var wrong *importer.MistakesError
	if errors.As(err, &wrong) {
		for _, w := range wrong.Some {
			p.report(errors.New(w))
		}
		if wrong.More > 0 {
			p.report(fmt.Errorf("and %s more", console.Plural(wrong.More, "line")))
		}
		return wrong
	}
	switch s := i.Status(); {
	case s.Phase == importer.Reading:
	case i.Progress != "":
		p.notef("%d of %d rows have their IDs in %s: run the same command again, with the same input, to go on",
			s.Given, s.Rows, i.Progress)
	default:
		p.notef("nothing is kept: run the command again, with --progress to be able to go on; rows get other IDs then")
	}
	return interrupted(ctx, err)
}

// importStatus returns what tells on a terminal how far an import is.
func importStatus(i *importer.Import) func() string {
	var began time.Time // giving
	return func() string {
		s := i.Status()
		rows := console.Number(float64(s.Rows)) + " rows"
		switch s.Phase {
		case importer.Reading:
			return "reading: " + rows
		case importer.Writing:
			return "writing: " + rows
		}
		if began.IsZero() {
			began = time.Now()
		}
		return fmt.Sprintf("%s  %s of %s  %s rows/s", console.Bar(float64(s.Given)/float64(max(s.Rows, 1))),
			console.Number(float64(s.Given)), rows, console.Number(perSecond(s.Given-s.Resumed, time.Since(began))))
	}
}
