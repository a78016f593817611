package idtext

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn"
)

const (
	digits   = "0123456789"
	alphabet = digits + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" // of a prefix in front of a number
)

// numbered returns what writes IDs as a number behind the prefix. A prefix that ends with a digit has no such form: its
// texts could be those of a shorter prefix.
func (s Sequencer) numbered(f Form) (Append, error) {
	if strings.TrimRight(s.Prefix, digits) != s.Prefix {
		return nil, fmt.Errorf("the prefix %q of the sequencer %q ends with a digit, as a number behind it begins; "+
			"want another form than %v", s.Prefix, s.Name, f)
	}
	return func(b []byte, id firn.ID) ([]byte, error) {
		at := len(b)
		for i := range len(s.Prefix) {
			c := s.Prefix[i]
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			b = append(b, c)
		}
		b = firn.Decimal.Append(b, id)
		if f == PrefixedChecked {
			c := checkDigits(b[at:])
			b = append(b, '-', c[0], c[1])
		}
		return b, nil
	}, nil
}

// checkDigits returns the check digits of a text in the alphabet by ISO 7064 MOD 97-10, as in IBANs and LEIs: a letter
// counts as two digits, 10 for A to 35 for Z. Those of digits alone are those of firn.Checked.
func checkDigits[T string | []byte](text T) [2]byte {
	r := 0
	for i := range len(text) {
		if c := int(text[i]); c >= 'A' {
			r = (100*r + c - 'A' + 10) % 97
		} else {
			r = (10*r + c - '0') % 97
		}
	}
	r = 98 - 100*r%97
	return [2]byte{byte('0' + r/10), byte('0' + r%10)}
}

// readNumbered reads what numbered writes.
func (s Sequencer) readNumbered(f Form, text string) (firn.ID, error) {
	wrong := func(format string, args ...any) error { return reject(text, "a "+f.String(), format, args...) }
	body, check, hyphen := strings.Cut(text, "-")
	prefix := strings.TrimRight(body, digits)
	number := body[len(prefix):]
	switch {
	case f == PrefixedChecked && len(check) != 2:
		return 0, wrong("it does not end with a hyphen and two check digits; want a text such as INV20261126000123-14")
	case f == PrefixedDecimal && hyphen:
		return 0, wrong("it has a hyphen; want a prefix and a number alone, such as INV20261126000123")
	case !isNumbered(body):
		return 0, wrong("it is no prefix of A-Z and 0-9 with a number behind it; want one such as INV20261126000123")
	case s.Name != "" && s.Prefix == "":
		return 0, wrong("the sequencer %q has no prefix", s.Name)
	case s.Name != "" && !strings.EqualFold(prefix, s.Prefix):
		return 0, wrong("its prefix is %.40q, and the sequencer %q has %q", prefix, s.Name, strings.ToUpper(s.Prefix))
	}
	id, err := firn.Decimal.Parse(number)
	if parse, ok := errors.AsType[*firn.ParseError](err); ok {
		return 0, wrong("behind the prefix: %s", parse.Reason)
	}
	if c := checkDigits(body); f == PrefixedChecked && check != string(c[:]) {
		return 0, wrong("its check digits do not fit the rest, so a letter or a digit is wrong; want the text " +
			"exactly as it was made")
	}
	return id, nil
}

// isNumbered reports whether a text is a prefix in upper case and a number.
func isNumbered(text string) bool {
	prefix := strings.TrimRight(text, digits)
	return prefix != text && prefix != "" && prefix[0] >= 'A' && strings.Trim(prefix, alphabet) == ""
}
