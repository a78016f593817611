package importer

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// cells returns those of a column, or the error of their row or of the table.
func cells(input, column string) (header bool, all []string, lines []int, err error) {
	t := newTable(iotestReader(input), column)
	isTime := func(cell string) bool { return cell[0] == '2' }
	if header, err = t.header(isTime); err != nil {
		return header, nil, nil, err
	}
	for {
		cell, line, err := t.next()
		var bad *rowError
		switch {
		case errors.Is(err, io.EOF):
			return header, all, lines, nil
		case errors.As(err, &bad):
			all = append(all, "! "+err.Error())
		case err != nil:
			return header, all, lines, err
		default:
			all = append(all, cell)
		}
		lines = append(lines, line)
	}
}

// iotestReader returns a reader that gives a few bytes at a time.
func iotestReader(text string) io.Reader { return &slow{strings.NewReader(text)} }

type slow struct{ io.Reader }

func (s *slow) Read(b []byte) (int, error) { return s.Reader.Read(b[:min(len(b), 1+rand.IntN(5000))]) }

func TestTable(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, tt := range []struct {
		input, column string
		header        bool
		want          string // cells with | after each
		lines         []int
	}{
		{"", "", false, "", nil},
		{"20\n21\n", "", false, "20|21|", []int{1, 2}},
		{"20\r\n21", "", false, "20|21|", []int{1, 2}},
		{"\ufeffat\n21\n", "", true, "21|", []int{2}},
		{"\ufeff\"at\"\n21\n", "at", true, "21|", []int{2}},
		{"\ufeff20\n", "", false, "20|", []int{1}},
		{"\"20\"\n \"x\"\n", "", false, "20|! bare \" in non-quoted-field|", []int{1, 2}},
		{"a,at,b\n1,20,\"x\ny\"\n2, 21 ,z\n", "at", true, "20|21|", []int{2, 4}},
		{"a,at,b\n1,20,\"x\r\n\"\"y\"\n2,\"2\"\"1\"\n", "2", true, `20|2"1|`, []int{2, 4}},
		{
			"a,at\n1\n\n,\n", "at", true,
			"! it has only 1 of the 2 columns that are wanted|! it is empty; want a time||",
			[]int{2, 3, 4},
		},
		{"2x\n", "", false, "2x|", []int{1}},
		{"NULL\n\\N\n20\n", "", false, `NULL|\N|20|`, []int{1, 2, 3}},
		{"\n20\n", "", false, "! it is empty; want a time|20|", []int{1, 2}},
		{"20," + long + "\n21,\"" + long + "\n\"\n22\n", "", false, "20|21|22|", []int{1, 2, 4}},
		{"20\n\"21\n", "", false, `20|! extraneous or missing " in quoted-field|`, []int{1, 2}},
		{"20\n\n\r\n", "", false, "20|! it is empty; want a time|! it is empty; want a time|", []int{1, 2, 3}},
		{"\"20\"x,1\n", "", false, `! extraneous or missing " in quoted-field|`, []int{1}},
	} {
		header, all, lines, err := cells(tt.input, tt.column)
		var got strings.Builder
		for _, c := range all {
			got.WriteString(c + "|")
		}
		if err != nil || header != tt.header || got.String() != tt.want || !slices.Equal(lines, tt.lines) {
			t.Errorf("%.80q: %v, %q at %v, %v", tt.input, header, got.String(), lines, err)
		}
	}
}

func TestTablesThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct{ input, column, want string }{
		{"", "at", "the input is empty"},
		{"a,\"b\"\n", "at", `there is no column "at"; want one of ["a" "b"]`},
		{"20\n", "0", "there is no column 0; want"},
		{"20\n", "-1", "there is no column -1; want"},
		{"\xff\xfe2\x000\x00", "", "UTF-16"},
		{"20\n21\n\"" + strings.Repeat("x\n", longestRecord), "", "line 3: it has a quote"},
	} {
		if _, _, _, err := cells(tt.input, tt.column); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.80q: %v; want %q", tt.input, err, tt.want)
		}
	}
}

// What encoding/csv writes is read as it reads it, but for its empty lines.
func TestTableReadsAsEncodingCSV(t *testing.T) {
	for range 3000 {
		columns := 1 + rand.IntN(4)
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.UseCRLF = rand.IntN(2) == 0
		for range rand.IntN(6) {
			row := make([]string, columns)
			for c := range row {
				for range rand.IntN(5) {
					row[c] += string(rune("2a,\"\nä;'"[rand.IntN(8)]))
				}
			}
			if columns == 1 && row[0] == "" {
				row[0] = "2"
			}
			if err := w.Write(row); err != nil {
				t.Fatal(err)
			}
		}
		w.Flush()
		input := b.String()
		wanted, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		column := rand.IntN(columns)
		header, got, _, err := cells(input, fmt.Sprint(column+1))
		if header {
			wanted = wanted[1:]
		}
		if err != nil || len(got) != len(wanted) {
			t.Fatalf("%q: %q, %v; want %q", input, got, err, wanted)
		}
		for n, row := range wanted {
			is := strings.ReplaceAll(got[n], "\r\n", "\n")
			if is != strings.TrimSpace(row[column]) {
				t.Errorf("%q: %q, want %q", input, is, row[column])
			}
		}
	}
}
