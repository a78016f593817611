package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/console"
	"github.com/firn-id/firn/internal/remote"
	"github.com/firn-id/firn/internal/replay"
	"github.com/firn-id/firn/internal/server/httpapi"
	"github.com/firn-id/firn/internal/setting"
)

const logHelp = `Log prints the entries of a cluster's log: the commands that its members wrote, each
with its position. With --follow it goes on to print new entries, until you interrupt
it or the server ends.

Members drop the beginning of a long log. If entries that you asked for are gone, the
first line says so: on standard output, or with --json on standard error.

With --json each line is an entry that firn cluster replay can read. Replay it only
from the beginning of the log; firn cluster value --at shows the state that dropped
entries led to.`

const logExamples = `  firn cluster log
  firn cluster log --follow --from 57
  firn cluster log --json | firn cluster replay`

func (p *program) logCommand() *cobra.Command {
	var o lookOptions
	var from int64
	var follow bool
	c := &cobra.Command{
		Use:     "log",
		Short:   "Print the log of a cluster",
		Long:    logHelp,
		Example: logExamples,
		Args:    noArguments,
	}
	setting.Number(c.Flags(), &from, "from", "0", 0, "the first position to print")
	setting.Bool(c.Flags(), &follow, "follow", "go on to print new entries")
	o.add(c.Flags(), "print a JSON object for each entry, one per line")
	c.RunE = func(c *cobra.Command, _ []string) error {
		path := fmt.Sprintf("/api/v1/cluster/log?from=%d", from)
		if follow {
			path += "&follow=1"
		}
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error { return p.printLog(ctx, ask, path, follow, o.json) })
	}
	return c
}

// longestEntry is how long the line of an entry may be: longer than what a log takes, since it may be
// written in more characters there.
const longestEntry = 1 << 20

func (p *program) printLog(ctx context.Context, ask remote.Client, path string, follow, asJSON bool) error {
	response, err := ask.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	out := bufio.NewWriterSize(p.stdout, 64<<10)
	lines := bufio.NewScanner(replay.Flushing{Reader: response.Body, Out: out})
	lines.Buffer(make([]byte, 0, 64<<10), longestEntry)
	if after := response.Header.Get(httpapi.LogBeginsAfter); after != "" {
		what := fmt.Sprintf("the log begins after position %.20s: what was before has been dropped; firn cluster value --at %[1]s shows what it led to", after)
		if asJSON {
			fmt.Fprintln(p.stderr, "firn:", what)
		} else {
			fmt.Fprintln(out, what)
		}
	}
	var last int64
	for lines.Scan() {
		var entry logEntry
		err := ask.Understand(lines.Bytes(), &entry)
		if err == nil && entry.Error != nil {
			err = fmt.Errorf("the server %s ends the log: %s (%s)%s", ask.Base, entry.Error.Message, entry.Error.Code, goOn(last))
		}
		if err != nil {
			_ = out.Flush() // the entries before; this error is the one to tell
			return err
		}
		switch {
		case asJSON:
			fmt.Fprintf(out, "%s\n", lines.Bytes())
		case last == 0:
			fmt.Fprint(out, console.Row(logColumns, nil))
			fallthrough
		default:
			fmt.Fprint(out, entry.text())
		}
		last = entry.Position
	}
	if err := out.Flush(); err != nil { // this one, or that of a write before
		return err
	}
	switch err := lines.Err(); {
	case err != nil:
		return fmt.Errorf("the server %s breaks off the log: %w%s", ask.Base, err, goOn(last))
	case follow:
		return fmt.Errorf("the server %s ends the log%s", ask.Base, goOn(last))
	}
	return nil
}

// goOn says how to go on after an entry.
func goOn(last int64) string {
	if last == 0 {
		return ""
	}
	return fmt.Sprintf("; go on with --from %d", last+1)
}

// logEntry is what a line of the log tells.
type logEntry struct {
	Position   int64           `json:"position"`
	Command    string          `json:"command"`
	Args       json.RawMessage `json:"args"`
	Unreadable string          `json:"unreadable"` // why there is no command
	Error      *httpapi.Error  `json:"error"`      // why this is no entry, but the end
}

// logColumns are wide enough for every command, and for most positions, so that rows can be printed as they
// come.
var logColumns = []console.Column{{Head: "POSITION", Right: true}, {Head: "COMMAND", Width: len("prepare-join-cluster")}, {Head: "ARGUMENTS"}}

func (e logEntry) text() string {
	what, args := console.Shown(e.Command), replay.Arguments(e.Args)
	if e.Unreadable != "" {
		what, args = "(unreadable)", fmt.Sprintf("%.200q", e.Unreadable)
	}
	return console.Row(logColumns, []string{strconv.FormatInt(e.Position, 10), what, args})
}
