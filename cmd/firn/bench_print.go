package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/load"
)

// percentiles are those that are told.
var percentiles = []float64{50, 90, 99, 99.9}

// benchText is a result for people.
func benchText(o *benchOptions, r load.Result) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("asked", "%s by %s, over %s, %s a call, for %v", strings.Join(o.servers, ", "), o.protocol.Name,
		console.Plural(o.concurrency, "connection"), console.Plural(o.batch, "ID"), r.Took.Round(10*time.Millisecond))
	row("IDs", "%s, %s a second", console.Number(float64(r.IDs)), console.Number(perSecond(r.IDs, r.Took)))
	row("calls", "%s, %s a second", console.Number(float64(r.Calls)), console.Number(perSecond(r.Calls, r.Took)))
	row("errors", "%s", errorsText(r))
	for _, e := range r.Errors {
		fmt.Fprintf(&b, "%11s %s: %.200s\n", "", console.Shown(e.Code), printable(e.Example))
	}
	if r.Unsent > 0 {
		row("unsent", "%s that the rate of %v IDs a second has more: no connection was free for them",
			console.Plural(r.Unsent, "call"), o.rate)
	}
	if r.IDs > 0 {
		row("duplicates", "%s", duplicatesText(r))
	}
	switch {
	case r.IDs == 0:
	case r.Descents == 0:
		row("order", "ascending on every connection")
	default:
		row("order", "%s not above the one before on the same connection: as behind a balancer, or after a take-over",
			console.Plural(r.Descents, "time"))
	}
	if r.Against != nil {
		for _, line := range againstRows(o, r.Against) {
			row(line[0], "%s", line[1])
		}
	}
	if r.Latency.Calls() > 0 {
		fmt.Fprintf(&b, "\nlatency of the calls that brought IDs, in ms\n\n%s", latencyText(r.Latency))
	}
	return b.String()
}

// printable is what a server tells, without what a terminal would take for a command.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// errorsText counts errors by their codes.
func errorsText(r load.Result) string {
	if r.Failed == 0 {
		return "none"
	}
	var codes []string
	for _, e := range r.Errors {
		codes = append(codes, console.Shown(e.Code)+" "+console.Number(float64(e.Calls)))
	}
	return fmt.Sprintf("%s of %s: %s", console.Number(float64(r.Failed)), console.Plural(r.Calls, "call"),
		strings.Join(codes, ", "))
}

func duplicatesText(r load.Result) string {
	among := fmt.Sprintf("among %s", console.Plural(r.Duplicates.Checked, "ID"))
	if r.Duplicates.Checked < r.IDs {
		among += fmt.Sprintf("; memory did not suffice to compare the other %s",
			console.Number(float64(r.IDs-r.Duplicates.Checked)))
	}
	if r.Duplicates.More == 0 {
		return "none " + among
	}
	return fmt.Sprintf("%s %s, such as %s", console.Number(float64(r.Duplicates.More)), among,
		strings.Join(texts(r.Duplicates.Some), ", "))
}

func texts(ids []firn.ID) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = id.String()
	}
	return all
}

// longestBar is how many characters wide the longest bar is.
const longestBar = 40

// latencyText is a table of percentiles, and the bands as bars.
func latencyText(l *load.Latency) string {
	var heads []console.Column
	var row []string
	for _, percent := range percentiles {
		heads = append(heads, console.Column{Head: "P" + strconv.FormatFloat(percent, 'f', -1, 64), Right: true})
		row = append(row, millis(l.At(percent)))
	}
	heads = append(heads, console.Column{Head: "MAX", Right: true}, console.Column{Head: "MEAN", Right: true})
	row = append(row, millis(l.Max()), millis(l.Mean()))

	var most int64
	bands := l.Bands()
	for _, b := range bands {
		most = max(most, b.Calls)
	}
	var rows [][]string
	for _, b := range bands {
		bar := strings.Repeat("#", int((b.Calls*longestBar+most-1)/most))
		rows = append(rows, []string{millis(b.UpTo), console.Number(float64(b.Calls)), bar})
	}
	return console.Table(heads, [][]string{row}) + "\n" +
		console.Table([]console.Column{{Head: "UP TO", Right: true}, {Head: "CALLS", Right: true}, {}}, rows)
}

// millis is a time in milliseconds, to three digits or the microsecond.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 10:
		return fmt.Sprintf("%.3f", ms)
	case ms < 100:
		return fmt.Sprintf("%.2f", ms)
	case ms < 1000:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}

// benchResult is a result for programs.
type benchResult struct {
	Servers     []string           `json:"servers"`
	Protocol    string             `json:"protocol"`
	Connections int64              `json:"connections"`
	Batch       int64              `json:"batch"`
	Seconds     float64            `json:"seconds"`
	Interrupted bool               `json:"interrupted"`
	IDs         int64              `json:"ids"`
	IDRate      float64            `json:"ids_per_second"`
	Calls       int64              `json:"calls"`
	CallRate    float64            `json:"calls_per_second"`
	Failed      int64              `json:"failed"` // of the calls
	Unsent      int64              `json:"unsent"`
	Errors      []load.Failure     `json:"errors"`
	Duplicates  benchDuplicates    `json:"duplicates"`
	Descents    int64              `json:"descents"`
	Against     *benchAgainst      `json:"against,omitempty"`
	Latency     map[string]float64 `json:"latency_ms"`
	Histogram   []benchBand        `json:"histogram"`
}

type benchDuplicates struct {
	Checked int64    `json:"checked"`
	Found   int64    `json:"found"`
	Some    []string `json:"some"`
}

type benchBand struct {
	Above float64 `json:"above_ms"`
	UpTo  float64 `json:"up_to_ms"`
	Calls int64   `json:"calls"`
}

func benchJSON(o *benchOptions, r load.Result, interrupted bool) benchResult {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	j := benchResult{
		Servers: o.servers, Protocol: o.protocol.Name, Connections: o.concurrency, Batch: o.batch,
		Seconds: r.Took.Seconds(), Interrupted: interrupted,
		IDs: r.IDs, IDRate: perSecond(r.IDs, r.Took), Calls: r.Calls, CallRate: perSecond(r.Calls, r.Took),
		Failed: r.Failed, Unsent: r.Unsent, Errors: append([]load.Failure{}, r.Errors...),
		Duplicates: benchDuplicates{r.Duplicates.Checked, r.Duplicates.More, texts(r.Duplicates.Some)},
		Descents:   r.Descents,
		Against:    againstJSON(o, r.Against),
		Latency:    map[string]float64{"max": ms(r.Latency.Max()), "mean": ms(r.Latency.Mean())},
		Histogram:  []benchBand{},
	}
	for _, percent := range percentiles {
		j.Latency["p"+strconv.FormatFloat(percent, 'f', -1, 64)] = ms(r.Latency.At(percent))
	}
	for _, b := range r.Latency.Bands() {
		j.Histogram = append(j.Histogram, benchBand{ms(b.Above), ms(b.UpTo), b.Calls})
	}
	return j
}

func perSecond(n int64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}
