package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/cluster"
)

const replayHelp = `Replay reads the entries of a log, beginning with an empty cluster, and prints
what each leads to. It asks no server: it is how to try out what a cluster would do,
or to see how one came to be what it is.

An entry is a line of FILE, or of standard input when there is none or it is "-":

  {"position":7,"command":"attach","args":{"sequencer":"orders","member":"b"}}

Positions are 0 or more and ascend; there may be gaps. Empty lines are skipped.
For each entry one line is printed:

  {"position":7,"outcome":"applied","value":{"members":["a","b"],
   "pairs":{"a":"b","b":"a"},"prepared":{},"accepted":{},
   "sequencers":{"orders":{"nodes":{"0":"a"},"waiting":["b"]}}}}

The outcome is "applied", "unchanged" when there was nothing to do, or "refused".
In the pairs each member watches the other; prepared and accepted are the pending
joins, by joiner, with the member that each is to watch.

A line that is no entry ends it: what is wrong is told on standard error with the
number of the line, and the exit status is 1. The lines before it are printed.`

const replayExamples = `  firn cluster replay entries.jsonl
  firn cluster replay < entries.jsonl | tail -n 1`

func (p *program) replayCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "replay [FILE]",
		Short:   "Show what the entries of a log lead to",
		Long:    replayHelp,
		Example: replayExamples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%q: firn cluster replay takes one file at most", args[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "-" {
				return replay(p.stdin, "standard input", p.stdout)
			}
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			return replay(file, args[0], p.stdout)
		},
	}
}

// longestLine is how long an entry may be: far longer than any that a log takes.
const longestLine = 8 << 20

// replay prints what the entries in a file lead to, as soon as they have been read.
func replay(in io.Reader, name string, stdout io.Writer) error {
	out := bufio.NewWriterSize(stdout, 64<<10)
	lines := bufio.NewScanner(flushing{in, out})
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	r := replayer{last: -1}
	n := 1
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		result, err := r.next(lines.Bytes())
		if err != nil {
			_ = out.Flush() // the lines before; this error is the one to tell
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		if _, err := out.Write(result); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%s: line %d: it is longer than %d MiB", name, n, longestLine>>20)
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// flushing is a reader that writes out what there is before it waits for more.
type flushing struct {
	io.Reader
	out *bufio.Writer
}

func (f flushing) Read(p []byte) (int, error) {
	if err := f.out.Flush(); err != nil {
		return 0, err
	}
	return f.Reader.Read(p)
}

// replayer goes from one value to the next.
type replayer struct {
	value cluster.Value
	text  []byte // the value as JSON; nil when it is to be written anew
	last  int64  // position; -1 before the first
	line  []byte // reused
}

// next applies the entry of a line and returns the line that tells what came of it, which is valid until
// the next call. An error is returned when the line is no entry, or one that can't come next.
func (r *replayer) next(line []byte) ([]byte, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("it is no UTF-8 text")
	}
	e, err := cluster.ParseEntry(line)
	if err != nil {
		return nil, unreadable(err)
	}
	if e.Position <= r.last {
		return nil, fmt.Errorf("the position %d after %d; positions must ascend", e.Position, r.last)
	}
	r.last = e.Position
	var outcome cluster.Outcome
	r.value, outcome = cluster.Apply(r.value, e)
	if r.text == nil || outcome.Result == cluster.Applied {
		if r.text, err = r.value.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	r.line = append(r.line[:0], `{"position":`...)
	r.line = strconv.AppendInt(r.line, e.Position, 10)
	r.line = append(append(r.line, `,"outcome":"`...), outcome.Result.String()...)
	r.line = append(append(r.line, `","value":`...), r.text...)
	r.line = append(r.line, '}', '\n')
	return r.line, nil
}

// unreadable says of an entry what is wrong with it, in words of JSON rather than of Go.
func unreadable(err error) error {
	var u *cluster.UnreadableError
	if errors.As(err, &u) {
		err = u.Err
	}
	text := err.Error()
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		what := "it"
		if wrong.Field != "" {
			what = strconv.Quote(wrong.Field)
		}
		better := fmt.Sprintf("%s is %s; want %s", what, found(wrong.Value), wanted(wrong.Type))
		text = strings.Replace(text, wrong.Error(), better, 1)
	case errors.Is(err, io.ErrUnexpectedEOF):
		text = "it ends in the middle of a JSON value"
	}
	for _, prefix := range []string{"cluster: ", "json: "} {
		text = strings.TrimPrefix(strings.ReplaceAll(text, ": "+prefix, ": "), prefix)
	}
	return errors.New(strings.ReplaceAll(text, "\n", "; "))
}

// found is what encoding/json says that it has found.
func found(what string) string {
	switch {
	case what == "array":
		return "a list"
	case what == "object":
		return "an object"
	case strings.HasPrefix(what, "number "):
		return "the " + what
	default:
		return "a " + what
	}
}

// wanted is what encoding/json would have put into a type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64:
		return "a whole number that fits in 64 bits"
	case reflect.Bool:
		return "true or false"
	default:
		return "an object"
	}
}
