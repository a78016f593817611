package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/memstore"
)

// Some worlds, with real processors and under the race detector: no ID comes twice, whatever the store, the sessions,
// the processes, the clocks and operators do.
func TestWorlds(t *testing.T) {
	var steps Steps
	for seed := range uint64(24) {
		r := simulate(t, random(seed), false)
		steps.Add(r.Steps)
		for _, f := range r.Failures {
			t.Errorf("%v; to see it: go run ./internal/test/worlds -first %d -seeds 1 -v", f, seed)
		}
	}
	t.Logf("%+v", steps)
	if least := (Steps{Calls: 15_000, Entries: 5_000, IDs: 8_000, Events: 5_000}); steps.Calls < least.Calls ||
		steps.Entries < least.Entries || steps.IDs < least.IDs || steps.Events < least.Events {
		t.Errorf("%+v; want at least %+v to show anything", steps, least)
	}
}

// Plans of worlds that have failed: each stays here when its bug is mended. A plan does not say in which order
// goroutines do what they do at one instant, so each is carried out several times.
func TestWorldsThatHaveFailed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no plans: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var p Plan
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for range 20 {
			if failures := simulate(t, p, false).Failures; len(failures) > 0 {
				t.Errorf("%s: %v", file, failures)
				break
			}
		}
	}
}

// A plan that was written and read is the same one, and a seed gives the same one each time.
func TestPlansAreWrittenAndRead(t *testing.T) {
	for seed := range uint64(200) {
		p := random(seed)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var q Plan
		if err := json.Unmarshal(text, &q); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, q) {
			t.Fatalf("seed %d: read as\n%+v\nwritten as\n%+v", seed, q, p)
		}
		if !reflect.DeepEqual(p, random(seed)) {
			t.Fatalf("seed %d has two plans", seed)
		}
	}
}

// Every kind of event has words of its own, and happens.
func TestEveryKindHappens(t *testing.T) {
	kinds := []Kind{
		Start, Leave, Crash, CutOff, Heal, Lag, Expire, Step, StepAll, Take, TakeAll, Count, Ensure, Create,
		Attach, Detach,
		Destroy, Replace,
		Drain, Undrain, Move, Allocate, Borrow, Keep, Import, Policy, Expel, Stop, Resume, Faulty, Faultless,
		Backup, SetBack,
	}
	seen := map[Kind]bool{}
	for seed := range uint64(200) {
		for _, e := range random(seed).Events {
			if seen[e.Kind] = true; e.String() == string(e.Kind) {
				t.Fatalf("%q has no words", e.Kind)
			}
		}
	}
	for _, k := range kinds {
		if !seen[k] {
			t.Errorf("%q does not happen", k)
		}
	}
	if len(seen) != len(kinds) {
		t.Errorf("there are kinds that this test does not know: %v", seen)
	}
}

func TestFaults(t *testing.T) {
	f := Faults{
		OneIn: 4, Longest: time.Second,
		Outcomes: []memstore.Outcome{memstore.Answered, memstore.FailBefore, memstore.FailAfter, memstore.ApplyLate},
	}
	count := map[memstore.Outcome]int{}
	faults := 0
	for n := range uint64(10_000) {
		fault := f.of(1, "n1", n)
		if fault != f.of(1, "n1", n) {
			t.Fatal("the same call has two faults")
		}
		if fault != (memstore.Fault{}) {
			faults++
			count[fault.Outcome]++
		}
		if fault.Delay < 0 || fault.Delay >= f.Longest {
			t.Fatalf("a delay of %v", fault.Delay)
		}
	}
	if faults < 2300 || faults > 2700 || len(count) != 4 {
		t.Errorf("%d of 10000 calls have faults, %v; want one in four, of each kind", faults, count)
	}
	if (Faults{}).of(1, "n1", 1) != (memstore.Fault{}) {
		t.Error("there are faults without faults")
	}
}

