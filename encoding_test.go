package firn

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestEncodingKnownTexts(t *testing.T) {
	ids := []ID{0, 1, 63, 1 << 32, 1541815603606036480, MaxID - 1, MaxID}
	want := map[*Encoding][]string{
		Decimal: {"0", "1", "63", "4294967296", "1541815603606036480", "9223372036854775806", "9223372036854775807"},
		Hex: {
			"0000000000000000", "0000000000000001", "000000000000003f", "0000000100000000", "1565a11f6217a000",
			"7ffffffffffffffe", "7fffffffffffffff",
		},
		Base32: {
			"0000000000000", "0000000000001", "000000000001Z", "0000004000000", "1ASD13XH1F800", "7ZZZZZZZZZZZY",
			"7ZZZZZZZZZZZZ",
		},
		Base58: {"1", "2", "26", "7YXq9H", "4aaW4SzAyQK", "NQm6nKp8qFB", "NQm6nKp8qFC"},
		Base62: {
			"00000000000", "00000000001", "00000000011", "000004gfFC4", "1ptWyK4WgZU", "AzL8n0Y58m6",
			"AzL8n0Y58m7",
		},
		Checked: {
			"0-98", "1-95", "63-06", "4294967296-90", "1541815603606036480-62", "9223372036854775806-61",
			"9223372036854775807-58",
		},
	}
	for e, texts := range want {
		for i, id := range ids {
			if got := e.Encode(id); got != texts[i] {
				t.Errorf("%s.Encode(%d) = %q, want %q", e, id, got, texts[i])
			}
			if got, err := e.Parse(texts[i]); got != id || err != nil {
				t.Errorf("%s.Parse(%q) = %d, %v, want %d", e, texts[i], got, err, id)
			}
		}
	}
}

// dumbText is the text of id by way of big.Int, whose digits are 0-9a-zA-Z.
func dumbText(e *Encoding, id ID) string {
	const bigDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	s := strings.Map(func(r rune) rune {
		return rune(e.alphabet[strings.IndexRune(bigDigits, r)])
	}, new(big.Int).SetInt64(int64(id)).Text(len(e.alphabet)))
	s = strings.Repeat(e.alphabet[:1], max(0, e.width-len(s))) + s
	if e == Checked {
		n := new(big.Int).Mul(big.NewInt(int64(id)), big.NewInt(100))
		return fmt.Sprintf("%s-%02d", s, 98-n.Mod(n, big.NewInt(97)).Int64())
	}
	return s
}

// A digit that is wrong, and two that are exchanged, wherever they are, give no ID; of other texts about one of 97
// does.
func TestCheckedFindsMistakes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		id := ID(rng.Int64() >> rng.IntN(63))
		text := Checked.Encode(id)
		for i := range text {
			if text[i] == '-' {
				continue
			}
			for d := byte('0'); d <= '9'; d++ {
				wrong := []byte(text)
				wrong[i] = d
				refuses(t, text, wrong)
			}
			for j := range i {
				wrong := []byte(text)
				wrong[i], wrong[j] = text[j], text[i]
				if text[j] != '-' {
					refuses(t, text, wrong)
				}
			}
		}
	}
	accepted := 0
	const texts = 97_000
	for range texts {
		if _, err := Checked.Parse(fmt.Sprintf("%d-%02d", rng.Int64(), rng.IntN(97)+2)); err == nil {
			accepted++
		}
	}
	if accepted < texts/97*4/5 || accepted > texts/97*6/5 {
		t.Errorf("%d of %d texts by chance are IDs; want 1 of 97", accepted, texts)
	}
}

func refuses(t *testing.T, text string, wrong []byte) {
	t.Helper()
	if id, err := Checked.Parse(string(wrong)); err == nil && string(wrong) != text {
		t.Errorf("%s, a mistake in %s, is %d", wrong, text, id)
	}
}

func TestEncodingAgreesWithBigInt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, e := range Encodings() {
		for range 2000 {
			id := ID(rng.Int64() >> rng.IntN(63)) // numbers of all lengths
			text := e.Encode(id)
			if want := dumbText(e, id); text != want {
				t.Fatalf("%s.Encode(%d) = %q, want %q", e, id, text, want)
			}
			if got, err := e.Parse(text); got != id || err != nil {
				t.Fatalf("%s.Parse(%q) = %d, %v, want %d", e, text, got, err, id)
			}
		}
	}
}

