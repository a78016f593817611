package firn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Encoding writes IDs as text and reads them back. Each ID has exactly one text,
// so that texts can be compared, indexed and used as keys. Any other input is an
// error, never a guess at what a human meant. The encodings of fixed width sort like
// the numbers, byte by byte.
//
//	          largest ID               characters   sorts
//	Decimal   9223372036854775807      1 to 19
//	Hex       7fffffffffffffff         16           yes
//	Base32    7ZZZZZZZZZZZZ            13           yes
//	Base58    NQm6nKp8qFC              1 to 11
//	Base62    AzL8n0Y58m7              11           yes
//	Checked   9223372036854775807-58   4 to 22
//
// Use the variables of this package: the zero value does not work. An Encoding is safe
// for concurrent use.
type Encoding struct {
	name     string
	alphabet string
	base     uint64 // len(alphabet)
	width    int    // characters of every text; 1: as few as possible
	checked  bool   // a hyphen and check digits follow

	// digits holds the value of each character of the alphabet, and foreign for
	// every other byte.
	digits [256]uint8

	// pairs holds every two characters, the first in the lower byte: 2 to 8 KB, in which a look-up gives two digits.
	// It is nil for the bases 10 and 16, which need none.
	pairs []uint16
}

const foreign = 0xff

var (
	// Decimal is what people and databases expect: 0 is "0".
	Decimal = newEncoding("decimal", 1, "0123456789")

	// Hex is base 16 in lower case: 0 is "0000000000000000".
	Hex = newEncoding("hex", 16, "0123456789abcdef")

	// Base32 is Crockford's base 32 in upper case: 0 is "0000000000000".
	// Crockford lets a decoder read lower case, hyphens, and I, L and O for 1, 1
	// and 0; this one rejects them, since each ID has one text.
	// See https://www.crockford.com/base32.html.
	Base32 = newEncoding("base32", 13, "0123456789ABCDEFGHJKMNPQRSTVWXYZ")

	// Base58 has Bitcoin's alphabet, without 0, O, I and l, and as few characters
	// as possible: 0 is "1". It does not sort like the number.
	Base58 = newEncoding("base58", 1, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")

	// Base62 has digits, upper case, lower case, in the order of ASCII: 0 is
	// "00000000000".
	Base62 = newEncoding("base62", 11, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

	// Checked is Decimal, a hyphen and two check digits, for numbers that people type or
	// read out: 0 is "0-98". Parse finds every wrong digit, every two digits exchanged,
	// and all but about 1 of 97 other mistakes. The digits are those of ISO 7064 MOD
	// 97-10, as in IBANs and LEIs: without the hyphen the text is a number that leaves 1
	// when divided by 97.
	Checked = newChecked()
)

func newEncoding(name string, width int, alphabet string) *Encoding {
	e := &Encoding{name: name, alphabet: alphabet, base: uint64(len(alphabet)), width: width}
	for i := range e.digits {
		e.digits[i] = foreign
	}
	for i := range len(alphabet) {
		e.digits[alphabet[i]] = uint8(i)
	}
	if e.base > 16 {
		for i := range len(alphabet) * len(alphabet) {
			e.pairs = append(e.pairs, uint16(alphabet[i/len(alphabet)])|uint16(alphabet[i%len(alphabet)])<<8)
		}
	}
	return e
}

func newChecked() *Encoding {
	e := newEncoding("checked", 1, "0123456789")
	e.checked = true
	return e
}

// Encodings returns all encodings: Decimal, then the others in ascending order of
// their bases, then Checked.
func Encodings() []*Encoding {
	return []*Encoding{Decimal, Hex, Base32, Base58, Base62, Checked}
}

// EncodingByName returns the encoding whose String is name. When there is none, it
// returns an error that lists the names.
func EncodingByName(name string) (*Encoding, error) {
	all := Encodings()
	if i := slices.IndexFunc(all, func(e *Encoding) bool { return e.name == name }); i >= 0 {
		return all[i], nil
	}
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.name
	}
	return nil, fmt.Errorf("no encoding is named %.40q; want one of %s", name, strings.Join(names, ", "))
}

// String returns the name: "decimal", "hex", "base32", "base58", "base62" or "checked".
func (e *Encoding) String() string { return e.name }

// Encode returns the text of id. A negative number is not an ID: its text is one that
// Parse rejects: it begins with a minus sign in Decimal and Checked, and is a number
// beyond [MaxID] in the others.
func (e *Encoding) Encode(id ID) string {
	return string(e.Append(make([]byte, 0, 24), id))
}

// Append appends the text of id, as Encode returns it, to b.
func (e *Encoding) Append(b []byte, id ID) []byte {
	switch e.base {
	case 10:
		b = appendDecimal(b, id)
		if e.checked {
			c := checkDigits(id)
			b = append(b, '-', c[0], c[1])
		}
		return b
	case 16:
		return appendHex(b, uint64(id))
	}
	return e.appendDigits(b, uint64(id))
}

// Parse reads the text of an ID; it is the inverse of Encode. It returns a
// [*ParseError] when s is empty, has a character that is not in the alphabet (such as
// spaces, signs and the wrong case), is shorter or longer than the fixed width, begins
// with an unnecessary zero, has wrong check digits, or is beyond [MaxID].
func (e *Encoding) Parse(s string) (ID, error) {
	var id ID
	var ok bool
	text := []byte(s) // which copies nothing, as nothing changes it
	switch {
	case e.checked:
		id, ok = quickChecked(text)
	case e.base == 10:
		id, ok = quickDecimal(text)
	case e.base == 16:
		id, ok = quickHex(text)
	case e.base == 32:
		id, ok = e.quick32(text)
	case e.base == 58:
		id, ok = e.quick58(text)
	default:
		id, ok = e.quick62(text)
	}
	if !ok {
		return 0, e.explain(s)
	}
	return id, nil
}

// checkDigits makes the digits of an ID and these two a number that leaves 1 when divided by 97.
func checkDigits(id ID) [2]byte {
	c := 98 - uint64(id)%97*100%97
	return [2]byte{byte('0' + c/10), byte('0' + c%10)}
}

// explainChecked does not say which check digits would fit: most mistakes are in the number, so these would make it
// that of another ID.
func explainChecked(s string) error {
	number, check, ok := strings.Cut(s, "-")
	if !ok || len(check) != 2 {
		return reject("checked", s, "it does not end with a hyphen and two check digits; want a text such as "+
			"117465411174400005-32")
	}
	_, err := Decimal.Parse(number)
	if parse, ok := errors.AsType[*ParseError](err); ok {
		return reject("checked", s, "before the hyphen: %s", parse.Reason)
	}
	return reject("checked", s, "its check digits do not fit its number, so a digit is wrong; want the text exactly "+
		"as it was made")
}

// explain returns the error for a text that Parse does not read.
func (e *Encoding) explain(s string) error {
	switch {
	case e.checked:
		return explainChecked(s)
	case len(s) == 0:
		return reject(e.name, s, "it is empty")
	case e.width > 1 && len(s) != e.width:
		return reject(e.name, s, "it has %d bytes; want %d", len(s), e.width)
	case e.width == 1 && len(s) > 1 && s[0] == e.alphabet[0]:
		return reject(e.name, s, "it begins with %q, which stands for zero; want no zeros in front of a number", s[0])
	}
	n, limit := uint64(0), math.MaxInt64/e.base
	for i := range len(s) {
		d := uint64(e.digits[s[i]])
		if d == foreign {
			if e.base == 10 && isFloat(s) {
				return reject(e.name, s, "it is %s; want all digits, such as 117465411174400005", lossy)
			}
			r, _ := utf8.DecodeRuneInString(s[i:])
			return reject(e.name, s, "it has %q at byte %d; want only %s", r, i, e.alphabet)
		}
		if n > limit || n*e.base+d > math.MaxInt64 {
			break
		}
		n = n*e.base + d
	}
	return reject(e.name, s, "it is too large; want at most %s", e.Encode(MaxID))
}

// lossy is what is wrong with a floating-point number, whose 53 bits do not hold an ID.
const lossy = "a floating-point number, whose last digits may be lost"

// isFloat reports whether a program has written a floating-point number, such as 1.17465411174400e+17 or 5.0.
func isFloat(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && strings.Trim(s, "0123456789.eE+-") == "" && strings.ContainsAny(s, ".eE")
}
