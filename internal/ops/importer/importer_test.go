package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/filelock"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// rowsOf returns random times in a few ticks, at most as many in each as a node ID has IDs, and their CSV.
func rowsOf(n, perTick int) (times []time.Time, input string) {
	left := map[int]int{}
	var b strings.Builder
	for len(times) < n {
		tick := rand.IntN(n/perTick*2 + 2)
		if left[tick]++; left[tick] > perTick {
			continue
		}
		at := epoch.Add(time.Duration(tick)*time.Millisecond + rand.N(time.Millisecond))
		times = append(times, at)
		fmt.Fprintln(&b, at.Format(time.RFC3339Nano))
	}
	return times, b.String()
}

// owners has the rows of IDs.
type owners map[firn.ID]int

// check fails the test unless each row has an ID of its time, and no ID is, or ever was, another row's.
func (o owners) check(t *testing.T, l firn.Layout, times []time.Time, output string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	if len(lines) != len(times) {
		t.Fatalf("%d rows have %d IDs", len(times), len(lines))
	}
	for row, line := range lines {
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		id := firn.ID(n)
		if at, err := l.Time(id); err != nil || !at.Equal(times[row].Truncate(l.Tick)) {
			t.Fatalf("row %d is of %v, and its ID %d of %v, %v", row, times[row], id, at, err)
		}
		if other, twice := o[id]; twice && other != row {
			t.Fatalf("rows %d and %d have the ID %d", other, row, id)
		}
		o[id] = row
	}
}

