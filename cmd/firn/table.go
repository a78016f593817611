package main

import (
	"bytes"
	"strings"
)

// column is one of a table that is printed line by line: its width is known before its values are.
type column struct {
	head  string
	width int // of the widest value
	right bool
}

// line lays out the values of one row; nil gives the heads.
func line(columns []column, values []string) string {
	var b bytes.Buffer
	for i, c := range columns {
		text := c.head
		if values != nil {
			text = values[i]
		}
		pad := strings.Repeat(" ", max(c.width, len(c.head), len(text))-len(text))
		if i > 0 {
			b.WriteString("  ")
		}
		if c.right {
			b.WriteString(pad + text)
		} else {
			b.WriteString(text + pad)
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// fit gives each column the width of its widest value.
func fit(columns []column, rows [][]string) {
	for _, row := range rows {
		for i, text := range row[:len(columns)] {
			columns[i].width = max(columns[i].width, len(text))
		}
	}
}

// table lays out rows under their heads. Without rows it is empty.
func table(columns []column, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	fit(columns, rows)
	var text strings.Builder
	text.WriteString(line(columns, nil))
	for _, row := range rows {
		text.WriteString(line(columns, row))
	}
	return text.String()
}
