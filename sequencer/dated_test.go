package sequencer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

func TestNumbersOfADate(t *testing.T) {
	for _, c := range []struct {
		dated       Dated
		at          string
		first, last firn.ID
		until       string
		begins      string // of Split
	}{
		{
			Dated{EveryDay, 6, "Europe/Berlin"},
			"2026-11-26T22:59:59Z", 20261126000001, 20261126999999,
			"2026-11-27T00:00:00+01:00", "2026-11-26",
		},
		{
			Dated{EveryDay, 6, "Europe/Berlin"},
			"2026-11-26T23:00:00Z", 20261127000001, 20261127999999,
			"2026-11-28T00:00:00+01:00", "2026-11-27",
		},
		{Dated{EveryDay, 1, ""}, "2024-02-28T23:59:59Z", 202402281, 202402289, "2024-02-29T00:00:00Z", "2024-02-28"},
		{
			Dated{EveryDay, 10, "UTC"},
			"9999-12-31T01:00:00Z", 999912310000000001, 999912319999999999,
			"+10000", "9999-12-31",
		},
		{Dated{EveryMonth, 4, ""}, "2026-12-31T23:59:59Z", 2026120001, 2026129999, "2027-01-01T00:00:00Z", "2026-12"},
		{
			Dated{EveryYear, 14, "Asia/Tokyo"},
			"2026-12-31T15:00:00Z", 202700000000000001, 202799999999999999,
			"2028-01-01T00:00:00+09:00", "2027",
		},
		// There is no midnight on this day: clocks went from 23:59:59 to 01:00.
		{
			Dated{EveryDay, 2, "Africa/Cairo"},
			"2024-04-26T06:00:00Z", 2024042601, 2024042699,
			"2024-04-27T00:00:00+03:00", "2024-04-26",
		},
		{
			Dated{EveryDay, 2, "Africa/Cairo"},
			"2024-04-25T21:59:59Z", 2024042501, 2024042599,
			"2024-04-25T22:00:00Z", "2024-04-25",
		},
	} {
		at, _ := time.Parse(time.RFC3339, c.at)
		where, err := c.dated.Location()
		if err != nil {
			t.Fatal(err)
		}
		first, last, until := c.dated.At(at, where)
		want, err := time.Parse(time.RFC3339, c.until)
		if first != c.first || last != c.last || err == nil && !until.Equal(want) || until.Year() < 2024 {
			t.Errorf("%v at %s: %d to %d until %v, want %d to %d until %s", c.dated, c.at, first, last, until, c.first,
				c.last, c.until)
		}
		from, date, number, ok := c.dated.Split(last, where)
		if !ok || date != c.begins || number != int64(last-first)+1 || from.After(at) ||
			at.Sub(from) > 366*24*time.Hour {
			t.Errorf("%d of %v is %d of %s from %v %v", last, c.dated, number, date, from, ok)
		}
	}
	for _, id := range []firn.ID{0, -1, 1, 20261126000, 20261326001, 20261126, firn.MaxID} {
		if _, date, number, ok := (Dated{EveryDay, 3, ""}).Split(id, time.UTC); ok {
			t.Errorf("%d is %d of %s, want nothing", id, number, date)
		}
	}
	if first, last, _ := (Dated{EveryDay, 3, ""}).
		At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.UTC); first <= last {
		t.Errorf("%d to %d in the year 10000", first, last)
	}
}