func TestEachRowGetsAnIDOfItsTime(t *testing.T) {
	f := newFake(t, tiny)
	for n := range 60 {
		times, input := rowsOf(n, 8)
		output, err := f.run(t, f.prepared(""), input)
		if n == 0 && output == "" && err == nil {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		owners{}.check(t, tiny, times, output)
		f.free = tiny.NodeIDs() - 1
	}
	if f.ended != 59 || len(f.jobs) > 0 {
		t.Errorf("%d jobs have ended, %d have not", f.ended, len(f.jobs))
	}
}

func TestManyRowsInLittleMemory(t *testing.T) {
	l := firn.Default
	l.Epoch = epoch
	f := newFake(t, l)
	i := f.prepared("")
	i.memory, i.batch = 2_000, 4_000
	times, input := rowsOf(200_000, 3)
	output, err := f.run(t, i, input)
	if err != nil {
		t.Fatal(err)
	}
	owners{}.check(t, l, times, output)
	if r := i.Result(); r.Rows != 2e5 || r.New != 2e5 || r.Moved != 0 || r.Node != l.NodeIDs()-1 || r.Job == "" {
		t.Errorf("the result is %+v", r)
	}
}

// Wherever an import dies, the next one gives rows the IDs that they had, and others to the rest.
func TestGoesOnAfterACrash(t *testing.T) {
	const rows = 40 // six calls, with those that begin and end the job
	for call := 1; call <= 8; call++ {
		for _, what := range []fault{lostCall, lostAnswer} {
			f := newFake(t, tiny)
			times, input := rowsOf(rows, 8)
			path := filepath.Join(t.TempDir(), "progress")
			f.lose = func(c int) fault {
				if c == call {
					return what
				}
				return works
			}
			var ended *EndError
			if _, err := f.run(t, f.prepared(path), input); err == nil || errors.As(err, &ended) != (call == 8) {
				t.Fatalf("call %d: %v", call, err)
			}
			i := f.prepared(path)
			output, err := f.run(t, i, input)
			if err != nil {
				t.Fatalf("call %d: %v", call, err)
			}
			o := owners{}
			o.check(t, tiny, times, output)
			if again, err := f.run(t, f.prepared(path), input); again != output || err != nil {
				t.Errorf("a third run brings %q, %v", again, err)
			}
			if used := tiny.NodeIDs() - 1 - f.free; f.ended != 1 || used != 1 || i.Result().Rows != rows {
				t.Errorf("call %d: %d jobs, %d have ended", call, used, f.ended)
			}
		}
	}
}

// A file of progress that was cut off anywhere in its last record, or is full of zeros there, loses nothing.
func TestGoesOnWhenItsLastRecordIsTorn(t *testing.T) {
	times, input := rowsOf(40, 8)
	for call := 1; call <= 6; call++ {
		for _, zeros := range []bool{false, true} {
			f := newFake(t, tiny)
			path := filepath.Join(t.TempDir(), "progress")
			f.lose = func(c int) fault { return map[bool]fault{true: lostCall}[c > call] }
			if _, err := f.run(t, f.prepared(path), input); err == nil {
				t.Fatal("no error")
			}
			f.lose = nil
			kept, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			from := max(headSize, len(kept)-recordHead-7*8)
			if call == 1 {
				from = 0 // the head itself
			}
			cut := from + rand.IntN(len(kept)-from)
			torn := kept[:cut]
			if zeros && cut >= headSize {
				torn = append(torn, make([]byte, len(kept)-cut)...)
			}
			if err := os.WriteFile(path, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			output, err := f.run(t, f.prepared(path), input)
			if err != nil {
				t.Fatalf("call %d, cut at %d of %d: %v", call, cut, len(kept), err)
			}
			owners{}.check(t, tiny, times, output)
			if f.ended != 1 {
				t.Errorf("%d jobs have ended", f.ended)
			}
		}
	}
}

// Whoever goes on with an old copy of a file of progress gets an error, or other IDs, but no row gets one of another.
func TestACopyOfTheProgressGivesNoIDTwice(t *testing.T) {
	errs := 0
	for range 40 {
		f := newFake(t, tiny)
		times, input := rowsOf(30, 8)
		if rand.IntN(2) == 0 { // many of one tick
			times, input = times[:0], ""
			for range 30 {
				at := epoch.Add(time.Duration(rand.IntN(2)) * time.Millisecond)
				times, input = append(times, at), input+at.Format(time.RFC3339Nano)+"\n"
			}
		}
		folder := t.TempDir()
		path, copied := filepath.Join(folder, "progress"), filepath.Join(folder, "copy")
		die := 1 + rand.IntN(7)
		f.lose = func(c int) fault { return map[bool]fault{true: lostCall}[c == die] }
		i := f.prepared(path)
		i.Next = true
		_, _ = f.run(t, i, input)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, data, 0o600); err != nil {
			t.Fatal(err)
		}
		die = f.calls + 1 + rand.IntN(9)
		o := map[string]int{}
		for _, p := range []string{path, copied, path, copied} {
			i := f.prepared(p)
			i.Next = true
			output, err := f.run(t, i, input)
			if err != nil {
				errs++
				continue
			}
			for row, id := range strings.Fields(output) {
				if other, twice := o[id]; twice && other != row {
					t.Fatalf("rows %d and %d have the ID %s", other, row, id)
				}
				o[id] = row
			}
			if len(strings.Fields(output)) != len(times) {
				t.Fatal(output)
			}
		}
	}
	if errs == 0 {
		t.Error("no copy was refused")
	}
}

func TestRepeatsCallsWhoseAnswerIsLost(t *testing.T) {
	for _, status := range []int{0, 503} {
		f := newFake(t, tiny)
		f.status = status
		times, input := rowsOf(40, 8)
		f.lose = func(c int) fault { // not the first call, which finds out whether there is a server
			return map[bool]fault{true: []fault{lostCall, lostAnswer}[rand.IntN(2)]}[c > 1 && rand.IntN(3) == 0]
		}
		i := f.prepared("")
		i.Patience = time.Hour
		warned := false
		i.Warn = func(error) { warned = true }
		output, err := f.run(t, i, input)
		if err != nil {
			t.Fatal(err)
		}
		owners{}.check(t, tiny, times, output)
		if f.calls > 8 && !warned {
			t.Error("it has not said so")
		}
	}
	f := newFake(t, tiny)
	f.lose = func(int) fault { return lostCall }
	i := f.prepared("")
	i.Patience = time.Hour
	if _, err := f.run(t, i, "2019-01-02\n"); err == nil {
		t.Error("it asks a server that never answered again and again")
	}
}

func TestFullTicks(t *testing.T) {
	input := strings.Repeat("2019-01-02T00:00:00.0004Z\n", 17) + strings.Repeat("2019-01-02T00:00:00.001Z\n", 2)
	f := newFake(t, tiny)
	_, err := f.run(t, f.prepared(""), input)
	want := "17 rows are of 2019-01-02T00:00:00Z, and a node ID has 8 IDs for each 1ms; no ID"
	if err == nil || f.calls > 0 || !strings.Contains(err.Error(), want) {
		t.Errorf("%v after %d calls; want %q", err, f.calls, want)
	}
	i := f.prepared("")
	i.Next = true
	output, err := f.run(t, i, input)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for n, text := range strings.Fields(output) {
		id, _ := strconv.ParseInt(text, 10, 64)
		at, _ := tiny.Time(firn.ID(id))
		ms := at.Sub(time.Date(2019, 1, 2, 0, 0, 0, 0, time.UTC)).Milliseconds()
		if seen[text] || ms != int64(n/8) {
			t.Errorf("row %d has the ID %s, of millisecond %d", n, text, ms)
		}
		seen[text] = true
	}
	if r := i.Result(); len(seen) != 19 || r.Moved != 11 {
		t.Errorf("%d IDs; %+v", len(seen), r)
	}
}

// All mistakes are told, and nothing is asked for.
func TestMistakes(t *testing.T) {
	f := newFake(t, tiny)
	_, err := f.run(t, f.prepared(""), "2019-01-02\nx\n2018-12-31\n\n2020-06-01\n"+strings.Repeat("y\n", 30))
	var wrong *MistakesError
	if !errors.As(err, &wrong) || len(wrong.Some) != 20 || wrong.More != 14 || f.calls > 0 {
		t.Fatalf("%v after %d calls", err, f.calls)
	}
	for n, want := range []string{
		`line 2: "x" is not a time`, "line 3: 2018-12-31T00:00:00Z is outside", "line 4: it is empty",
		"line 5: 2020-06-01T00:00:00Z is in the future", `line 6: "y"`,
	} {
		if !strings.HasPrefix(wrong.Some[n], want) {
			t.Errorf("%q; want %q", wrong.Some[n], want)
		}
	}
}

func TestTimesBeforeTheJobAreRefused(t *testing.T) {
	f := newFake(t, tiny)
	i := f.prepared("")
	i.Job = "mine"
	f.jobs["mine"] = &job{node: 3}
	if _, _, err := f.give(calls.Past{Job: "mine", Times: []time.Time{epoch.Add(time.Hour)}}); err != nil {
		t.Fatal(err)
	}
	_, err := f.run(t, i, "2019-01-01\n2019-01-02\n2019-01-01\n")
	if want := `2 rows of times before 2019-01-01T01:00:00Z, from which on the job "mine"`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
}

func TestProgressBelongsToOneImport(t *testing.T) {
	f := newFake(t, tiny)
	path := filepath.Join(t.TempDir(), "progress")
	const input = "2019-01-02 01:00:00\n2019-01-03\n"
	if _, err := f.run(t, f.prepared(path), input); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Import) string{
		"the digest of the input is":   func(*Import) string { return "2019-01-02 02:00:00\n2019-01-03\n" },
		"the number of rows is 2":      func(*Import) string { return "2019-01-02\n" },
		"the job is":                   func(i *Import) string { i.Job = "other"; return input },
		"to use the next tick is":      func(i *Import) string { i.Next = true; return input },
		"the digest of the input is  ": func(i *Import) string { i.Zone = time.FixedZone("x", 3600); return input },
	} {
		i := f.prepared(path)
		if _, err := f.run(t, i, change(i)); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(name)) {
			t.Errorf("%v; want %q", err, name)
		}
	}

	held, err := filelock.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.run(t, f.prepared(path), input); !errors.Is(err, filelock.ErrInUse) {
		t.Errorf("of a file in use: %v", err)
	}
	held.Close()

	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"other":   bytes.Repeat([]byte("x"), 10),
		"head":    append([]byte("y"), whole[1:]...),
		"record":  append(append(bytes.Clone(whole[:headSize]), 9, 9), whole[headSize+2:]...),
		"trailer": append(bytes.Clone(whole), 1),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.run(t, f.prepared(path), input)
		if kept, _ := os.ReadFile(path); err == nil && name != "record" || !bytes.Equal(kept, data) && err != nil {
			t.Errorf("%s: %v; the file has %d bytes of %d", name, err, len(kept), len(data))
		}
	}
}

