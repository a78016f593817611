package setting

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What a user writes is meant in local time, and a time of day is one that has passed.
func TestParseInstant(t *testing.T) {
	local := time.Local
	time.Local = time.FixedZone("east", 2*60*60)
	defer func() { time.Local = local }()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 22, 3, 15, 0, 0, time.Local)))
		for text, want := range map[string]string{
			"03:12":                         "2026-11-22T01:12:00Z",
			"3:12":                          "2026-11-22T01:12:00Z",
			"03:15":                         "2026-11-22T01:15:00Z", // now
			"03:15:01":                      "2026-11-21T01:15:01Z", // yesterday
			"03:16":                         "2026-11-21T01:16:00Z",
			"00:00":                         "2026-11-21T22:00:00Z",
			"03:12:07.123":                  "2026-11-22T01:12:07.123Z",
			"2026-11-20 03:12":              "2026-11-20T01:12:00Z",
			"2026-11-20 03:12:07.123":       "2026-11-20T01:12:07.123Z", // as firn cluster log prints it
			"2026-11-22T03:12:00Z":          "2026-11-22T03:12:00Z",
			"2026-11-22T03:12:00.123-05:00": "2026-11-22T08:12:00.123Z",
			"15m":                           "2026-11-22T01:00:00Z",
			"1h30m":                         "2026-11-21T23:45:00Z",
			"0s":                            "2026-11-22T01:15:00Z",
		} {
			if at, err := ParseInstant(text); err != nil || at.UTC().Format(time.RFC3339Nano) != want {
				t.Errorf("%q is %v, %v; want %s", text, at.UTC(), err, want)
			}
		}
		for _, text := range []string{
			"", "now", "24:00", "03:60", "-15m", "15", "2026-11-22",
			"2026-13-01T00:00:00Z", "03:12 ",
		} {
			if at, err := ParseInstant(text); err == nil || !strings.Contains(err.Error(), "want one such as 03:12") {
				t.Errorf("%q is %v, %v; want an error that says what would be right", text, at, err)
			}
		}
	})
}

// A time of day that ends a span is the first after its beginning.
func TestFollowing(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 22, 10, 0, 0, 0, time.Local)))
		at := func(text string) Instant {
			i, err := ParseInstant(text)
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		for _, tt := range []struct{ since, until, want string }{
			{"09:00", "09:30", "2026-11-22 09:30:00"},
			{"09:00", "08:30", "2026-11-23 08:30:00"},
			{"23:50", "00:10", "2026-11-22 00:10:00"},
			{"09:59", "10:05", "2026-11-22 10:05:00"}, // it has not passed yet
			{"2026-11-20 03:00", "03:20", "2026-11-20 03:20:00"},
			{"2026-11-20 03:00", "03:00", "2026-11-20 03:00:00"},
			{"2026-11-20 03:00", "02:00", "2026-11-21 02:00:00"},
			{"2026-11-20T23:30:00-05:00", "05:00", "2026-11-21 05:00:00"}, // which begins on the 21st here
			{"1h", "2h", "2026-11-22 08:00:00"},                           // no time of day
		} {
			if got := at(tt.until).Following(at(tt.since)).Format(time.DateTime); got != tt.want {
				t.Errorf("%s following %s is %s, want %s", tt.until, tt.since, got, tt.want)
			}
		}
	})
}
