package firn

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"reflect"
)

// ID is a unique, time-ordered number of 63 bits. Its sign bit is never set, so
// that it fits, and sorts the same, in signed and unsigned columns alike:
//
//	 63  62                                                     0
//	+---+--------------------------------+----------+------------+
//	| 0 | time                           | node     | sequence   |
//	+---+--------------------------------+----------+------------+
//
// How wide the three are is up to the layout.
//
// The zero value is the ID 0, the first that a layout can give. A negative number
// is not an ID: nothing in this package reads one, and marshalling one is an error.
//
// In text, JSON and SQL an ID is decimal, see [Decimal]; every [Encoding] offers
// another text. The methods are safe for concurrent use, except those with a
// pointer receiver, which write to it.
type ID int64

// MaxID is the largest ID, 2^63 - 1.
const MaxID = ID(1<<63 - 1)

// Parse reads a decimal ID as String returns it: "0" to "9223372036854775807". It
// returns a [*ParseError] for anything else, such as "", "007", "+1", "-1", " 1",
// "1.0" or a number beyond [MaxID].
func Parse(s string) (ID, error) { return Decimal.Parse(s) }

// String returns the decimal text.
func (id ID) String() string { return Decimal.Encode(id) }

func (id ID) check() error {
	if id < 0 {
		return fmt.Errorf("%d is not an ID: it is negative; want 0 to %d", id, MaxID)
	}
	return nil
}

// AppendText implements [encoding.TextAppender]: it appends the decimal text.
// It returns an error when id is negative.
func (id ID) AppendText(b []byte) ([]byte, error) {
	if err := id.check(); err != nil {
		return b, err
	}
	return Decimal.Append(b, id), nil
}

// MarshalText implements [encoding.TextMarshaler]: it returns the decimal text.
// It returns an error when id is negative.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText implements [encoding.TextUnmarshaler]: it reads what [Parse]
// reads. For anything else it returns a [*ParseError] and does not change id.
func (id *ID) UnmarshalText(text []byte) error {
	v, ok := quickDecimal(text)
	if !ok {
		return Decimal.explain(string(text))
	}
	*id = v
	return nil
}

// MarshalJSON implements [encoding/json.Marshaler]: it returns the decimal text
// as a JSON string, because JavaScript and other readers that keep numbers as
// doubles lose the last digits of those above 2^53.
// It returns an error when id is negative.
func (id ID) MarshalJSON() ([]byte, error) {
	if err := id.check(); err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, len(`"9223372036854775807"`)), '"')
	return append(Decimal.Append(b, id), '"'), nil
}

// UnmarshalJSON implements [encoding/json.Unmarshaler]: it reads a JSON string or
// a JSON number that [Parse] would read, exactly, and so neither 1.0 nor 1e3 nor
// a string with escapes. By convention null does not change id. For anything else it
// returns a [*ParseError] and does not change id.
func (id *ID) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if n := len(data); n >= 2 && data[0] == '"' && data[n-1] == '"' {
		data = data[1 : n-1]
	}
	return id.UnmarshalText(data)
}

// AppendBinary implements [encoding.BinaryAppender]: it appends 8 bytes, the most
// significant first, which sort like the number.
// It returns an error when id is negative.
func (id ID) AppendBinary(b []byte) ([]byte, error) {
	if err := id.check(); err != nil {
		return b, err
	}
	return binary.BigEndian.AppendUint64(b, uint64(id)), nil
}

// MarshalBinary implements [encoding.BinaryMarshaler]: it returns 8 bytes, the
// most significant first. It returns an error when id is negative.
func (id ID) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]: it reads what
// MarshalBinary returns. When data is not 8 bytes long or has the sign bit set, it
// returns a [*ParseError] and does not change id.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != 8 {
		return reject("binary", data, "it has %d bytes; want 8", len(data))
	}
	v := ID(binary.BigEndian.Uint64(data))
	if v < 0 {
		return reject("binary", data, "its first bit is set; want 7f ff ff ff ff ff ff ff at most")
	}
	*id = v
	return nil
}

// Value implements [driver.Valuer]: an ID is a BIGINT.
// It returns an error when id is negative.
func (id ID) Value() (driver.Value, error) {
	if err := id.check(); err != nil {
		return nil, err
	}
	return int64(id), nil
}

// Scan implements [database/sql.Scanner]: it reads an integer of any type, as drivers
// return it for a BIGINT, a BIGINT UNSIGNED or a shorter column, or a text that
// [Parse] reads. For a column that may be NULL scan into a sql.Null[firn.ID]. When
// src is negative, above [MaxID], another text, NULL, or of another type, it returns a
// [*ParseError] and does not change id. A floating-point number is of another type: it
// keeps 53 bits.
func (id *ID) Scan(src any) error {
	if src == nil {
		return reject("SQL", "NULL", "want a number; where NULL is expected scan into a sql.Null[firn.ID]")
	}
	if text, ok := src.([]byte); ok {
		return id.UnmarshalText(text)
	}
	switch v := reflect.ValueOf(src); {
	case v.Kind() == reflect.String:
		return id.UnmarshalText([]byte(v.String()))
	case v.CanInt() && v.Int() >= 0:
		*id = ID(v.Int())
	case v.CanInt():
		return reject("SQL", fmt.Sprint(src), "it is negative; want 0 to %d", MaxID)
	case v.CanUint() && v.Uint() <= uint64(MaxID):
		*id = ID(v.Uint()) //nolint:gosec // it fits
	case v.CanUint():
		return reject("SQL", fmt.Sprint(src), "it is too large; want 0 to %d", MaxID)
	case v.CanFloat():
		return reject("SQL", fmt.Sprint(src), "it is %s; want an integer, or decimal digits in a text column", lossy)
	default:
		return reject("SQL", fmt.Sprint(src), "it is a %T; want an integer, or decimal digits in a text column", src)
	}
	return nil
}
