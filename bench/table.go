package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// table is what one measurement found. It prints itself aligned, and as JSON with one
// object per row.
type table struct {
	Title   string
	Note    string // what a reader must know, or why there are no rows
	columns []column
	rows    []row
	Targets []target
}

type column struct {
	key    string // in JSON
	head   string // in print
	format string // of a float64
}

type row struct {
	name   string
	values []float64 // one for each column; NaN: not known
}

// target compares what was found with what was wanted.
type target struct {
	What string  `json:"what"`
	Got  float64 `json:"got"`
	Sign string  `json:"sign"` // "<=" or ">="
	Want float64 `json:"want"`
	Met  bool    `json:"met"`
}

func atMost(what string, got, want float64) target {
	return target{what, got, "<=", want, got <= want}
}

func atLeast(what string, got, want float64) target {
	return target{what, got, ">=", want, got >= want}
}

func (t *table) add(name string, values ...float64) { t.rows = append(t.rows, row{name, values}) }

func (t table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", t.Title)
	if t.Note != "" {
		fmt.Fprintf(&b, "%s\n", t.Note)
	}
	// The names stand left and the numbers right, so names are padded by hand.
	widest := 0
	for _, r := range t.rows {
		widest = max(widest, len(r.name))
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(t.rows) > 0 {
		fmt.Fprintf(w, "%-*s\t", widest, "")
		for _, c := range t.columns {
			fmt.Fprintf(w, "%s\t", c.head)
		}
		fmt.Fprintln(w)
	}
	for _, r := range t.rows {
		fmt.Fprintf(w, "%-*s\t", widest, r.name)
		for i, c := range t.columns {
			if math.IsNaN(r.values[i]) {
				fmt.Fprint(w, "-\t")
				continue
			}
			fmt.Fprintf(w, c.format+"\t", r.values[i])
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
	for _, x := range t.Targets {
		verdict := "met:  "
		if !x.Met {
			verdict = "short:"
		}
		fmt.Fprintf(&b, "  %s %s: %.4g %s %.4g\n", verdict, x.What, x.Got, x.Sign, x.Want)
	}
	return b.String()
}

// MarshalJSON writes each row as an object under the keys of the columns, without what is not known.
func (t table) MarshalJSON() ([]byte, error) {
	rows := make([]map[string]any, 0, len(t.rows))
	for _, r := range t.rows {
		shown := map[string]any{"name": r.name}
		for i, c := range t.columns {
			if !math.IsNaN(r.values[i]) {
				shown[c.key] = r.values[i]
			}
		}
		rows = append(rows, shown)
	}
	return json.Marshal(struct {
		Title   string           `json:"title"`
		Note    string           `json:"note,omitempty"`
		Rows    []map[string]any `json:"rows"`
		Targets []target         `json:"targets,omitempty"`
	}{t.Title, t.Note, rows, t.Targets})
}
