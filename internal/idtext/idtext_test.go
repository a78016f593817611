package idtext

import (
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

func TestGuess(t *testing.T) {
	for _, tt := range []struct{ text, want string }{ // want: the encoding, or a part of the error
		{"0", "decimal"},
		{"1234567890123", "decimal"}, // 13 characters of base32 too
		{"9223372036854775807", "decimal"},
		{"7fffffffffffffff", "hex"},
		{"0000000000000001", "hex"}, // no decimal has zeros in front
		{"7ZZZZZZZZZZZZ", "base32"},
		{"NQm6nKp8qFC", "base58"}, // too large for base62
		{"AzL8n0Y58m7", "base62"}, // base58 has no 0
		{"abc", "--format base58 reads shorter ones"},
		{"zzzzzzz", "not an ID in any encoding"}, // words are not IDs
		{"2zzzzzzz", "base58"},
		{"8aaaaaaaaaa", "in base58 (3265042410184970455) and in base62 (7209719142869020940)"},
		{"", "is empty"},
		{"007", "begins with '0'"},
		{"9223372036854775808", "too large"},
		{"-1", "not an ID in any encoding"},
		{"7FFFFFFFFFFFFFFF", "not an ID in any encoding"},
		{strings.Repeat("x", 1000), "(1000 bytes)"},
	} {
		id, e, err := Guess(tt.text)
		switch {
		case err != nil && (len(err.Error()) > 300 || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("guess(%.40q): %v, want %q", tt.text, err, tt.want)
		case err == nil && (e.String() != tt.want || e.Encode(id) != tt.text):
			t.Errorf("guess(%q) = %v in %v, want %q", tt.text, id, e, tt.want)
		}
	}
}

// What is accepted is the text of the ID in that encoding, and of no other ID in another.
func FuzzGuess(f *testing.F) {
	for _, id := range []firn.ID{0, 1, 57, 117465411174400005, firn.MaxID} {
		for _, e := range firn.Encodings() {
			f.Add(e.Encode(id))
		}
	}
	f.Add("8aaaaaaaaaa")
	f.Fuzz(func(t *testing.T, text string) {
		id, e, err := Guess(text)
		if err != nil {
			return
		}
		if e.Encode(id) != text {
			t.Errorf("guess(%q) = %v in %v, whose text is %q", text, id, e, e.Encode(id))
		}
		for _, other := range firn.Encodings() {
			if _, err := other.Parse(text); err == nil && other != e && e != firn.Decimal {
				t.Errorf("guess(%q) took %v, though %v reads it too", text, e, other)
			}
		}
	})
}
