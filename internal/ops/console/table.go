package console

import (
	"bytes"
	"strings"
)

// Column is a column of a table that is printed row by row: its width is known before its values.
type Column struct {
	Head   string
	Width  int // characters of the widest value
	Right  bool
	Colour func(value string) Colour // nil: none
}

// Row formats the values of one row; nil: the heads.
func Row(columns []Column, values []string) string { return string(AppendRow(nil, columns, values)) }

// AppendRow appends a row to b, as Row formats it.
func AppendRow(b []byte, columns []Column, values []string) []byte {
	start := len(b)
	for i, c := range columns {
		text, colour := c.Head, Colour("")
		if values != nil {
			text = values[i]
			if c.Colour != nil {
				colour = c.Colour(text)
			}
		}
		if i > 0 {
			b = append(b, "  "...)
		}
		pad := max(c.Width, len(c.Head), len(text)) - len(text)
		if c.Right {
			b = appendSpaces(b, pad)
		}
		b = append(b, colour.Paint(text)...)
		if !c.Right {
			b = appendSpaces(b, pad)
		}
	}
	return append(b[:start+len(bytes.TrimRight(b[start:], " "))], '\n')
}

func appendSpaces(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
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
