package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// one and two are the journals of two members that own node ID 7 one after the other: the first is cut off after its
// second extension, whose answer it never gets, and the other one claims the node ID, makes IDs and releases it.
const one = `
{"do":"begin","journal":1,"member":"one"}
{"do":"read","sequencer":"orders","node":7,"owner":"A","floor":100}
{"do":"send","sequencer":"orders","node":7,"owner":"A","horizon":200}
{"do":"applied","sequencer":"orders","node":7,"owner":"A","version":"5","horizon":200}
{"do":"bound","sequencer":"orders","node":7,"owner":"A","until":200}
{"do":"given","sequencer":"orders","node":7,"from":150,"until":151,"first":"1000","last":"1003","count":4}
{"do":"given","sequencer":"orders","node":7,"from":150,"until":151,"first":"1004","last":"1004","count":1}
{"do":"send","sequencer":"orders","node":7,"owner":"A","version":"5","horizon":300}
{"do":"doubt","sequencer":"orders","node":7,"owner":"A"}
{"do":"send","sequencer":"orders","node":7,"owner":"A","version":"5","horizon":310}
{"do":"conflict","sequencer":"orders","node":7,"owner":"A"}
{"do":"seen","sequencer":"orders","node":7,"owner":"A","version":"6","by":"A","horizon":300}
{"do":"bound","sequencer":"orders","node":7,"owner":"A","until":300}
{"do":"given","sequencer":"orders","node":7,"from":299,"until":300,"first":"2000","last":"2030","count":4}
{"do":"send","sequencer":"orders","node":7,"owner":"A","version":"6","horizon":400}
`

const two = `
{"do":"begin","journal":1,"member":"two"}
{"do":"read","sequencer":"orders","node":7,"owner":"B","version":"9","by":"A","horizon":400,"floor":450}
{"do":"send","sequencer":"orders","node":7,"owner":"B","version":"9","horizon":500}
{"do":"applied","sequencer":"orders","node":7,"owner":"B","version":"11","horizon":500}
{"do":"bound","sequencer":"orders","node":7,"owner":"B","until":500}
{"do":"given","sequencer":"orders","node":7,"from":450,"until":451,"first":"2001","last":"2001","count":1}
{"do":"stop","sequencer":"orders","node":7,"owner":"B","until":460}
{"do":"given","sequencer":"orders","node":7,"from":459,"until":460,"first":"3000","last":"3000","count":1}
{"do":"send","sequencer":"orders","node":7,"owner":"B","version":"11","horizon":460}
{"do":"applied","sequencer":"orders","node":7,"owner":"B","version":"12","horizon":460}
`