func TestEncodingRejects(t *testing.T) {
	tests := []struct {
		e      *Encoding
		input  string
		reason string // the beginning of it
	}{
		{Decimal, "", "it is empty"},
		{Decimal, "9223372036854775808", "it is too large; want at most 9223372036854775807"},
		{Decimal, "9999999999999999999", "it is too large"},
		{Decimal, "18446744073709551616", "it is too large"}, // 2^64, which wraps to 0
		{Decimal, strings.Repeat("9", 1000), "it is too large"},
		{Decimal, "00", "it begins with '0', which stands for zero"},
		{Decimal, "007", "it begins with '0', which stands for zero"},
		{Decimal, "+1", "it has '+' at byte 0; want only 0123456789"},
		{Decimal, "-1", "it has '-' at byte 0"},
		{Decimal, "-0", "it has '-' at byte 0"},
		{Decimal, " 1", "it has ' ' at byte 0"},
		{Decimal, "1\n", "it has '\\n' at byte 1"},
		{Decimal, "1_000", "it has '_' at byte 1"},
		{
			Decimal, "1.0",
			"it is a floating-point number, whose last digits may be lost; want all digits, such as " +
				"117465411174400005",
		},
		{Decimal, "1e3", "it is a floating-point number"},
		{Decimal, "1e", "it has 'e' at byte 1"},
		{Decimal, "1.2.3", "it has '.' at byte 1"},
		{Decimal, "1\x00", "it has '\\x00' at byte 1"},
		{Decimal, "1½", "it has '½' at byte 1"},
		{Decimal, "1\xff", "it has '�' at byte 1"},
		{Decimal, "٣", "it has '٣' at byte 0"},

		{Hex, "", "it is empty"},
		{Hex, "8000000000000000", "it is too large; want at most 7fffffffffffffff"},
		{Hex, "ffffffffffffffff", "it is too large"},
		{Hex, "7FFFFFFFFFFFFFFF", "it has 'F' at byte 1; want only 0123456789abcdef"},
		{Hex, "0x00000000000001", "it has 'x' at byte 1"},
		{Hex, "1", "it has 1 bytes; want 16"},
		{Hex, "00000000000000001", "it has 17 bytes; want 16"},

		{Base32, "", "it is empty"},
		{Base32, "8000000000000", "it is too large; want at most 7ZZZZZZZZZZZZ"},
		{Base32, "G000000000000", "it is too large"}, // 2^64, which wraps to 0
		{Base32, "ZZZZZZZZZZZZZ", "it is too large"},
		{Base32, "000000000000I", "it has 'I' at byte 12"},
		{Base32, "00000000000L0", "it has 'L' at byte 11"},
		{Base32, "0000000000O00", "it has 'O' at byte 10"},
		{Base32, "000000000U000", "it has 'U' at byte 9"},
		{Base32, "000000000000z", "it has 'z' at byte 12"},
		{Base32, "000000-000000", "it has '-' at byte 6"},
		{Base32, "000000000000", "it has 12 bytes; want 13"},
		{Base32, "00000000000000", "it has 14 bytes; want 13"},

		{Base58, "", "it is empty"},
		{Base58, "NQm6nKp8qFD", "it is too large; want at most NQm6nKp8qFC"},
		{Base58, "jpXCZedGfVR", "it is too large"}, // 2^64, which wraps to 0
		{Base58, "zzzzzzzzzzz", "it is too large"},
		{Base58, "NQm6nKp8qFC1", "it is too large"},
		{Base58, "11", "it begins with '1', which stands for zero"},
		{Base58, "12", "it begins with '1', which stands for zero"},
		{Base58, "2O", "it has 'O' at byte 1"},
		{Base58, "2l", "it has 'l' at byte 1"},
		{Base58, "2I", "it has 'I' at byte 1"},
		{Base58, "20", "it has '0' at byte 1"},

		{Base62, "", "it is empty"},
		{Base62, "AzL8n0Y58m8", "it is too large; want at most AzL8n0Y58m7"},
		{Base62, "LygHa16AHYG", "it is too large"}, // 2^64, which wraps to 0
		{Base62, "zzzzzzzzzzz", "it is too large"},
		{Base62, "0000000000-", "it has '-' at byte 10"},
		{Base62, "1", "it has 1 bytes; want 11"},
		{Base62, "000000000000", "it has 12 bytes; want 11"},

		{Checked, "", "it does not end with a hyphen and two check digits; want a text such as 117465411174400005-32"},
		{Checked, "1", "it does not end with a hyphen"},
		{Checked, "195", "it does not end with a hyphen"},
		{Checked, "1-9", "it does not end with a hyphen"},
		{Checked, "1-095", "it does not end with a hyphen"},
		{Checked, "1-95-95", "it does not end with a hyphen"},
		{Checked, "-95", "before the hyphen: it is empty"},
		{Checked, "01-95", "before the hyphen: it begins with '0'"},
		{Checked, "9223372036854775808-55", "before the hyphen: it is too large"},
		{
			Checked, "1-94",
			"its check digits do not fit its number, so a digit is wrong; want the text exactly as it was made",
		},
		{Checked, "2-95", "its check digits do not fit"},
		{Checked, "1-9x", "its check digits do not fit"},
		{Checked, "65-00", "its check digits do not fit"}, // which leaves 1, too; they are 97
		{Checked, "0-01", "its check digits do not fit"},  // 98
		{Checked, "32-99", "its check digits do not fit"}, // 02
		{Checked, "1 -95", "before the hyphen: it has ' ' at byte 1"},
	}
	for _, tt := range tests {
		id, err := tt.e.Parse(tt.input)
		pe, ok := errors.AsType[*ParseError](err)
		if !ok || id != 0 {
			t.Errorf("%s.Parse(%q) = %d, %v, want 0 and a *ParseError", tt.e, tt.input, id, err)
			continue
		}
		if pe.Encoding != tt.e.String() || pe.Input != tt.input || !strings.HasPrefix(pe.Reason, tt.reason) {
			t.Errorf("%s.Parse(%q) gives %+v, want the reason %q", tt.e, tt.input, *pe, tt.reason)
		}
	}
}

