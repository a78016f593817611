package firn

import (
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// plainText is the text of id, one digit after the other.
func plainText(e *Encoding, id ID) string {
	if e.base == 10 {
		text := strconv.FormatInt(int64(id), 10)
		if e.checked {
			c := checkDigits(id)
			text += "-" + string(c[:])
		}
		return text
	}
	var text []byte
	for n := uint64(id); n > 0 || len(text) < e.width; n /= e.base {
		text = append([]byte{e.alphabet[n%e.base]}, text...)
	}
	return string(text)
}

// plainParse reads what plainText writes, one digit after the other. It says what is wrong with anything else.
func plainParse(e *Encoding, s string) (id ID, reason string) {
	if e.checked {
		return plainChecked(s)
	}
	rejected := func(format string, args ...any) (ID, string) {
		parse, _ := errors.AsType[*ParseError](reject(e.name, s, format, args...))
		return 0, parse.Reason
	}
	switch {
	case s == "":
		return rejected("it is empty")
	case e.width > 1 && len(s) != e.width:
		return rejected("it has %d bytes; want %d", len(s), e.width)
	case e.width == 1 && len(s) > 1 && s[0] == e.alphabet[0]:
		return rejected("it begins with %q, which stands for zero; want no zeros in front of a number", s[0])
	}
	var n uint64
	for i := range len(s) {
		d := strings.IndexByte(e.alphabet, s[i])
		if d < 0 {
			if e.base == 10 && isFloat(s) {
				return rejected("it is %s; want all digits, such as 117465411174400005", lossy)
			}
			r, _ := utf8.DecodeRuneInString(s[i:])
			return rejected("it has %q at byte %d; want only %s", r, i, e.alphabet)
		}
		if n > math.MaxInt64/e.base || n*e.base+uint64(d) > math.MaxInt64 {
			return rejected("it is too large; want at most %s", plainText(e, MaxID))
		}
		n = n*e.base + uint64(d)
	}
	return ID(n), ""
}

func plainChecked(s string) (ID, string) {
	number, check, ok := strings.Cut(s, "-")
	if !ok || len(check) != 2 {
		return 0, "it does not end with a hyphen and two check digits; want a text such as 117465411174400005-32"
	}
	id, reason := plainParse(Decimal, number)
	if c := checkDigits(id); reason != "" {
		return 0, "before the hyphen: " + reason
	} else if check != string(c[:]) {
		return 0, "its check digits do not fit its number, so a digit is wrong; want the text exactly as it was made"
	}
	return id, ""
}

// parsesAsPlain reports, of every encoding and of UUIDs, where a text is not read as digit after digit.
func parsesAsPlain(t *testing.T, s string) {
	t.Helper()
	for _, e := range Encodings() {
		id, err := e.Parse(s)
		reason := ""
		if parse, ok := errors.AsType[*ParseError](err); ok {
			reason = parse.Reason
			if parse.Input != s || parse.Encoding != e.name {
				t.Errorf("%s.Parse(%q) gives %+v", e, s, *parse)
			}
		}
		if want, wantReason := plainParse(e, s); id != want || reason != wantReason {
			t.Errorf("%s.Parse(%q) = %d, %q; want %d, %q", e, s, id, reason, want, wantReason)
		}
	}
	u, err := ParseUUID(s)
	if want, ok := plainUUID(s); u != want || ok != (err == nil) {
		t.Errorf("ParseUUID(%q) = %v, %v; want %v", s, u, err, want)
	}
}

// plainUUID is ParseUUID by way of encoding/hex.
func plainUUID(s string) (u UUID, ok bool) {
	switch n := len(s); {
	case n == 45 && strings.EqualFold(s[:9], "urn:uuid:"):
		s = s[9:]
	case n == 38 && s[0] == '{' && s[37] == '}':
		s = s[1:37]
	}
	if len(s) == 36 {
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return u, false
		}
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	b, err := hex.DecodeString(s)
	if len(s) != 32 || err != nil {
		return u, false
	}
	return UUID(b), true
}

// Every byte in every place of a text is read as plainParse reads it.
func TestTextsWithAnyByteAnywhere(t *testing.T) {
	texts := []string{"", "10", strings.Repeat("9", 20), "1234567-00", "jpXCZedGfVR", "LygHa16AHYG", "ZZZZZZZZZZZZZ"}
	for _, id := range []ID{7, 1e16, MaxID} {
		for _, e := range Encodings() {
			texts = append(texts, plainText(e, id))
		}
	}
	const uuid = "0181ab11-8149-7000-95EF-a11f6217abcd"
	texts = append(texts, uuid, strings.ReplaceAll(uuid, "-", ""), "{"+uuid+"}", "urn:uuid:"+uuid)
	for _, text := range texts {
		parsesAsPlain(t, text)
		for i := range text {
			for c := range 256 {
				parsesAsPlain(t, text[:i]+string([]byte{byte(c)})+text[i+1:])
			}
			parsesAsPlain(t, text[:i])
		}
	}
}

// appendsAsPlain reports where a text is not that of digit after digit, or not read back, or where Append writes behind
// its text, or needs more room.
func appendsAsPlain(t *testing.T, id ID) {
	t.Helper()
	for _, e := range Encodings() {
		want := plainText(e, id)
		b := []byte("." + strings.Repeat("~", len(want)+40))
		if got := e.Append(b[:1:len(want)+1], id); string(got) != "."+want || &got[0] != &b[0] {
			t.Errorf("%s.Append gives %q for %d in its room; want %q", e, got, id, "."+want)
		}
		if got := e.Append(b[:1], id); string(got) != "."+want || strings.Trim(string(b[len(got):]), "~") != "" {
			t.Errorf("%s.Append leaves %q for %d; want %q", e, b, id, "."+want)
		}
		if got := e.Append([]byte{'.'}, id); string(got) != "."+want {
			t.Errorf("%s.Append gives %q for %d; want %q", e, got, id, "."+want)
		}
		if got, err := e.Parse(want); (got != id || err != nil) != (id < 0) {
			t.Errorf("%s.Parse(%q) = %d, %v; want %d", e, want, got, err, id)
		}
	}
	u := UUID([]byte(plainText(Hex, id)))
	h := hex.EncodeToString(u[:])
	if want := h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]; u.String() != want {
		t.Errorf("%x has the text %v, want %s", u[:], u, want)
	}
}

// Numbers around the powers of each base, where texts become longer, and by chance.
func TestTextsOfNumbers(t *testing.T) {
	for _, e := range Encodings() {
		for n := uint64(1); n <= math.MaxUint64/e.base; n *= e.base {
			for _, id := range []uint64{n - 1, n, n + 1, n * (e.base - 1), n*e.base - 1} {
				appendsAsPlain(t, ID(id))
			}
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		appendsAsPlain(t, ID(rng.Uint64()>>rng.IntN(64)))
	}
}

// FuzzTexts: texts and numbers are as if digit after digit were read and written.
func FuzzTexts(f *testing.F) {
	for _, e := range Encodings() {
		for _, id := range []ID{0, 1, 1e16, 1541815603606036480, MaxID, -1} {
			f.Add(plainText(e, id), int64(id))
		}
	}
	for _, s := range []string{"", "00", "+1", "0181ab11-8149-7000-95EF-a11f6217abcd", "8000000000000000", "\xff"} {
		f.Add(s, int64(math.MinInt64))
	}
	f.Fuzz(func(t *testing.T, s string, n int64) {
		parsesAsPlain(t, s)
		appendsAsPlain(t, ID(n))
	})
}