// The rules that IDs can break, each broken.
func TestSeen(t *testing.T) {
	l := firn.Layout{Epoch: epoch, Tick: time.Millisecond, TimeBits: 41, NodeBits: 1, SequenceBits: 4}
	make := func(tick, node, sequence int64) firn.ID {
		id, err := l.Compose(firn.Parts{Tick: tick, Node: node, Sequence: sequence})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	a, b := lane{by: "a", sequencer: "orders", layout: l}, lane{by: "b", sequencer: "orders", layout: l}
	for _, c := range []struct {
		name string
		by   []lane
		ids  []firn.ID
		want string
	}{
		{"one after the other", []lane{a, b, a}, []firn.ID{make(1, 0, 0), make(2, 0, 0), make(3, 0, 0)}, ""},
		{"below the other's, late", []lane{a, b, a}, []firn.ID{make(1, 0, 0), make(3, 0, 0), make(2, 0, 0)}, ""},
		{"two node IDs", []lane{a, b}, []firn.ID{make(1, 0, 0), make(1, 1, 0)}, ""},
		{"twice", []lane{a, b}, []firn.ID{make(1, 0, 0), make(1, 0, 0)}, "no ID comes twice"},
		{"in one tick", []lane{a, b}, []firn.ID{make(1, 0, 0), make(1, 0, 1)}, "an instant of a node ID has one owner"},
		// a may have owned it again
		{"in between, late", []lane{a, a, b}, []firn.ID{make(1, 0, 0), make(3, 0, 1), make(2, 0, 0)}, ""},
		{"descending", []lane{a, a}, []firn.ID{make(1, 0, 1), make(1, 0, 0)}, "the IDs of a node ID ascend"},
		{"of another layout", []lane{a}, []firn.ID{1 << 50}, "an ID has the layout of its sequencer"},
	} {
		s, got := newSeen(), ""
		for i, id := range c.ids {
			if rule, _ := s.note(c.by[i], id, id); rule != "" {
				got = rule
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A world that fails after a crash with an ID taken later is shrunk to these two events on their machine.
func TestShrink(t *testing.T) {
	var p Plan
	for seed := uint64(0); p.Loses || len(p.Machines) < 3 || !slices.ContainsFunc(p.Events, func(e Event) bool {
		return e.Kind == Crash
	}); seed++ {
		p = random(seed)
	}
	runs := 0
	fails := func(p Plan) (r Result) {
		if runs++; runs%2 == 0 { // chance
			return r
		}
		at := slices.IndexFunc(p.Events, func(e Event) bool { return e.Kind == Crash })
		if at >= 0 && slices.ContainsFunc(p.Events[at:], func(e Event) bool { return e.Kind == TakeAll }) {
			r.Failures = []Failure{{Rule: "a rule"}}
		}
		return r
	}
	s := newShrinker(p, "a rule", fails)
	q := s.shrink()
	if len(q.Events) != 2 || len(q.Machines) != 1 || q.Events[1].Count != 1 || q.Faults.OneIn != 0 || q.Calm != 0 {
		t.Errorf("shrunk to\n%+v", q)
	}
	if n, last := s.often(q); n != often/2 || len(last.Failures) == 0 {
		t.Errorf("it fails %d times of %d", n, often)
	}
}

// What shrinking must leave in stays.
func TestShrinkKeepsWhatIsAssumed(t *testing.T) {
	p := random(0)
	for seed := uint64(1); !p.Loses; seed++ {
		p = random(seed)
	}
	q := newShrinker(p, "a rule", func(Plan) Result { return Result{Failures: []Failure{{Rule: "a rule"}}} }).shrink()
	for _, e := range p.Events {
		one := slices.ContainsFunc(q.Machines, func(m Machine) bool { return e.Machine == "" || e.Machine == m.Name })
		if e.Kept && one && !slices.ContainsFunc(q.Events, func(o Event) bool {
			return o.At == e.At && o.Kind == e.Kind && o.Machine == e.Machine
		}) {
			t.Errorf("without %v at %v", e, e.At)
		}
	}
}
