package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/firn-id/firn/internal/core/cluster"
)

const gc = `{"position":%d,"command":"peer-gc","args":{"by":"a"}}` + "\n"

// Run prints all that it has read before it waits for more, so that it can follow a log.
func TestReplayDoesNotWaitWithWhatItHas(t *testing.T) {
	in, write := io.Pipe()
	read, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Run(in, "pipe", out)
		out.Close()
	}()
	for i := range 3 {
		fmt.Fprintf(write, gc, i)
		line := make([]byte, 200)
		n, err := read.Read(line)
		if want := fmt.Sprintf(`{"position":%d,`, i); err != nil || !strings.HasPrefix(string(line[:n]), want) {
			t.Fatalf("%q, %v; want %s", line[:n], err, want)
		}
	}
	write.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Run accepts long lines, and returns an error for endless ones, and for failed reads and writes.
func TestReplayLimits(t *testing.T) {
	spaces := func(n int) string { return strings.Repeat(" ", n) }
	broken := errors.New("broken")
	for _, tt := range []struct {
		name  string
		in    io.Reader
		out   error // of each write
		lines int
		says  string
	}{
		{"long", strings.NewReader(fmt.Sprintf(gc, 1) + spaces(longestLine-1000) + fmt.Sprintf(gc, 2)), nil, 2, ""},
		{
			"too long", strings.NewReader(fmt.Sprintf(gc, 1) + spaces(longestLine+1) + fmt.Sprintf(gc, 2)), nil, 1,
			"f: line 2: it is longer than 8 MiB",
		},
		{
			"reading", io.MultiReader(strings.NewReader(fmt.Sprintf(gc, 1)), iotest.ErrReader(broken)), nil, 1,
			"reading f: broken",
		},
		{
			"writing", strings.NewReader(strings.Repeat(spaces(70_000)+"\n", 2) + fmt.Sprintf(gc, 1)),
			broken, 0, "broken",
		},
		{"no text", strings.NewReader(strings.Replace(gc, "a", "\xff", 1)), nil, 0, "f: line 1: it is no UTF-8 text"},
		{
			"two missing", strings.NewReader(`{"position":1,"command":"attach","args":{}}`), nil, 0,
			`f: line 1: attach: the sequencer's name ""; want 1 to 100 of a-z, 0-9, '.', '_' and '-'; "member" is ` +
				`missing`,
		},
	} {
		out := failing{err: tt.out}
		err := Run(tt.in, "f", &out)
		if (err == nil) != (tt.says == "") || err != nil && err.Error() != tt.says {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.says)
		}
		if got := strings.Count(out.String(), "\n"); got != tt.lines {
			t.Errorf("%s: %d lines, want %d", tt.name, got, tt.lines)
		}
	}
}

// failing is a buffer, or returns its error.
type failing struct {
	bytes.Buffer
	err error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Buffer.Write(p)
}

// Whatever it reads, Run prints each entry before the first line that is not one, as package cluster has it, and
// reports that line by its number.
func FuzzReplay(f *testing.F) {
	script, err := os.ReadFile("../../../cmd/firn/testdata/script/cluster-replay.txtar")
	if err != nil {
		f.Fatal(err)
	}
	_, examples, _ := strings.Cut(string(script), "-- entries.jsonl --\n")
	for example := range strings.SplitSeq(examples, "\n-- ") {
		f.Add([]byte(example))
	}
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		err := Run(bytes.NewReader(in), "f", &out)
		have := strings.SplitAfter(out.String(), "\n")
		have = have[:len(have)-1]
		var v cluster.Value
		at := int64(-1)
		for i, line := range bytes.Split(in, []byte("\n")) {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			if len(have) == 0 {
				if want := fmt.Sprintf("f: line %d: ", i+1); err == nil || !strings.HasPrefix(err.Error(), want) ||
					strings.Contains(err.Error(), "\n") {
					t.Fatalf("%v, want %s", err, want)
				}
				return
			}
			e, err := cluster.ParseEntry(line)
			if err != nil || e.Position <= at {
				t.Fatalf("%q is printed: %v", line, err)
			}
			at = e.Position
			var outcome cluster.Outcome
			v, outcome = cluster.Apply(v, e)
			value, err := json.Marshal(v)
			if want := fmt.Sprintf(`{"position":%d,"outcome":"%v","value":%s}`+"\n", at, outcome.Result,
				value); err != nil || have[0] != want {
				t.Fatalf("have %swant %s", have[0], want)
			}
			have = have[1:]
		}
		if err != nil || len(have) > 0 {
			t.Fatalf("%v, and %d lines more", err, len(have))
		}
	})
}
