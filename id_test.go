package firn

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

var (
	_ fmt.Stringer               = ID(0)
	_ encoding.TextAppender      = ID(0)
	_ encoding.TextMarshaler     = ID(0)
	_ encoding.TextUnmarshaler   = (*ID)(nil)
	_ encoding.BinaryAppender    = ID(0)
	_ encoding.BinaryMarshaler   = ID(0)
	_ encoding.BinaryUnmarshaler = (*ID)(nil)
	_ json.Marshaler             = ID(0)
	_ json.Unmarshaler           = (*ID)(nil)
	_ driver.Valuer              = ID(0)
	_ sql.Scanner                = (*ID)(nil)
)

func TestIDMarshals(t *testing.T) {
	tests := []struct {
		id     ID
		text   string
		binary string
	}{
		{0, "0", "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{1, "1", "\x00\x00\x00\x00\x00\x00\x00\x01"},
		{1<<53 + 1, "9007199254740993", "\x00\x20\x00\x00\x00\x00\x00\x01"}, // no double
		{MaxID, "9223372036854775807", "\x7f\xff\xff\xff\xff\xff\xff\xff"},
	}
	for _, tt := range tests {
		if got := tt.id.String(); got != tt.text {
			t.Errorf("String gives %q, want %q", got, tt.text)
		}
		for _, form := range []struct {
			name      string
			marshal   func() ([]byte, error)
			unmarshal func(*ID, []byte) error
			want      string
		}{
			{"text", tt.id.MarshalText, (*ID).UnmarshalText, tt.text},
			{"JSON", tt.id.MarshalJSON, (*ID).UnmarshalJSON, `"` + tt.text + `"`},
			{"binary", tt.id.MarshalBinary, (*ID).UnmarshalBinary, tt.binary},
		} {
			b, err := form.marshal()
			if string(b) != form.want || err != nil {
				t.Errorf("%d as %s is %q, %v, want %q", tt.id, form.name, b, err, form.want)
			}
			got := ID(42)
			if err := form.unmarshal(&got, []byte(form.want)); got != tt.id || err != nil {
				t.Errorf("%s %q is read as %d, %v, want %d", form.name, form.want, got, err, tt.id)
			}
		}
		type number string // as godror.Number
		for _, src := range []any{int64(tt.id), uint64(tt.id), tt.text, []byte(tt.text), number(tt.text)} {
			got := ID(42)
			if err := got.Scan(src); got != tt.id || err != nil {
				t.Errorf("%#v is scanned as %d, %v, want %d", src, got, err, tt.id)
			}
		}
		if v, err := tt.id.Value(); v != int64(tt.id) || err != nil {
			t.Errorf("%d has the value %#v, %v", tt.id, v, err)
		}
	}
}

func TestIDAppendKeepsThePrefix(t *testing.T) {
	if b, err := ID(7).AppendText([]byte("id=")); string(b) != "id=7" || err != nil {
		t.Errorf("AppendText gives %q, %v", b, err)
	}
	if b, err := ID(7).AppendBinary([]byte("id=")); string(b) != "id=\x00\x00\x00\x00\x00\x00\x00\x07" || err != nil {
		t.Errorf("AppendBinary gives %q, %v", b, err)
	}
}

func TestMarshallingNegativeIDIsAnError(t *testing.T) {
	for _, id := range []ID{-1, -MaxID - 1} {
		for name, marshal := range map[string]func() error{
			"AppendText":    func() error { _, err := id.AppendText(nil); return err },
			"MarshalText":   func() error { _, err := id.MarshalText(); return err },
			"MarshalJSON":   func() error { _, err := id.MarshalJSON(); return err },
			"AppendBinary":  func() error { _, err := id.AppendBinary(nil); return err },
			"MarshalBinary": func() error { _, err := id.MarshalBinary(); return err },
			"Value":         func() error { _, err := id.Value(); return err },
		} {
			if err := marshal(); err == nil || !strings.Contains(err.Error(), id.String()) {
				t.Errorf("%s of %d gives the error %v, want one that names it", name, id, err)
			}
		}
	}
}

func TestIDRejects(t *testing.T) {
	tests := []struct {
		read func(*ID) error
		want string // a part of the error
	}{
		{unmarshalJSON(``), "it is empty"},
		{unmarshalJSON(`""`), "it is empty"},
		{unmarshalJSON(`"`), `it has '"' at byte 0`},
		{unmarshalJSON(`"12`), `it has '"' at byte 0`},
		{unmarshalJSON(`"null"`), "it has 'n' at byte 0"},
		{unmarshalJSON(`true`), "it has 't' at byte 0"},
		{unmarshalJSON(`{}`), "it has '{' at byte 0"},
		{unmarshalJSON(`[1]`), "it has '[' at byte 0"},
		{unmarshalJSON(`-1`), "it has '-' at byte 0"},
		{unmarshalJSON(`-0`), "it has '-' at byte 0"},
		{unmarshalJSON(`1.0`), "it is a floating-point number, whose last digits may be lost; want all digits"},
		{unmarshalJSON(`1e3`), "it is a floating-point number"},
		{unmarshalJSON(`"-1"`), "it has '-' at byte 0"},
		{unmarshalJSON(`"\u0031"`), `it has '\\' at byte 0`},
		{unmarshalJSON(`"007"`), "it begins with '0'"},
		{unmarshalJSON(`9223372036854775808`), "it is too large"},
		{unmarshalJSON(`"9223372036854775808"`), "it is too large"},
		{unmarshalText("-1"), "it has '-' at byte 0"},
		{unmarshalText("9223372036854775808"), "it is too large"},
		{unmarshalBinary(""), "it has 0 bytes; want 8"},
		{unmarshalBinary("1234567"), `"1234567" is not a binary ID: it has 7 bytes; want 8`},
		{unmarshalBinary("123456789"), "it has 9 bytes; want 8"},
		{unmarshalBinary("\x80\x00\x00\x00\x00\x00\x00\x00"), "its first bit is set"},
		{unmarshalBinary("\xff\xff\xff\xff\xff\xff\xff\xff"), "its first bit is set"},
		{scan(int64(-1)), `"-1" is not a SQL ID: it is negative`},
		{scan("-1"), "it has '-' at byte 0"},
		{scan([]byte("1 ")), "it has ' ' at byte 1"},
		{scan([]byte(nil)), "it is empty"},
		{scan(nil), "sql.Null[firn.ID]"},
		{scan(uint64(1 << 63)), `"9223372036854775808" is not a SQL ID: it is too large`},
		{scan(1.5), "it is a floating-point number, whose last digits may be lost; want an integer"},
		{scan(true), "it is a bool; want an integer"},
		{scan(time.Time{}), "it is a time.Time; want an integer"},
	}
	for i, tt := range tests {
		id := ID(42)
		err := tt.read(&id)
		if _, ok := errors.AsType[*ParseError](err); !ok || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("test %d gives the error %v, want a *ParseError with %q", i, err, tt.want)
		}
		if id != 42 {
			t.Errorf("test %d (%s) changes the ID to %d", i, tt.want, id)
		}
	}
}

