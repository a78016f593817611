// Package replay prints the value after each entry of a cluster's log, as lines of JSON. It needs no store.
package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
)

// longestLine is the longest line in bytes: far longer than any entry that a log takes.
const longestLine = 8 << 20

// Run prints the outcome of each entry of a file as soon as it has read it, beginning with an empty cluster. It
// returns an error for a line that is not an entry, with the name of the file and the number of the line.
func Run(in io.Reader, name string, stdout io.Writer) error {
	out := bufio.NewWriterSize(stdout, 64<<10)
	lines := bufio.NewScanner(Flushing{in, out})
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	r := replayer{last: -1}
	n := 1
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		result, err := r.next(lines.Bytes())
		if err != nil {
			_ = out.Flush() // err is the error to return
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

// Flushing is a reader that flushes the output before it waits for more input.
type Flushing struct {
	io.Reader
	Out *bufio.Writer
}

func (f Flushing) Read(p []byte) (int, error) {
	if err := f.Out.Flush(); err != nil {
		return 0, err
	}
	return f.Reader.Read(p)
}

// replayer applies entries to a value.
type replayer struct {
	value cluster.Value
	text  []byte // the value as JSON; nil: outdated
	last  int64  // position; -1 before the first
	line  []byte // reused
}

// next applies the entry of a line and returns the line to print, which is valid until the next call. It returns
// an error when the line is not an entry, or one that can't come next.
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

// unreadable returns what is wrong with an entry, in terms of JSON rather than Go.
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

// found returns the JSON value that encoding/json reports.
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

// wanted returns the JSON value that encoding/json reads into a type.
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

// Arguments returns the arguments of a command for people, in the order in which they were written.
func Arguments(args []byte) string {
	d := json.NewDecoder(bytes.NewReader(args))
	if _, err := d.Token(); err != nil {
		return ""
	}
	var parts []string
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			break
		}
		text := string(value)
		var unquoted string
		if json.Unmarshal(value, &unquoted) == nil {
			text = console.Shown(unquoted)
		}
		parts = append(parts, fmt.Sprintf("%v=%s", name, text))
	}
	return strings.Join(parts, " ")
}
