package idtext

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
)

// What digits mean depends on what the sequencer may have made. Where that does not decide, the form must be named.
func TestDigits(t *testing.T) {
	fine, err := firn.ParseLayout("50/5/8@100us")
	if err != nil {
		t.Fatal(err)
	}
	scattered := cluster.Define(firn.Default)
	scattered.Scattered = true
	plain := Of("plain", cluster.Define(firn.Default), nil)
	unknown := Sequencer{Layout: firn.Default}
	customers := Of("customers", cluster.Definition{Kind: cluster.Counter, Prefix: "cust"}, nil)
	longest := Of("longest", cluster.Definition{Kind: cluster.Counter, Prefix: "abcdefghijklmn"}, nil)
	longText := text(t, longest, PrefixedChecked, firn.MaxID)
	if len(longText) != len("01a1fc23-5529-7712-81a1-522b4a720005") {
		t.Errorf("%s has %d characters", longText, len(longText))
	}
	later := time.Date(2034, 11, 27, 0, 0, 0, 0, time.UTC)
	refused := "is an ID in decimal ("
	for _, tt := range []struct {
		about string
		q     Sequencer
		now   time.Time
		text  string
		want  string // the form, or a part of the error
	}{
		{"an ID of today", plain, today, "120932372480000001", "decimal"},
		{"an ID of the first month; in hex of 2061", plain, today, "4194304000000001", "decimal"},
		{
			"an ID of the third day; in hex of 2034", plain, today, "1000000000000000",
			refused + "1000000000000000) and in hex (1152921504606846976)",
		},
		{"an ID of the third day, or in hex of today", plain, later, "1000000000000000", refused},
		{"perhaps of a scattered sequencer", unknown, today, "4194304000000001", refused},
		{"hex alone: no decimal begins with a zero", unknown, today, "0000000000000001", "hex"},
		{
			"scattered: of 2026 in both", Of("scattered", scattered, nil), today, "6879093025110514",
			refused + "6879093025110514) and in hex (7528058354511447316)",
		},
		{"scattered: hex of 2026, decimal of 2090", Of("scattered", scattered, nil), today, "5951075811555754", "hex"},
		{
			"finer ticks: decimal IDs have 16 digits for years", Of("fine", cluster.Define(fine), nil), today,
			"2355148800000001", "decimal",
		},
		{
			"53 bits: no ID of another form has so many", Of("short", cluster.Define(firn.JavaScript), nil), later,
			"1234567890123456", "decimal",
		},
		{"13 digits are base32, too", unknown, today, "1234567890123", "and in base32 ("},
		{"of the first minute", plain, today, "1234567890123", "and in base32 ("},
		{"10 are base58, too", unknown, today, "2345678912", "and in base58 ("},
		{
			"of no time that is near: 2080 in base62, 2050 in base58", plain, today, "8aaaaaaaaaa",
			"in base58 (3265042410184970455) and in base62 (",
		},
		{"too short to be guessed", unknown, today, "1234567", "decimal"},
		{"too short for base58 behind a prefix", customers, today, "CUST123", "prefixed-decimal"},
		{
			"behind a prefix; 8 characters are base58, too", customers, today, "CUST1234",
			"and in prefixed-decimal (1234)",
		},
		{"behind a prefix: base58 has no 0", customers, today, "CUST1034", "prefixed-decimal"},
		{"no other form has a hyphen there", customers, today, "CUST1234-" + check("CUST1234"), "prefixed-checked"},
		{"the longest text has as many characters as a UUID", longest, today, longText, "prefixed-checked"},
	} {
		id, f, err := tt.q.Read(tt.text, tt.now)
		switch {
		case err != nil && !strings.Contains(err.Error(), tt.want):
			t.Errorf("%s: Read(%s): %v, want %q", tt.about, tt.text, err, tt.want)
		case err == nil && (f.String() != tt.want || text(t, tt.q, f, id) != tt.text):
			t.Errorf("%s: Read(%s) = %v in %v, want %q", tt.about, tt.text, id, f, tt.want)
		}
	}
}