func check(t *testing.T, texts ...string) Report {
	t.Helper()
	var files []File
	for i, text := range texts {
		files = append(files, File{fmt.Sprint("file", i+1), strings.NewReader(strings.TrimSpace(text) + "\n")})
	}
	r, err := Check(files...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStepsOfTheModel(t *testing.T) {
	r := check(t, one, two)
	if len(r.Violations) > 0 {
		t.Errorf("%v", r.Violations)
	}
	r.Violations = nil
	if want := (Report{Lines: 25, Members: 2, Owners: 2, NodeIDs: 1, IDs: 11}); fmt.Sprint(r) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", r, want)
	}
}

// Each line that is no step is found, and the rule that it breaks is named.
func TestViolations(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string // what is changed in the two journals
		line     string
		rule     string
	}{
		"a floor below the horizon that was read": {
			`"horizon":400,"floor":450`, `"horizon":400,"floor":399`,
			"file2:2", ruleRead,
		},
		"an owner that begins twice": {`"owner":"B"`, `"owner":"A"`, "file2:2", ruleRead},
		"an owner that has not read": {
			`{"do":"send","sequencer":"orders","node":7,"owner":"B",` +
				`"version":"9"`, `{"do":"send","sequencer":"orders","node":7,"owner":"C","version":"9"`,
			"file2:3", ruleRead,
		},
		"an owner of another node ID": {
			`{"do":"bound","sequencer":"orders","node":7,"owner":"B"`,
			`{"do":"bound","sequencer":"orders","node":8,"owner":"B"`, "file2:5", ruleRead,
		},
		"a version that the owner does not know": {
			`"version":"6","horizon":400`, `"version":"5","horizon":400`,
			"file1:15", ruleSend,
		},
		"a horizon that goes back": {
			`"version":"5","horizon":310`, `"version":"5","horizon":199`,
			"file1:10", ruleSend,
		},
		"a release of another horizon": {
			`"version":"11","horizon":460`, `"version":"11","horizon":459`,
			"file2:9", ruleRelease,
		},
		"a release under another version": {
			`"version":"11","horizon":460`, `"version":"9","horizon":460`,
			"file2:9", ruleRelease,
		},
		"a release before the generator stops": {
			"{\"do\":\"stop\",\"sequencer\":\"orders\",\"node\":7,\"owner\":\"B\",\"until\":460}\n", "",
			"file2:8", ruleSend,
		},
		"what nobody has sent is applied": {
			`"version":"11","horizon":500`, `"version":"11","horizon":501`,
			"file2:4", ruleApply,
		},
		"a condition that was lost": {`"version":"9","by":"A"`, `"version":"10","by":"C"`, "file2:4", ruleApply},
		"a version that changes": {
			`"version":"9","by":"A","horizon":400`,
			`"version":"6","by":"A","horizon":400`, "file2:2", ruleApply,
		},
		"a version that goes back": {
			`"version":"12","horizon":460`, `"version":"10","horizon":460`,
			"file2:10", ruleLearn,
		},
		"a bound that is not confirmed": {`"owner":"A","until":300`, `"owner":"A","until":310`, "file1:13", ruleUse},
		"an ID beyond the bound":        {`"from":299,"until":300`, `"from":299,"until":301`, "file1:14", ruleUse},
		"an ID before the floor":        {`"from":450,"until":451`, `"from":449,"until":450`, "file2:6", ruleUse},
		"an ID after the end":           {`"from":459,"until":460`, `"from":460,"until":461`, "file2:8", ruleUse},
		"an ID of a node ID that it does not have": {
			`{"do":"given","sequencer":"orders","node":7,"from":459`,
			`{"do":"given","sequencer":"orders","node":8,"from":459`, "file2:8", ruleUse,
		},
		"an end before the use":   {`"owner":"B","until":460`, `"owner":"B","until":450`, "file2:7", ruleStop},
		"an end before the floor": {`"owner":"B","until":460`, `"owner":"B","until":440`, "file2:7", ruleStop},
		"a second end": {
			`{"do":"doubt","sequencer":"orders","node":7,"owner":"A"}`,
			"{\"do\":\"stop\",\"sequencer\":\"orders\",\"node\":7,\"owner\":\"A\",\"until\":210}\n" +
				"{\"do\":\"stop\",\"sequencer\":\"orders\",\"node\":7,\"owner\":\"A\",\"until\":210}",
			"file1:10", ruleStop,
		},
		"an ID twice": {`"first":"2001"`, `"first":"2000"`, "file2:6", ruleID},
		"an ID twice in a run": {
			`"first":"2001","last":"2001","count":1`,
			`"first":"2001","last":"2010","count":10`, "file2:6", ruleID,
		},
		"an ID twice in runs of two layouts": {
			`"first":"2001","last":"2001","count":1`,
			`"first":"2002","last":"2030","count":5`, "file2:6", ruleID,
		},
		"an ID twice in one journal": {`"first":"1004"`, `"first":"1003"`, "file1:7", ruleID},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := strings.ReplaceAll(one, c.from, c.to), strings.ReplaceAll(two, c.from, c.to)
			if a == one && b == two {
				t.Fatal("nothing was changed")
			}
			r := check(t, a, b)
			if !slices.ContainsFunc(r.Violations, func(v Violation) bool {
				return v.Line == c.line && v.Rule == c.rule
			}) {
				t.Errorf("found %v; want %s at %s", r.Violations, c.rule, c.line)
			}
		})
	}
}

// The instants of two owners are compared even where all that they read and sent is right, because a store that has
// lost data may have shown both the same.
func TestInstantsAreCompared(t *testing.T) {
	again := strings.NewReplacer(`"A"`, `"C"`, `"first":"1`, `"first":"5`, `"last":"1`, `"last":"5`, `"first":"2`,
		`"first":"6`, `"last":"2`, `"last":"6`).Replace(one)
	lost := "{\"do\":\"loss\"}\n"
	r := check(t, one, again+lost)
	if len(r.Violations) != 1 || r.Violations[0].Rule != ruleInstant || r.Violations[0].Line != "file2:2" {
		t.Errorf("found %v; want %s at file2:2", r.Violations, ruleInstant)
	}
	if !r.Lost {
		t.Error("the loss is not reported")
	}
	uses := func(owner string, from, until int64) string {
		return fmt.Sprintf(`{"do":"begin","journal":1}
{"do":"read","sequencer":"orders","node":7,"owner":%q}
{"do":"send","sequencer":"orders","node":7,"owner":%q,"horizon":1000}
{"do":"applied","sequencer":"orders","node":7,"owner":%q,"version":"1","horizon":1000}
{"do":"given","sequencer":"orders","node":7,"from":%d,"until":%d,"first":"%d","last":"%d","count":1}
{"do":"loss"}`, owner, owner, owner, from, until, from, from)
	}
	if r := check(t, uses("A", 0, 100), uses("B", 10, 20), uses("C", 50, 60),
		uses("D", 100, 110)); len(r.Violations) != 2 {
		t.Errorf("found %v; want two, as A overlaps with B and C", r.Violations)
	}
}

