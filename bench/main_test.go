package main

import (
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

func TestJSONHoldsEverySection(t *testing.T) {
	testenv.Slow(t)
	var out strings.Builder
	if err := run(t.Context(), []string{"--quick", "--json"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tables []struct {
			Title, Note string
			Rows        []map[string]any
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Tables) != 2+2+2+1+5+1+3+2+1+1+4+1+1+2+1+1+1+1+1+2 {
		t.Errorf("%d tables", len(got.Tables))
	}
	for _, table := range got.Tables {
		if skipped := strings.HasPrefix(table.Note, "Skipped"); !skipped &&
			(len(table.Rows) == 0 || table.Rows[0]["name"] == "") {
			t.Errorf("%s has rows %v", table.Title, table.Rows)
		}
	}
}

func TestRoundsAreCountedWhole(t *testing.T) {
	start := time.Now()
	var all []commit
	for _, ms := range []int{0, 1000, 1001, 2000, 2001, 3000} { // the first and last round may lack some
		all = append(all, commit{at: start.Add(time.Duration(ms) * time.Millisecond)})
	}
	rounds, whole := wholeRounds(all, 500*time.Millisecond)
	if rounds != 2 || len(whole) != 4 {
		t.Errorf("%d commits in %d rounds, want 4 in 2", len(whole), rounds)
	}
	if rounds, _ := wholeRounds(all[:3], 500*time.Millisecond); rounds != 0 {
		t.Errorf("%d rounds, want none, of which none is known to be whole", rounds)
	}
}

func TestUnknownSection(t *testing.T) {
	err := run(t.Context(), []string{"nothing"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(),
		"next, fill, fresh, text, limit, serve, http, packed, unix, crowd, grpc, redis, client, sequencer, "+
			"cluster-cost, attach, counter, counter-busy, strict, stores") {
		t.Errorf("got %v, want an error that names the sections", err)
	}
}

func TestTablePrintsAligned(t *testing.T) {
	got := table{
		Title:   "title",
		columns: []column{{"a", "min ns", "%.1f"}, {"b", "ratio", "%.2f"}},
		rows:    []row{{"one", []float64{1, 12.345}}, {"another", []float64{100, math.NaN()}}},
		Targets: []target{atMost("ratio", 1.5, 1.25), atLeast("rate", 99.6, 99.5)},
	}.String()
	const want = `title
           min ns  ratio
  one         1.0  12.35
  another   100.0      -
  short: ratio: 1.5 <= 1.25
  met:   rate: 99.6 >= 99.5
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestRatioCancelsWhatSlowsAWholeRound(t *testing.T) {
	s := speeds{"a": {10, 100, 12}, "b": {5, 50, 6}}
	if got := s.ratio("a", "b"); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median %v, want 2.5", got)
	}
}
