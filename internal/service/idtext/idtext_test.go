package idtext

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
)

// today is when the texts of these tests are read.
var today = time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)

// keysOf returns keys of these versions; each key is 16 times its version.
func keysOf(t testing.TB, versions ...string) *Keys {
	t.Helper()
	var file strings.Builder
	for _, v := range versions {
		file.WriteString(v + " " + strings.Repeat(string(rune('A'+v[0]-'0')), 21) + "A==\n")
	}
	k, err := ParseKeys([]byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func orders(t testing.TB) Sequencer {
	t.Helper()
	d := cluster.Define(firn.Default)
	d.Prefix = "ord"
	return Of("orders", d, keysOf(t, "1"))
}

func text(t testing.TB, q Sequencer, f Form, id firn.ID) string {
	t.Helper()
	write, err := q.In(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := write(nil, id)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTextsNeverChange holds texts that strangers have written down.
func TestTextsNeverChange(t *testing.T) {
	q := orders(t)
	scattered := q
	scattered.Scattered = true
	const id = 117465411174400005
	for i, want := range []string{
		"117465411174400005", "01a1522b4a720005", "038AJ5D574005", "GpFJAb5Z9N", "08fzYR2kvFl",
		"117465411174400005-32", "ord_038aj5d574005", "ORD117465411174400005", "ORD117465411174400005-03",
		"01a1fc23-5529-7712-81a1-522b4a720005", "1-0Z8XHYq9t0Y",
	} {
		if got := text(t, q, Form(i), id); got != want {
			t.Errorf("%v: %s, want %s", Form(i), got, want)
		}
	}
	// Where they are scattered, the UUID still sorts by time, and is that of the ID before.
	if a, b := text(t, scattered, UUID, firn.Scatter(id)), text(t, q, UUID, id); a != b {
		t.Errorf("scattered: %s, want %s", a, b)
	}
	if a, b := text(t, scattered, Prefixed, firn.Scatter(id)), text(t, q, Prefixed, firn.Scatter(id)); a != b {
		t.Errorf("scattered: %s, want %s", a, b)
	}
}

func TestGuess(t *testing.T) {
	for _, tt := range []struct{ text, want string }{ // want: the form, or a part of the error
		{"0", "decimal"},
		{"1234567890123", "decimal"}, // 13 characters of base32 too
		{"9223372036854775807", "decimal"},
		{"7fffffffffffffff", "hex"},
		{"0000000000000001", "hex"}, // no decimal has zeros in front
		{"7ZZZZZZZZZZZZ", "base32"},
		{"NQm6nKp8qFC", "base58"}, // too large for base62
		{"AzL8n0Y58m7", "base62"}, // base58 has no 0
		{"abc", "8 to 11 of base58 (say so if there are fewer)"},
		{"zzzzzzz", "not an ID in any form"}, // words are not IDs
		{"2zzzzzzz", "base58"},
		{"8aaaaaaaaaa", "in base58 (3265042410184970455) and in base62 (7209719142869020940); say which form it has"},
		{"", "is empty"},
		{"007", "begins with '0'"},
		{"9223372036854775808", "too large"},
		{"-1", "not an ID in any form"},
		{"7FFFFFFFFFFFFFFF", "not an ID in any form"},
		{strings.Repeat("x", 1000), "(1000 bytes)"},

		{"ord_038aj5d574005", "prefixed"},
		{"inv_038aj5d574005", `its prefix is "inv", and the sequencer "orders" has "ord"`},
		{"_038aj5d574005", `its prefix is "", and the sequencer "orders" has "ord"`},
		{"ord_038AJ5D574005", "it has an upper-case letter"},
		{"ord_038aj5d57400", "it has 12 bytes; want 13"},
		{"ord_038aj5d57400u", `it has 'U' at byte 12`},
		{"ord_x_38aj5d57400", "behind the prefix"},
		{"117465411174400005-32", "checked"},
		{"0-98", "checked"},
		{"117465411174400005-33", "its check digits do not fit its number, so a digit is wrong; want the text exactly"},
		{"117465411174400050-32", "its check digits do not fit its number"},
		{"117465411174400005-3", "it does not end with a hyphen and two check digits"},
		{"117465411174400005-", "it does not end with a hyphen and two check digits"},
		{"05-32", "before the hyphen: it begins with '0'"},
		{"ORD117465411174400005", "prefixed-decimal"},
		{"ORD0", "prefixed-decimal"},
		{"INV117465411174400005", `its prefix is "INV", and the sequencer "orders" has "ORD"`},
		{"ORD2X5", `its prefix is "ORD2X", and the sequencer "orders" has "ORD"`},
		{"ORD007", "behind the prefix: it begins with '0'"},
		{"ORD9223372036854775808", "behind the prefix: it is too large"},
		{"ord117465411174400005", "not an ID in any form"},
		{"ORD", "not an ID in any form"},
		{"ORD117465411174400005-03", "prefixed-checked"},
		{"ORD117465411174400005-32", "its check digits do not fit the rest, so a letter or a digit is wrong"},
		{"ORD117465411174400050-03", "its check digits do not fit the rest"},
		{"ORD117465411174400005-3", "it does not end with a hyphen and two check digits"},
		{"DRO117465411174400005-03", `its prefix is "DRO", and the sequencer "orders" has "ORD"`},
		{"ord117465411174400005-03", "it is no prefix of A-Z and 0-9 with a number behind it"},
		{"01a1fc23-5529-7712-81a1-522b4a720005", "uuid"},
		{"01A1FC23-5529-7712-81A1-522B4A720005", "uuid"},
		{"01a1fc23-5529-7000-81a1-522b4a720005", `is a UUID of another sequencer than "orders": it has another tag`},
		{"01a1fc23-5529-4000-81a1-522b4a720005", "want 7 and 10"},
		{"01a1fc23-5529-7def-81a1-522b4a720005", "another program or layout made it"},
		{"1-00000000000", "sealed"},
		{"1-0000000000", "it has 10 bytes; want 11"},
		{"1-zzzzzzzzzzz", "it is too large"},
		{"2-00000000000", "a key of version 2, which this node does not have; it has 1"},
		{"0-00000000000", "want the version of a key, 1 to 65535"},
		{"01-00000000000", "want the version of a key, 1 to 65535"},
		{"65536-00000000000", "want the version of a key, 1 to 65535"},
	} {
		q := orders(t)
		id, f, err := q.Read(tt.text, today)
		switch {
		case err != nil && (len(err.Error()) > 400 || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("Read(%.40q): %v, want %q", tt.text, err, tt.want)
		case err == nil && (f.String() != tt.want || !strings.EqualFold(text(t, q, f, id), tt.text)):
			t.Errorf("Read(%q) = %v in %v, want %q", tt.text, id, f, tt.want)
		}
	}
}

// What a sequencer's IDs have no text in is refused both ways.
func TestFormsThatASequencerLacks(t *testing.T) {
	bare := Of("bare", cluster.Define(firn.Default), nil)
	for f, want := range map[Form]string{
		Prefixed:        `"bare" was created without a prefix; want another form than prefixed`,
		PrefixedDecimal: `"bare" was created without a prefix; want another form than prefixed-decimal`,
		PrefixedChecked: `"bare" was created without a prefix; want another form than prefixed-checked`,
		Sealed:          "no keys to seal and open IDs",
	} {
		if _, err := bare.In(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", f, err, want)
		}
	}
	for text, want := range map[string]string{
		"ord_038aj5d574005": `"bare" has no prefix`,
		"ORD1":              `"bare" has no prefix`,
		"ORD1-77":           `"bare" has no prefix`,
		"1-00000000000":     "no keys to seal and open IDs",
	} {
		if id, _, err := bare.Read(text, today); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d, %v, want %q", text, id, err, want)
		}
	}
	// Of a sequencer that is not known every prefix may be right.
	unknown := Sequencer{Layout: firn.Default}
	for text, form := range map[string]Form{
		"inv_038aj5d574005": Prefixed, "INV117465411174400005": PrefixedDecimal,
		"INV117465411174400005-" + check("INV117465411174400005"): PrefixedChecked,
	} {
		if id, f, err := unknown.Read(text, today); id != 117465411174400005 || f != form || err != nil {
			t.Errorf("%s: %d, %v, %v", text, id, f, err)
		}
	}
	ambiguous := orders(t)
	ambiguous.Prefix = "ord2"
	for _, f := range []Form{PrefixedDecimal, PrefixedChecked} {
		if _, err := ambiguous.In(f); err == nil || !strings.Contains(err.Error(), `the prefix "ord2" of the `+
			`sequencer "orders" ends with a digit, as a number behind it begins; want another form than `+f.String()) {
			t.Errorf("%v: %v", f, err)
		}
	}
}

func check(text string) string {
	c := checkDigits(text)
	return string(c[:])
}

// Check digits are those of the standard: of LEIs that exist, of an IBAN in the order in which it is checked, and of
// the library.
func TestCheckDigits(t *testing.T) {
	for _, text := range []string{"529900T8BM49AURSDO55", "5493001KJTIIGC8Y1R12", "WEST12345698765432GB82"} {
		if got, want := check(text[:len(text)-2]), text[len(text)-2:]; got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	for _, id := range []firn.ID{0, 1, 96, 97, 117465411174400005, firn.MaxID} {
		if got, want := id.String()+"-"+check(id.String()), firn.Checked.Encode(id); got != want {
			t.Errorf("%v: %s, want %s", id, got, want)
		}
	}
	q := orders(t)
	text := text(t, q, PrefixedChecked, 117465411174400005)
	q.Name = "" // so that the prefix alone refuses none
	for i := range text {
		for _, c := range alphabet {
			wrong := text[:i] + string(c) + text[i+1:]
			if strings.ContainsRune(digits, c) != strings.Contains(digits, text[i:i+1]) {
				continue // a digit for a letter: what is in front of it is another prefix
			}
			if id, f, err := q.Read(wrong, today); err == nil && wrong != text {
				t.Errorf("%s is %v in %v", wrong, id, f)
			}
		}
	}
}

func TestForms(t *testing.T) {
	for i, name := range Names() {
		f, err := ParseForm(name)
		if f != Form(i) || f.String() != name || err != nil {
			t.Errorf("%s is %v, %v", name, f, err)
		}
		if e := f.Encoding(); (e == nil) != (f >= Prefixed) || e != nil && e.String() != name {
			t.Errorf("%s has the encoding %v", name, e)
		}
	}
	if _, err := ParseForm("base64"); err == nil || !strings.Contains(err.Error(),
		`"base64"; want one of decimal, hex, base32, base58, base62, checked, prefixed, prefixed-decimal, `+
			`prefixed-checked, uuid, sealed`) {
		t.Error(err)
	}
}

// A sealed ID of one sequencer is another ID of another one; a made-up text opens to some ID. Nothing but a check of
// permissions tells.
func TestWhatSealsProve(t *testing.T) {
	a := orders(t)
	b := a
	b.Name = "invoices"
	const id = 117465411174400005
	sealed := text(t, a, Sealed, id)
	if got, _, err := a.Read(sealed, today); got != id || err != nil {
		t.Errorf("%s opens to %d, %v; want %d", sealed, got, err, id)
	}
	if got, _, err := b.Read(sealed, today); got == id || err != nil {
		t.Errorf("%s of another sequencer opens to %d, %v", sealed, got, err)
	}
	if got, _, err := a.Read("1-00000000000", today); err != nil || text(t, a, Sealed, got) != "1-00000000000" {
		t.Errorf("a made-up text opens to %d, %v", got, err)
	}
	// Two that follow each other share nothing that can be seen: about half of the 63 bits differ.
	next := text(t, a, Sealed, id+1)
	x, _ := firn.Base62.Parse(sealed[2:])
	y, _ := firn.Base62.Parse(next[2:])
	differ := 0
	for d := x ^ y; d != 0; d &= d - 1 {
		differ++
	}
	if differ < 12 || differ > 51 {
		t.Errorf("%s and %s differ in %d bits", sealed, next, differ)
	}
}

// The first key seals. After a rotation new texts are of the new key, and old ones open as long as theirs is there.
func TestRotatedKeys(t *testing.T) {
	q := orders(t)
	const id = 117465411174400005
	old := text(t, q, Sealed, id)
	q.Keys = keysOf(t, "1", "3")
	if got := text(t, q, Sealed, id); got != old {
		t.Errorf("with a new key behind it the first one seals %s; want %s", got, old)
	}
	q.Keys = keysOf(t, "3", "1")
	now := text(t, q, Sealed, id)
	if !strings.HasPrefix(now, "3-") || now[2:] == old[2:] {
		t.Errorf("%s becomes %s", old, now)
	}
	for _, sealed := range []string{old, now} {
		if got, _, err := q.Read(sealed, today); got != id || err != nil {
			t.Errorf("%s opens to %d, %v", sealed, got, err)
		}
	}
	q.Keys = keysOf(t, "3")
	if got, _, err := q.Read(old, today); err == nil ||
		!strings.Contains(err.Error(), "a key of version 1, which this node does not have; it has 3") {
		t.Errorf("%s opens to %d, %v", old, got, err)
	}
}

// sameText reports whether s is what was read for the text of an ID, which may have a byte order mark, another case,
// and for a UUID other marks around its digits.
func sameText(f Form, want, s string) bool {
	s = strings.TrimPrefix(s, bom)
	switch f {
	case UUID:
		u, err := firn.ParseUUID(s)
		return err == nil && u.String() == want
	case Base32:
		return s == want || s == strings.ToLower(want)
	}
	return s == want
}

// What is read is the text of the ID in that form, and of no other ID in another.
func FuzzRead(f *testing.F) {
	q := orders(f)
	for _, id := range []firn.ID{0, 1, 57, 117465411174400005, firn.MaxID} {
		for form := range Names() {
			f.Add(text(f, q, Form(form), id))
		}
	}
	f.Add("8aaaaaaaaaa")
	f.Add("1234567890123456")
	f.Fuzz(func(t *testing.T, s string) {
		id, form, err := q.Read(s, today)
		if err != nil {
			return
		}
		if got := text(t, q, form, id); !sameText(form, got, s) {
			t.Errorf("Read(%q) = %v in %v, whose text is %q", s, id, form, got)
		}
		for other := range Names() {
			another, err := q.ReadIn(Form(other), s)
			if err == nil && another != id && len(s) >= shortestGuess && q.mayHaveMade(another, today) {
				t.Errorf("Read(%q) took %v, though %v reads it too", s, form, Form(other))
			}
		}
	})
}

// A number behind a prefix and its check digits need no memory beside the text.
func TestNumberedDoesNotAllocate(t *testing.T) {
	q, b := orders(t), make([]byte, 0, 64)
	for _, f := range []Form{Decimal, Checked, PrefixedDecimal, PrefixedChecked} {
		write, err := q.In(f)
		if err != nil {
			t.Fatal(err)
		}
		text := text(t, q, f, firn.MaxID)
		for name, do := range map[string]func(){
			"writing": func() { _, _ = write(b, firn.MaxID) },
			"reading": func() { _, _ = q.ReadIn(f, text) },
		} {
			if n := testing.AllocsPerRun(100, do); n != 0 {
				t.Errorf("%s %v takes %v allocations", name, f, n)
			}
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	q := orders(b)
	for i, name := range Names() {
		b.Run(name, func(b *testing.B) {
			write, err := q.In(Form(i))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			text := make([]byte, 0, 64)
			for b.Loop() {
				if _, err := write(text, 117465411174400005); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
