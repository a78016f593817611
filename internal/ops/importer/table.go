package importer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// longestRecord is the most bytes of a record of CSV.
const longestRecord = 1 << 20

// table reads one column of a CSV.
type table struct {
	in     *input
	csv    *csv.Reader
	column string // its name, or its number from 1 on; empty: the first one
	index  int    // of the column, from 0 on
	due    int    // the line that the next row begins with, if no lines are empty

	record        // read, and
	returned bool // not by next yet
}

// record is a row, or why there is none, and the lines from which and to which it goes.
type record struct {
	cells    []string
	err      error
	from, to int
}

// input counts what is read.
type input struct {
	io.Reader
	lines, rest int // whole ones, and the bytes behind them
	left        int // bytes that may be read
}

func (i *input) Read(b []byte) (int, error) {
	if i.left <= 0 {
		return 0, errLong
	}
	n, err := i.Reader.Read(b)
	i.left -= n
	i.lines += bytes.Count(b[:n], []byte{'\n'})
	if last := bytes.LastIndexByte(b[:n], '\n'); last >= 0 {
		i.rest = n - 1 - last
	} else {
		i.rest += n
	}
	return n, err
}

var errLong = errors.New("it has a quote (\") that does not end, or more than 1 MiB")

func newTable(in io.Reader, column string) *table {
	return &table{in: &input{Reader: in, left: longestRecord}, column: column, due: 1, returned: true}
}

// header reads the names of the columns, if the first record has them, and reports whether it does. It is no header if
// isTime says so of the column's cell. An error is returned when there is no such column.
func (t *table) header(isTime func(cell string) bool) (bool, error) {
	buffer := bufio.NewReaderSize(t.in, 64<<10)
	switch start, _ := buffer.Peek(3); {
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return false, errors.New("the input is UTF-16; want UTF-8")
	case bytes.Equal(start, []byte("\xef\xbb\xbf")):
		_, _ = buffer.Discard(len(start)) // it is there
	}
	t.csv = csv.NewReader(buffer)
	t.csv.FieldsPerRecord, t.csv.ReuseRecord = -1, true
	number, err := strconv.Atoi(t.column)
	named := err != nil && t.column != ""
	if t.index = max(number, 1) - 1; err == nil && number < 1 {
		return false, fmt.Errorf("there is no column %d; want a name, or a number from 1", number)
	}
	t.read()
	switch cell, err := t.cell(); {
	case !named:
		t.returned = t.from == t.due && err == nil && isName(cell) && !isTime(cell)
	case errors.Is(t.err, io.EOF):
		return false, fmt.Errorf("there is no column %q: the input is empty", t.column)
	case t.err != nil:
		return false, fmt.Errorf("line %d: %w", t.from, t.err)
	default:
		t.returned = true
		t.index = -1
		for i, name := range t.cells {
			if strings.TrimSpace(name) == t.column {
				t.index = i
				break
			}
		}
		if t.index < 0 {
			return false, fmt.Errorf("there is no column %q; want one of %.200q", t.column, t.cells)
		}
	}
	if t.returned {
		t.due = t.to + 1
	}
	return t.returned, nil
}

// isName reports whether a cell can be the name of a column: it neither begins as a time does, so that a first row with
// a mistake in it is no header, nor is it what databases write where there is no time.
func isName(cell string) bool {
	if cell == "" || strings.ContainsRune("0123456789-+\\", rune(cell[0])) {
		return false
	}
	for _, none := range []string{"null", "none", "infinity", "nan", "nat"} {
		if strings.EqualFold(cell, none) {
			return false
		}
	}
	return true
}

// next returns the column's cell of the next row, and the line where the row begins, from 1 on. The error is io.EOF
// after the last row, a *rowError if the row has no such cell, so that others may follow, or that of reading.
func (t *table) next() (cell string, line int, err error) {
	if t.returned {
		t.read()
	}
	if t.returned = t.from <= t.due; !t.returned { // encoding/csv skips what is the row of an empty cell
		t.due++
		return "", t.due - 1, &rowError{"it is empty; want a time"}
	}
	t.due = t.to + 1
	cell, err = t.cell()
	return cell, t.from, err
}

// rowError says why a row has no cell.
type rowError struct{ string }

func (e *rowError) Error() string { return e.string }

// read reads the next record.
func (t *table) read() {
	t.in.left, t.returned = longestRecord, false
	cells, err := t.csv.Read()
	t.record = record{cells: cells, err: err}
	switch wrong, ok := errors.AsType[*csv.ParseError](err); {
	case ok:
		t.err, t.from, t.to = &rowError{wrong.Err.Error()}, wrong.StartLine, wrong.Line
	case errors.Is(err, io.EOF):
		t.from = t.in.lines + min(t.in.rest, 1) + 1
	case errors.Is(err, errLong):
		t.err, t.from = fmt.Errorf("line %d: %w", t.due, err), t.due
	case err != nil:
		t.err, t.from = fmt.Errorf("reading the input: %w", err), t.due
	default:
		t.from, _ = t.csv.FieldPos(0)
		t.to = t.from
		for _, cell := range cells {
			t.to += strings.Count(cell, "\n")
		}
	}
}

// cell returns the column's cell of the record.
func (t *table) cell() (string, error) {
	switch {
	case t.err != nil:
		return "", t.err
	case t.index >= len(t.cells):
		return "", &rowError{fmt.Sprintf("it has only %d of the %d columns that are wanted", len(t.cells), t.index+1)}
	default:
		return strings.TrimSpace(t.cells[t.index]), nil
	}
}
