package importer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestTimes(t *testing.T) {
	for _, tt := range []struct{ text, zone, want string }{
		{"2019-01-02T03:04:05Z", "", "2019-01-02T03:04:05Z"},
		{"2019-01-02T03:04:05.123456789Z", "", "2019-01-02T03:04:05.123456789Z"},
		{"2019-01-02T03:04:05.5-03:30", "", "2019-01-02T06:34:05.5Z"},
		{"2019-01-02 03:04:05", "", "2019-01-02T03:04:05Z"},
		{"2019-01-02 03:04:05.678+01", "", "2019-01-02T02:04:05.678Z"},
		{"2019-01-02 03:04:05+0530", "", "2019-01-01T21:34:05Z"},
		{"2019-01-02 03:04:05-00:25:21", "", "2019-01-02T03:29:26Z"}, // as PostgreSQL prints old ones
		{"2019-01-02 03:04:05", "Europe/Berlin", "2019-01-02T02:04:05Z"},
		{"2019-01-02 03:04:05+05", "Europe/Berlin", "2019-01-01T22:04:05Z"},
		{"2019-07-02", "Europe/Berlin", "2019-07-01T22:00:00Z"},
		{"2019-07-02", "", "2019-07-02T00:00:00Z"},
		{"2000-02-29", "", "2000-02-29T00:00:00Z"},
		{"1969-12-31 23:59:59.5", "", "1969-12-31T23:59:59.5Z"},
		{"0001-01-01", "", "0001-01-01T00:00:00Z"},
		{"9999-12-31", "", "9999-12-31T00:00:00Z"},
		{"1546300800123", "", "2019-01-01T00:00:00.123Z"},
		{"-1500", "", "1969-12-31T23:59:58.5Z"},
		{"0", "", "1970-01-01T00:00:00Z"},
		{"2019", "", "1970-01-01T00:00:02.019Z"},
		// clocks go back: the first of two
		{"2019-10-27 02:30:00", "Europe/Berlin", "2019-10-27T00:30:00Z"},
		{"2019-11-03 01:30:00", "America/New_York", "2019-11-03T05:30:00Z"},
		{"2019-04-07 01:45:00", "Australia/Lord_Howe", "2019-04-06T14:45:00Z"},
		{"2019-10-27 03:00:00", "Europe/Berlin", "2019-10-27T02:00:00Z"},
		// they go forward
		{"2019-03-31 02:30:00", "Europe/Berlin", "2019-03-31 02:30:00\" never was in Europe/Berlin"},
		{"2019-03-10 02:00:00", "America/New_York", "never was in America/New_York"},
		{"2019-03-31 03:00:00", "Europe/Berlin", "2019-03-31T01:00:00Z"},
		{"2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00:00Z"},
		{"1893-04-01", "Europe/Berlin", "1893-03-31T23:06:32Z"},
		{"2018-11-04 00:00:00", "America/Sao_Paulo", "never was in America/Sao_Paulo"},
		{"2011-12-30", "Pacific/Apia", "never was in Pacific/Apia"},
		{"2011-12-30 12:00:00", "Pacific/Apia", "never was in Pacific/Apia"}, // a day without any hour
		{"2011-12-31 00:30:00", "Pacific/Apia", "2011-12-30T10:30:00Z"},
	} {
		c := clock{time.UTC}
		if tt.zone != "" {
			c.zone = zone(t, tt.zone)
		}
		at, err := c.read(tt.text)
		if err == nil && stamp(at) != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q in %s: %s, %v; want %s", tt.text, tt.zone, stamp(at), err, tt.want)
		}
	}
}

func TestTextsThatAreNoTimes(t *testing.T) {
	for _, text := range []string{
		"", "x", "-", "+5", "1.5", "1e3", "99999999999999999999", "NULL", "infinity", "2019-1-2", "2019-01-02T",
		"2019-01-02 ", "2019-02-29", "2019-00-01", "2019-13-01", "2019-01-00", "2019-01-32", "2019-04-31",
		"1900-02-29", "0000-01-01", "2019-01-02 03:04", "2019-01-02 24:00:00", "2019-01-02 03:60:00",
		"2019-01-02 03:04:60", "2019-01-02_03:04:05",
		"2019-01-02 03:04:05.", "2019-01-02 03:04:05 +01", "2019-01-02 03:04:05+1", "2019-01-02 03:04:05+01:",
		"2019-01-02 03:04:05+01:0", "2019-01-02 03:04:05+01:00:00:00", "2019-01-02 03:04:05 BC",
		"2019-01-02T03:04:05ZZ", "12019-01-02", "2019/01/02",
		"01/02/2019", "2019-01-02\x00", "２019-01-02", "2019-01-0\xff",
	} {
		for _, c := range []clock{{time.UTC}, {zone(t, "Europe/Berlin")}} {
			if at, err := c.read(text); err == nil || !strings.Contains(err.Error(), "want a time such as") {
				t.Errorf("%q: %v, %v", text, at, err)
			}
		}
	}
}

// Package time reads the same, in all zones.
func TestTimesAsPackageTime(t *testing.T) {
	zones := []*time.Location{time.UTC, zone(t, "Europe/Berlin"), zone(t, "Pacific/Apia"), zone(t, "America/St_Johns")}
	for range 20_000 {
		z := zones[rand.IntN(len(zones))]
		at := time.Unix(rand.Int64N(8e9)-4e9, rand.Int64N(1e9)).In(z)
		for _, format := range []string{
			time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00:00", "2006-01-02 15:04:05.000000-0700",
			"2006-01-02 15:04:05.000", "2006-01-02",
		} {
			text := at.Format(format)
			want, err := time.ParseInLocation(format, text, z)
			if err != nil {
				t.Fatal(err)
			}
			got, err := clock{z}.read(text)
			if err != nil {
				t.Fatalf("%q in %v: %v", text, z, err)
			}
			// Of two instants that the clocks show alike, package time takes any, and of a midnight that they skip too.
			if want.Format(format) == text && !got.Equal(want) &&
				(got.After(want) || got.In(z).Format(format) != text) {
				t.Fatalf("%q in %v: %v; want %v", text, z, got, want)
			}
		}
	}
}