func TestVersionsAfterALoss(t *testing.T) {
	back := strings.Replace(two, `"version":"12","horizon":460`, `"version":"10","horizon":460`, 1)
	if r := check(t, one, back+"{\"do\":\"loss\"}\n"); len(r.Violations) > 0 {
		t.Errorf("found %v; the store has lost data", r.Violations)
	}
}

// A process that is killed may leave half a line, after which the next run goes on in the same file.
func TestLinesThatWereCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	half := one[:len(one)-20]
	if err := os.WriteFile(path, []byte(strings.TrimSpace(half)), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() (Report, error) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return Check(File{path, f})
	}
	if r, err := read(); err != nil || r.Lines != 14 {
		t.Errorf("%+v %v, want 14 lines", r, err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(f, func(err error) { t.Error(err) })
	w.Write(Line{Do: Begin, Journal: Version})
	w.Write(Line{Do: Loss})
	f.Close()
	if r, err := read(); err != nil || r.Lines != 16 || r.Members != 2 {
		t.Errorf("%+v %v, want 16 lines of 2 members", r, err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(text), "}\n") || strings.Contains(string(text), "\n\n") {
		t.Errorf("%v: the file ends with %q", err, text[len(text)-20:])
	}
}

func TestWhatIsNoJournal(t *testing.T) {
	begin := `{"do":"begin","journal":1}` + "\n"
	for text, want := range map[string]string{
		"hello\n":                                  "file:1: not a line of a journal",
		`{"do":"loss"}` + "\n":                     `want "begin" first`,
		`{"do":"begin","journal":2}` + "\n":        "a journal of version 2; want version 1",
		begin + "hello\n" + `{"do":"loss"}` + "\n": "file:2: not a line of a journal",
		begin + `{"do":"dance"}` + "\n":            `file:2: no journal of version 1 has a line that does "dance"`,
		begin + `{"do":"given","first":"2","last":"1","count":1}` + "\n" + `{"do":"loss"}` + "\n": "1 IDs from 2 to 1",
		begin + `{"do":"given","first":"1","last":"2","count":9}` + "\n" + `{"do":"loss"}` + "\n": "9 IDs from 1 to 2",
		begin + `{"do":"given","first":"1","last":"2","count":-1}` + "\n" +
			`{"do":"loss"}` + "\n": "-1 IDs from 1 to 2",
		begin + `{"do":"loss","colour":"red"}` + "\n" + `{"do":"loss"}` + "\n": "colour",
	} {
		if _, err := Check(File{"file", strings.NewReader(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := Check(File{"file", io.MultiReader(strings.NewReader(begin), brokenReader{})}); !errors.Is(err,
		errBroken) {
		t.Errorf("a file that can't be read: %v", err)
	}
}

var errBroken = errors.New("broken")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

// After an error nothing more is written, so that no line is missing between two others.
func TestAWriterEndsWithAnError(t *testing.T) {
	to := &fullDisk{room: 2}
	var errs []error
	w := NewWriter(to, func(err error) { errs = append(errs, err) })
	for range 5 {
		w.Write(Line{Do: Loss})
	}
	to.room = 5
	w.Write(Line{Do: Loss})
	if len(errs) != 1 || !errors.Is(errs[0], errBroken) || to.written != 2 {
		t.Errorf("%d lines are written, the errors are %v; want 2, and one error", to.written, errs)
	}
	none := NewWriter(nil, nil)
	none.Write(Line{Do: Loss})
}

type fullDisk struct{ room, written int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.written >= d.room {
		return 0, errBroken
	}
	d.written++
	return len(p), nil
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(strings.TrimSpace(one)), []byte(strings.TrimSpace(two)))
	f.Add([]byte(`{"do":"begin","journal":1}`+"\n"), []byte("\n"))
	f.Fuzz(func(_ *testing.T, a, b []byte) {
		r, err := Check(File{"a", strings.NewReader(string(a))}, File{"b", strings.NewReader(string(b))})
		if err == nil {
			_, _ = json.Marshal(r)
		}
	})
}