// Some zones have days without a midnight, with two, or leave out a day: each instant has one date, which ends where
// the next one begins.
func TestDaysBeginAtAnyTime(t *testing.T) {
	d := Dated{Every: EveryDay, Digits: 1}
	for _, zone := range []string{
		"UTC", "Europe/Berlin", "America/Santiago", "America/Havana", "America/Sao_Paulo", "Africa/Cairo", "Asia/Amman",
		"Asia/Beirut", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Pacific/Kiritimati",
	} {
		d.Zone = zone
		where, err := d.Location()
		if err != nil {
			t.Fatal(err)
		}
		days := 0
		for at := time.Date(2011, 1, 1, 10, 0, 0, 0, time.UTC); at.Year() < 2029; days++ {
			first, last, until := d.At(at, where)
			from, _, _, ok := d.Split(last, where)
			before, _, ends := d.At(from.Add(-1), where)
			here, _, same := d.At(from, where)
			end, _, _ := d.At(until.Add(-1), where)
			next, _, _ := d.At(until, where)
			if !ok || from.After(at) || here != first || !same.Equal(until) || before >= first || !ends.Equal(from) ||
				end != first || next <= last {
				t.Fatalf("%s: at %v it is the date of %d from %v until %v; before it that of %d until %v, after "+
					"it of %d",
					zone, at, first, from, until, before, ends, next)
			}
			at = until.Add(time.Minute)
		}
		if days < 18*365 {
			t.Errorf("%s has %d days", zone, days)
		}
	}
}

func TestDefinitionsThatAreDatedOrStrict(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"counter","dated":"day","digits":6,"zone":"Europe/Berlin"}`: "counter, dated day with 6 digits in " +
			"Europe/Berlin",
		`{"kind":"counter","after":"7","order":"strict","dated":"year","digits":14}`: "counter, after 7, order " +
			"strict, " +
			"dated year with 14 digits in UTC",
		`{"epoch":"2026-01-01T00:00:00Z","tick":"1ms","time_bits":41,"datacenter_bits":0,"node_bits":10,` +
			`"sequence_bits":12,` +
			`"node_lowest":false,"order":"strict","prefix":"ev"}`: "layout 41/0/22, tick 1ms, epoch " +
			"2026-01-01T00:00:00Z, order strict, prefix ev",
	} {
		var d Definition
		if err := json.Unmarshal([]byte(text), &d); err != nil || d.String() != want {
			t.Errorf("%s is %v %v, want %s", text, d, err, want)
		}
		if back, err := json.Marshal(d); err != nil || string(back) != text {
			t.Errorf("%s is written as %s %v", text, back, err)
		}
		if !d.Claimed() || d.Capacity() != 0 {
			t.Errorf("%s has %d node IDs", text, d.Capacity())
		}
	}
	var d Definition
	if err := json.Unmarshal([]byte(`{"order":"strict"}`), &d); err != nil || d.IDLayout().NodeBits != 0 ||
		d.IDLayout().Bits() != 63 {
		t.Errorf("%v %v", d, err)
	}
}

func TestDefinitionsThatDoNotGoTogether(t *testing.T) {
	for text, want := range map[string]string{
		`{"order":"loose"}`: `the order "loose"; want node or strict`,
		`{"order":"strict","nodes":4}`: `"nodes" of 4 with ` +
			`strict order; want only a layout, after, order and prefix: its IDs have no node ID`,
		`{"order":"strict","scattered":true}`: `"scattered" of true with strict order`,
		`{"order":"strict","window":"30s"}`:   `"window" of 30s with strict order`,
		`{"dated":"day","digits":6}`: "dated day with 6 " +
			"digits in UTC in a sequencer of the kind snowflake; only a counter can be dated",
		`{"kind":"counter","dated":"week","digits":6}`:   `dated "week"; want day, month or year`,
		`{"kind":"counter","dated":"day","digits":-1}`:   "dated day with -1 digits; want 1 to 10",
		`{"kind":"counter","dated":"month","digits":13}`: "dated month with 13 digits; want 1 to 12",
		`{"kind":"counter","digits":6}`: "digits or a zone in " +
			"a counter that is not dated; want dated day, month or year with them",
		`{"kind":"counter","zone":"UTC"}`: "digits or a zone in a counter that is not dated",
		`{"kind":"counter","dated":"day","digits":6,"max":"9"}`: "a counter to at most " +
			"9 that is dated; want one of the two",
		`{"kind":"counter","dated":"day","digits":6,"zone":"` + strings.Repeat("x", 65) + `"}`: "want a name such as " +
			"Europe/Berlin",
	} {
		var d Definition
		if err := json.Unmarshal([]byte(text), &d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
