package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/replay"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/httpapi"
)

const logHelp = `Log prints a cluster's log in plain words: what its members wrote, when, and why
a member left. With --follow it keeps printing new entries, until you interrupt
it or the server stops.

--since and --until take a time of day such as 03:12 (its latest occurrence), a
date and time such as "2026-11-22 03:12", a duration such as 15m (15 minutes
ago), or RFC 3339. Times are local unless they have an offset. If both are times
of day, --until is the first such time after --since.

An entry is a request. An entry that does not fit the state is refused and
changes nothing; firn cluster replay shows each outcome. An entry that an
operator caused ends with the name of the operator's token, as in [by deploy]. A
member ID follows the name of its node, while the node lives and for a day
after.

Entries have the times of their senders' clocks; only the log's order counts.
Log prints everything from the first entry at or after --since to the last entry
at or before --until. If an entry's time contradicts the order by more than a
second, log marks the entry and uses its neighbours' time.

Members drop the beginning of a long log. If entries that you asked for are
gone, the first line says so (with --json, on standard error).

With --json each line is an entry for firn cluster replay, with its time in UTC,
and its neighbours' time as "believed" if the two contradict each other. Replay
needs the log from its beginning; if members have dropped that, use firn cluster
value instead.`

const logExamples = `  firn cluster log
  firn cluster log --since 03:00 --until 03:20
  firn cluster log --follow --since 15m
  firn cluster log --json | firn cluster replay`

// logOptions are the flags of firn cluster log.
type logOptions struct {
	lookOptions
	from         int64
	since, until setting.Instant // zero: not given
	follow       bool
}

func (p *program) logCommand() *cobra.Command {
	var o logOptions
	c := &cobra.Command{
		Use:     "log",
		Short:   "Print the log of a cluster",
		Long:    logHelp,
		Example: logExamples,
		Args:    noArguments,
	}
	setting.Add(c.Flags(), &o.since, "since", "time", "", "print entries from this time on, such as 03:00 or 15m",
		setting.ParseInstant)
	setting.Add(c.Flags(), &o.until, "until", "time", "", "print entries up to this time", setting.ParseInstant)
	setting.Number(c.Flags(), &o.from, "from", "0", 0, "print entries from this position on")
	setting.Bool(c.Flags(), &o.follow, "follow", "keep printing new entries")
	o.add(c.Flags(), "print a JSON object for each entry, one per line")
	c.RunE = func(c *cobra.Command, _ []string) error {
		path, err := o.path()
		if err != nil {
			return err
		}
		return p.look(c, &o.lookOptions, func(ctx context.Context, ask remote.Client) error {
			return p.printLog(ctx, ask, path, o.follow, o.json)
		})
	}
	return c
}

// path is what to ask the server for.
func (o logOptions) path() (string, error) {
	query := url.Values{"from": {strconv.FormatInt(o.from, 10)}}
	if !o.since.IsZero() {
		query.Set("since", wireTime(o.since))
		o.until = o.until.Following(o.since)
	}
	switch {
	case o.until.IsZero():
	case o.follow:
		return "", usagef("--until and --follow: --follow prints without end; leave one of them out")
	case o.until.Before(o.since.Time):
		return "", usagef("--until is %s, before --since, %s; want a later time", localTime(o.until.Time),
			localTime(o.since.Time))
	default:
		query.Set("until", wireTime(o.until))
	}
	if o.follow {
		query.Set("follow", "1")
	}
	return "/api/v1/cluster/log?" + query.Encode(), nil
}

// wireTime is a time as servers read it: to the millisecond, as the times of entries are.
func wireTime(i setting.Instant) string { return i.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

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
		what := fmt.Sprintf("the log begins after position %.20s: members dropped earlier entries; firn cluster value "+
			"--at %[1]s shows what they led to", after)
		if asJSON {
			fmt.Fprintln(p.stderr, "firn:", what)
		} else {
			fmt.Fprintln(out, what)
		}
	}
	names := nodeNames{ask: ask}
	var last int64
	for lines.Scan() {
		var entry logEntry
		err := ask.Understand(lines.Bytes(), &entry)
		entry.line = lines.Bytes()
		if err == nil && entry.Error != nil {
			err = fmt.Errorf("the server %s ends the log: %s (%s)%s", ask.Base, entry.Error.Message,
				entry.Error.Code, goOn(last))
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
			fmt.Fprint(out, names.add(ctx, entry.text()))
		}
		last = entry.Position
	}
	if last == 0 && !asJSON && !follow && lines.Err() == nil {
		fmt.Fprintln(out, "no entries")
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
	At         time.Time       `json:"at"`       // zero: unknown
	Believed   time.Time       `json:"believed"` // what its neighbours say instead; zero: nothing
	Who        string          `json:"who"`      // asked for it; empty: unknown
	Command    string          `json:"command"`
	Args       json.RawMessage `json:"args"`
	Unreadable string          `json:"unreadable"` // why there is no command
	Error      *httpapi.Error  `json:"error"`      // why this is no entry, but the end

	line []byte
}

// logColumns are wide enough for every time, and for most positions, so that rows can be printed as they come.
var logColumns = []console.Column{
	{Head: "LOCAL TIME", Width: len(localFormat)},
	{Head: "POSITION", Right: true},
	{Head: "WHAT HAPPENED"},
}

func (e logEntry) text() string {
	at := "unknown"
	if !e.At.IsZero() {
		at = localTime(e.At)
	}
	return console.Row(logColumns, []string{at, strconv.FormatInt(e.Position, 10), e.words() + e.doubt()})
}

// doubt marks a time that the entry's neighbours contradict.
func (e logEntry) doubt() string {
	switch {
	case e.Believed.IsZero() || e.At.IsZero():
		return ""
	case e.At.After(e.Believed):
		return fmt.Sprintf(" [clock ahead: sent by %s]", localTime(e.Believed))
	default:
		return fmt.Sprintf(" [late clock: sent from %s on]", localTime(e.Believed))
	}
}

// words says what happened. A newer server may have commands that this program does not know.
func (e logEntry) words() string {
	if e.Unreadable != "" {
		return fmt.Sprintf("the server can't read this entry: %.200q", e.Unreadable)
	}
	if entry, err := cluster.ParseEntry(e.line); err == nil {
		return replay.Words(entry.Command) + byWhom(entry.Who)
	}
	return strings.TrimSpace(console.Shown(e.Command)+" "+replay.Arguments(e.Args)) + byWhom(e.Who)
}

// byWhom says who asked for a change.
func byWhom(who string) string {
	if who == "" {
		return ""
	}
	return " [by " + console.ShownText(who) + "]"
}