func unmarshalJSON(s string) func(*ID) error {
	return func(id *ID) error { return id.UnmarshalJSON([]byte(s)) }
}

// Drivers return columns that are shorter than a BIGINT as what they are.
func TestScanOfShortColumns(t *testing.T) {
	for _, src := range []any{int8(42), int16(42), int32(42), 42, uint8(42), uint16(42), uint32(42), uint(42)} {
		var id ID
		if err := id.Scan(src); id != 42 || err != nil {
			t.Errorf("%T is scanned as %d, %v", src, id, err)
		}
	}
}

func unmarshalText(s string) func(*ID) error {
	return func(id *ID) error { return id.UnmarshalText([]byte(s)) }
}

func unmarshalBinary(s string) func(*ID) error {
	return func(id *ID) error { return id.UnmarshalBinary([]byte(s)) }
}

func scan(src any) func(*ID) error {
	return func(id *ID) error { return id.Scan(src) }
}

func TestParseErrorShortensALongInput(t *testing.T) {
	_, err := Parse(strings.Repeat("1", 1_000_000))
	want := `"` + strings.Repeat("1", 40) + `"... (1000000 bytes) is not a decimal ID: ` +
		`it is too large; want at most 9223372036854775807`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// TestIDInJSON proves that encoding/json finds the methods wherever an ID stands.
func TestIDInJSON(t *testing.T) {
	type document struct {
		ID     ID            `json:"id"`
		Others []ID          `json:"others"`
		Absent ID            `json:"absent,omitzero"`
		None   *ID           `json:"none"`
		ByID   map[ID]string `json:"by_id"`
	}
	const text = `{"id":"9223372036854775807","others":["0","1"],"none":null,"by_id":{"9007199254740993":"x"}}`
	d := document{ID: MaxID, Others: []ID{0, 1}, ByID: map[ID]string{1<<53 + 1: "x"}}
	b, err := json.Marshal(d)
	if string(b) != text || err != nil {
		t.Errorf("json.Marshal gives %s, %v, want %s", b, err, text)
	}

	d = document{Absent: 42}
	const numbers = `{"id":9223372036854775807,"others":[0,"1"],"absent":null,"by_id":{"9007199254740993":"x"}}`
	if err := json.Unmarshal([]byte(numbers), &d); err != nil {
		t.Fatal(err)
	}
	if d.Absent != 42 {
		t.Errorf("null changes an ID to %d", d.Absent)
	}
	d.Absent = 0
	if b, err := json.Marshal(d); string(b) != text || err != nil {
		t.Errorf("%s is read and written as %s, %v, want %s", numbers, b, err, text)
	}

	if err := json.Unmarshal([]byte(`{"by_id":{"-1":"x"}}`), &d); err == nil {
		t.Error("a negative key of a map is accepted")
	}
	if b, err := json.Marshal(map[ID]bool{-1: true}); err == nil {
		t.Errorf("a negative key of a map is written as %s", b)
	}
}

// TestIDInSQL proves that the advice of Scan's error works.
func TestIDInSQL(t *testing.T) {
	n := sql.Null[ID]{V: 42, Valid: true}
	if err := n.Scan(nil); err != nil || n.Valid {
		t.Errorf("NULL is scanned as %v, %v", n, err)
	}
	if err := n.Scan(int64(7)); err != nil || n != (sql.Null[ID]{V: 7, Valid: true}) {
		t.Errorf("7 is scanned as %v, %v", n, err)
	}
	if v, err := n.Value(); v != int64(7) || err != nil {
		t.Errorf("the value of 7 is %#v, %v", v, err)
	}
	if err := n.Scan(int64(-1)); err == nil {
		t.Errorf("-1 is scanned as %v", n)
	}
}

func TestIDDoesNotAllocate(t *testing.T) {
	var (
		id   ID
		buf  = make([]byte, 0, 32)
		text = []byte(MaxID.String())
		data = []byte{1, 2, 3, 4, 5, 6, 7, 8}
		src  = any(text)
	)
	for name, f := range map[string]func(){
		"Parse":           func() { id, _ = Parse(string(text)) },
		"AppendText":      func() { buf, _ = id.AppendText(buf[:0]) },
		"UnmarshalText":   func() { _ = id.UnmarshalText(text) },
		"UnmarshalJSON":   func() { _ = id.UnmarshalJSON(text) },
		"AppendBinary":    func() { buf, _ = id.AppendBinary(buf[:0]) },
		"UnmarshalBinary": func() { _ = id.UnmarshalBinary(data) },
		"Scan":            func() { _ = id.Scan(src) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times, want 0", name, n)
		}
	}
}

// FuzzIDUnmarshal proves of every reader that it never panics, that it leaves the
// ID alone when it gives an error, and that what it accepts is the one and only
// form, which the matching writer gives back.
func FuzzIDUnmarshal(f *testing.F) {
	for _, s := range []string{
		"", "0", "1", "01", "-1", "9223372036854775807", "9223372036854775808", "1e3", "null", `"`, `""`, `"1"`,
		`"1`, `"\u0031"`,
		"\x00\x00\x00\x00\x00\x00\x00\x01", "\x80\x00\x00\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x00\x00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		asText := func(id ID) string { return id.String() }
		asJSON := func(id ID) string {
			b, _ := id.MarshalJSON()
			if data[0] != '"' {
				b = bytes.Trim(b, `"`)
			}
			return string(b)
		}
		asBinary := func(id ID) string { b, _ := id.MarshalBinary(); return string(b) }

		for _, form := range []struct {
			name  string
			read  func(*ID) error
			write func(ID) string
		}{
			{"text", unmarshalText(string(data)), asText},
			{"JSON", unmarshalJSON(string(data)), asJSON},
			{"binary", unmarshalBinary(string(data)), asBinary},
			{"SQL bytes", scan(data), asText},
			{"SQL string", scan(string(data)), asText},
		} {
			id := ID(-42)
			err := form.read(&id)
			switch {
			case err != nil:
				if _, ok := errors.AsType[*ParseError](err); !ok || id != -42 {
					t.Errorf("%s %q is read as %d, %v", form.name, data, id, err)
				}
			case form.name == "JSON" && string(data) == "null":
				if id != -42 {
					t.Errorf("null changes the ID to %d", id)
				}
			case id < 0 || form.write(id) != string(data):
				t.Errorf("%s %q is read as %d, which is written as %q", form.name, data, id, form.write(id))
			}
		}
	})
}

func FuzzIDScanInt64(f *testing.F) {
	f.Add(int64(0))
	f.Add(int64(MaxID))
	f.Add(int64(-1))
	f.Fuzz(func(t *testing.T, n int64) {
		id := ID(-42)
		if err := id.Scan(n); (err == nil) != (n >= 0) || (err == nil && id != ID(n)) || (err != nil && id != -42) {
			t.Errorf("%d is scanned as %d, %v", n, id, err)
		}
	})
}

func BenchmarkIDMarshalJSON(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ID(1541815603606036480).MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIDUnmarshalJSON(b *testing.B) {
	b.ReportAllocs()
	var id ID
	data := []byte(`"1541815603606036480"`)
	for b.Loop() {
		if err := id.UnmarshalJSON(data); err != nil {
			b.Fatal(err)
		}
	}
}
