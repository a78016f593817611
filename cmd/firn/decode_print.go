package main

import (
	"encoding/json"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/service/idtext"
)

func (d *decoder) printJSON(v decoded) error {
	return json.NewEncoder(d.stdout).Encode(struct {
		ID firn.ID `json:"id"` // in place of the number, which jq rounds
		decoded
	}{firn.ID(v.ID), v})
}

func (d *decoder) printRow(v decoded) error {
	if d.rows == 0 {
		if err := d.writeRow(nil); err != nil {
			return err
		}
	}
	d.rows++
	if v.Made == nil {
		row := []string{v.IDStr, v.Kind.String()}
		if v.Date != "" {
			row = append(row, v.Date, strconv.FormatInt(v.Number, 10))
		}
		return d.writeRow(row)
	}
	values := append(make([]string, 0, 6), v.IDStr, v.Time, strconv.FormatInt(v.NodeID, 10))
	if d.sequencer.Layout.DatacenterBits > 0 {
		values = append(values, strconv.FormatInt(v.Datacenter, 10), strconv.FormatInt(v.Node, 10))
	}
	return d.writeRow(append(values, strconv.FormatInt(v.Sequence, 10)))
}

func (d *decoder) writeRow(values []string) error {
	d.row = console.AppendRow(d.row[:0], d.columns, values)
	_, err := d.out.Write(d.row)
	return err
}

// scatteredText is what is said of a sequencer beside its layout.
func scatteredText(scattered bool) string {
	if scattered {
		return ", scattered"
	}
	return ""
}

// partsColumns are wide enough for every ID of the sequencer, so that rows can be printed as they come.
func partsColumns(q idtext.Sequencer) []console.Column {
	if q.Kind == cluster.Counter {
		columns := []console.Column{
			{Head: "ID", Width: len(firn.MaxID.String()), Right: true},
			{Head: "KIND", Width: len("counter")},
		}
		if q.Dated.Every != 0 {
			columns = append(columns, console.Column{Head: "DATE", Width: len("2026-11-26")},
				console.Column{Head: "NUMBER", Width: q.Dated.Digits, Right: true})
		}
		return columns
	}
	l := q.Layout
	digits := func(bits int) int { return len(strconv.FormatUint(1<<bits-1, 10)) }
	nodeBits, all := l.DatacenterBits+l.NodeBits, l.Bits()
	if q.Scattered {
		all = 63
	}
	columns := []console.Column{
		{Head: "ID", Width: digits(all), Right: true},
		{Head: "TIME", Width: len("2026-01-01T00:00:00.000Z")},
		{Head: "NODE ID", Width: digits(nodeBits), Right: true},
	}
	if l.DatacenterBits > 0 {
		columns = append(columns, console.Column{Head: "DATACENTER", Width: digits(l.DatacenterBits), Right: true},
			console.Column{Head: "NODE", Width: digits(l.NodeBits), Right: true})
	}
	return append(columns, console.Column{Head: "SEQUENCE", Width: digits(l.SequenceBits), Right: true})
}
