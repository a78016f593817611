package console

import "strings"

// Column is a column of a table that is printed row by row: its width is known before its values.
type Column struct {
	Head   string
	Width  int // characters of the widest value
	Right  bool
	Colour func(value string) Colour // nil: none
}

// Row formats the values of one row; nil: the heads.
func Row(columns []Column, values []string) string {
	var b strings.Builder
	for i, c := range columns {
		text, colour := c.Head, Colour("")
		if values != nil {
			text = values[i]
			if c.Colour != nil {
				colour = c.Colour(text)
			}
		}
		pad := strings.Repeat(" ", max(c.Width, len(c.Head), len(text))-len(text))
		if i == len(columns)-1 && !c.Right {
			pad = ""
		}
		if i > 0 {
			b.WriteString("  ")
		}
		if c.Right {
			b.WriteString(pad + colour.Paint(text))
		} else {
			b.WriteString(colour.Paint(text) + pad)
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// Fit gives each column the width of its widest value.
func Fit(columns []Column, rows [][]string) {
	for _, row := range rows {
		for i, text := range row[:len(columns)] {
			columns[i].Width = max(columns[i].Width, len(text))
		}
	}
}

// Table formats rows under their heads. Without rows it returns an empty text.
func Table(columns []Column, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	Fit(columns, rows)
	var text strings.Builder
	text.WriteString(Row(columns, nil))
	for _, row := range rows {
		text.WriteString(Row(columns, row))
	}
	return text.String()
}