// No text of a new ID is read as another ID, whatever its form and whoever reads it.
func TestNoNewTextIsReadAsAnotherID(t *testing.T) {
	old := firn.Default
	old.Epoch = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC) // its IDs have 16 digits of hex since 2018
	for _, layout := range []firn.Layout{firn.Default, old, firn.JavaScript} {
		for _, scatters := range []bool{false, true} {
			d := cluster.Define(layout)
			d.Scattered = scatters
			d.Prefix = "fab"
			q, unknown := Of("q", d, nil), Sequencer{Layout: layout}
			first, err := layout.First(today)
			if err != nil {
				t.Fatal(err)
			}
			digits := 0
			for made := first - 1; made > 0; made -= first / 4999 {
				id := made
				if scatters {
					id = firn.Scatter(made)
				}
				for _, form := range []Form{
					Decimal, Hex, Base32, Base58, Base62, Checked, Prefixed, PrefixedDecimal, PrefixedChecked,
				} {
					s := text(t, q, form, id)
					for _, reader := range []Sequencer{q, unknown} {
						if got, f, err := reader.Read(s, today); err == nil && got != id {
							t.Fatalf("%s, %v of %v, is read as %v in %v", s, form, id, got, f)
						}
					}
					if form == Hex && s[0] != '0' && strings.Trim(s, "0123456789") == "" {
						digits++
					}
				}
			}
			if digits == 0 && (scatters || layout == old) {
				t.Errorf("%v, scattered %t: no hex has digits alone", layout, scatters)
			}
		}
	}
}

// Texts that other programs write differently are read where they can mean only one ID. What was never whole is refused
// in the words of all clients.
func TestWhole(t *testing.T) {
	data, err := os.ReadFile("../../../clients/conformance/whole.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Says      string
		NotWhole  []string `json:"not_whole"`
		Converted []string
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.NotWhole) < 5 || len(v.Converted) < 5 {
		t.Errorf("%+v lacks cases", v)
	}
	q := orders(t)
	for _, s := range v.Converted {
		id, f, err := q.Read(s, today)
		if id != 117465411174400005 || err != nil {
			t.Errorf("%q is %v in %v, %v", s, id, f, err)
		}
		if got, err := q.ReadIn(f, s); got != id || err != nil {
			t.Errorf("%q in %v is %v, %v; want %v", s, f, got, err, id)
		}
	}
	for _, s := range v.NotWhole {
		if id, f, err := q.Read(s, today); err == nil || !strings.Contains(err.Error(), v.Says) {
			t.Errorf("%q is %v in %v, %v; want %q", s, id, f, err, v.Says)
		}
	}
	for _, s := range []string{
		"\ufeff", "5\ufeff", "038aJ5d574005", "038aj5d57400u", "01a1fc235529700081a1522b4a72000g", "{}",
		"a:b", "1e", "12e5x",
		"{01a1fc235529700081a1522b4a720005}", "117465411174400005n",
	} {
		if id, f, err := q.Read(s, today); err == nil {
			t.Errorf("%q is %v in %v", s, id, f)
		}
	}
	if !IsSealed("\ufeff1-0Z8XHYq9t0Y") {
		t.Error("a sealed text with a byte order mark is not sealed")
	}
}

// JavaScript prints as few digits as tell a number of 53 bits from the next.
func TestRounded(t *testing.T) {
	for id, want := range map[firn.ID]bool{
		0: false, 1 << 53: false, 9007199254740993: false, 9007199254740994: false, 117465411174400005: false,
		117465411174400000:  false,
		1541815603606036480: false, 1541815603606036500: true, 1541815603606036501: false, 175928847299117060: true,
		175928847299117063: false, firn.MaxID: false,
	} {
		if got := Rounded(id); got != want {
			t.Errorf("%v: %t, want %t", id, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	_, _, err := Sequencer{Layout: firn.Default}.Read("1234567890123456", today)
	want := `"1234567890123456" is an ID in decimal (1234567890123456) and in hex (1311768467284833366); say which ` +
		`form it has: --form decimal or --form hex`
	if err = Explain(err, "--form "); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, _, err = Sequencer{Layout: firn.Default}.Read("x", today)
	if got := Explain(err, "--form "); got != err {
		t.Errorf("%v, want %v", got, err)
	}
}