func TestEncodingOfNegativeNumberIsRejected(t *testing.T) {
	for _, id := range []ID{-1, -42, -MaxID, -MaxID - 1} {
		for _, e := range Encodings() {
			text := e.Encode(id)
			if got, err := e.Parse(text); err == nil {
				t.Errorf("%s.Parse(%q), the text of %d, gives %d, want an error", e, text, id, got)
			}
		}
	}
}

func TestEncodingByName(t *testing.T) {
	for _, e := range Encodings() {
		if got, err := EncodingByName(e.String()); got != e || err != nil {
			t.Errorf("EncodingByName(%q) = %v, %v", e.String(), got, err)
		}
	}
	for _, name := range []string{"", "Hex", "base64"} {
		_, err := EncodingByName(name)
		if err == nil || !strings.Contains(err.Error(), "want one of decimal, hex, base32, base58, base62, checked") {
			t.Errorf("EncodingByName(%q) gives %v, want an error that lists the names", name, err)
		}
	}
}

func TestEncodingAppendKeepsThePrefix(t *testing.T) {
	for _, e := range Encodings() {
		if got, want := string(e.Append([]byte("id="), 7)), "id="+e.Encode(7); got != want {
			t.Errorf("%s.Append gives %q, want %q", e, got, want)
		}
	}
}

func TestEncodingDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 32)
	for _, e := range Encodings() {
		text := e.Encode(MaxID)
		for name, f := range map[string]func(){
			"Append":             func() { buf = e.Append(buf[:0], MaxID) },
			"Append of negative": func() { buf = e.Append(buf[:0], -1) },
			"Parse":              func() { _, _ = e.Parse(text) },
		} {
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("%s: %s allocates %v times, want 0", e, name, n)
			}
		}
	}
}

func FuzzEncodingParse(f *testing.F) {
	for _, e := range Encodings() {
		for _, id := range []ID{0, 1, MaxID, -1} {
			f.Add(e.Encode(id))
		}
	}
	for _, s := range []string{"", "00", "+1", " 1", "11", "zzzzzzzzzzz", "8000000000000000", "ZZZZZZZZZZZZZ", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, e := range Encodings() {
			id, err := e.Parse(s)
			if err != nil {
				if pe, ok := errors.AsType[*ParseError](err); !ok || pe.Input != s || id != 0 ||
					len(err.Error()) > 500 {
					t.Errorf("%s.Parse(%q) = %d, %v", e, s, id, err)
				}
				continue
			}
			if id < 0 || e.Encode(id) != s {
				t.Errorf("%s.Parse(%q) = %d, whose text is %q", e, s, id, e.Encode(id))
			}
		}
	})
}

func FuzzEncodingSortsLikeTheNumber(f *testing.F) {
	f.Add(int64(0), int64(1))
	f.Add(int64(9), int64(10))
	f.Add(int64(MaxID-1), int64(MaxID))
	f.Fuzz(func(t *testing.T, a, b int64) {
		if a < 0 || b < 0 {
			return
		}
		for _, e := range []*Encoding{Hex, Base32, Base62} {
			x, y := e.Encode(ID(a)), e.Encode(ID(b))
			if (a < b) != (x < y) || (a == b) != (x == y) {
				t.Errorf("%s: %d and %d are written as %q and %q", e, a, b, x, y)
			}
		}
	})
}

func BenchmarkEncodingAppend(b *testing.B) {
	for _, e := range Encodings() {
		b.Run(e.String(), func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 32)
			for b.Loop() {
				buf = e.Append(buf[:0], 1541815603606036480)
			}
		})
	}
}

// benchText keeps what a benchmark has made on the heap.
var benchText string

func BenchmarkEncodingEncode(b *testing.B) {
	for _, e := range Encodings() {
		b.Run(e.String(), func(b *testing.B) {
			b.ReportAllocs()
			var text string
			for b.Loop() {
				text = e.Encode(1541815603606036480)
			}
			benchText = text
		})
	}
}

func BenchmarkEncodingParse(b *testing.B) {
	for _, e := range Encodings() {
		text := e.Encode(1541815603606036480)
		b.Run(e.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