// A server that does not keep its word does not get its IDs into the output.
func TestAStoreThatWasSetBackIsNoticed(t *testing.T) {
	f := newFake(t, tiny)
	f.lose = func(call int) fault {
		if call == 4 {
			clear(f.jobs)
		}
		return works
	}
	_, input := rowsOf(40, 8)
	_, err := f.run(t, f.prepared(""), input)
	refused, ok := errors.AsType[*remote.AnswerError](err)
	if !ok || refused.Failure.Error.Code != codes.Lost {
		t.Errorf("%v after %d calls", err, f.calls)
	}
}

func TestRefusesWrongIDs(t *testing.T) {
	for name, change := range map[string]func(ids []firn.ID) []firn.ID{
		"gives 1 IDs, not 2":       func(ids []firn.ID) []firn.ID { return ids[:1] },
		"greater than those":       func(ids []firn.ID) []firn.ID { return []firn.ID{ids[0], ids[0]} },
		"want one of that time":    func(ids []firn.ID) []firn.ID { return []firn.ID{ids[0], ids[1] + 1<<20} },
		"is none of the sequencer": func(ids []firn.ID) []firn.ID { return []firn.ID{ids[0], firn.MaxID} },
	} {
		f := newFake(t, tiny)
		f.change = change
		path := filepath.Join(t.TempDir(), "progress")
		if _, err := f.run(t, f.prepared(path), "2019-01-02\n2019-01-02\n"); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%v; want %q", err, name)
		}
		f.change = nil
		if output, err := f.run(t, f.prepared(path), "2019-01-02\n2019-01-02\n"); strings.Count(output, "\n") != 2 {
			t.Errorf("a better one gives %q, %v", output, err)
		}
	}
}

// BenchmarkImport takes the time of a row: to read, sort, ask a server that has its answers ready, keep the progress,
// and write.
func BenchmarkImport(b *testing.B) {
	l := firn.Default
	l.Epoch = epoch
	var input bytes.Buffer
	ticks := make([]int64, b.N)
	for n := range ticks {
		ticks[n] = rand.Int64N(300 * 24 * 3600 * 1000)
		input.Write(l.TickStart(ticks[n]).AppendFormat(nil, "2006-01-02 15:04:05.000+00\n"))
	}
	slices.Sort(ticks)
	var answers [][]byte
	for some := range slices.Chunk(ticks, 20_000) {
		var a calls.PastIDs
		for n, tick := range some {
			id, err := l.Compose(firn.Parts{Tick: tick, Sequence: int64(n & 1023)})
			if err != nil {
				b.Fatal(err)
			}
			a.IDs = append(a.IDs, id)
		}
		slices.Sort(a.IDs)
		answers = append(answers, marshal(b, a))
	}
	definition := marshal(b, calls.StatusSequencer{Definition: cluster.Definition{Nodes: l.NodeIDs(), Layout: l}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodGet:
			_, _ = w.Write(definition)
		case bytes.Contains(body, []byte(`"times":["`)):
			_, _ = w.Write(answers[0])
			answers = answers[1:]
		default:
			_, _ = w.Write([]byte(`{"ids":[]}`))
		}
	}))
	defer server.Close()
	i := New(remote.Client{Base: server.URL, HTTP: server.Client()}, "q")
	i.Progress, i.now = filepath.Join(b.TempDir(), "progress"), func() time.Time { return now }
	defer i.Close()
	b.ResetTimer()
	for _, step := range []func() error{
		func() error { return i.Open(b.Context()) },
		func() error { return i.Read(&input) },
		func() error { return i.Give(b.Context()) },
		func() error { return i.Write(io.Discard) },
	} {
		if err := step(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func marshal(b *testing.B, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	return text
}
