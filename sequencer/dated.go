package sequencer

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn"
)

// Dated says that the numbers of a Counter begin with a date: with Every day and six Digits, 20261126000123 is number
// 123 of 26 November 2026. Numbers of a date begin with 1. The zero value means that they have none.
type Dated struct {
	Every  Every
	Digits int    // of the number in a date, from 1 to MaxDigits
	Zone   string // where it is that date, such as Europe/Berlin; empty: UTC
}

// Every is how often the date of a Dated counter changes. The zero value is never.
type Every uint8

// How often the date changes, and how it is written.
const (
	EveryDay   Every = iota + 1 // 20261126
	EveryMonth                  // 202611
	EveryYear                   // 2026
)

// DefaultDigits is how many digits follow the date where a definition in JSON does not say.
const DefaultDigits = 6

var everies = [...]string{"", "day", "month", "year"}

// String returns its name in JSON; empty: never.
func (e Every) String() string {
	if int(e) >= len(everies) {
		return fmt.Sprintf("every %d", uint8(e))
	}
	return everies[e]
}

// MarshalText returns its name in JSON: day, month or year, or nothing for never.
func (e Every) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what MarshalText wrote. An error is returned for other text.
func (e *Every) UnmarshalText(text []byte) error {
	for every, name := range everies {
		if name == string(text) {
			*e = Every(every)
			return nil
		}
	}
	return fmt.Errorf("dated %.40q; want day, month or year", text)
}

// MaxDigits returns how many digits a number in a date has at most, so that all of them have 18.
func (e Every) MaxDigits() int { return [...]int{0, 10, 12, 14}[e] }

// String returns text such as "dated day with 6 digits in Europe/Berlin".
func (d Dated) String() string {
	return fmt.Sprintf("dated %v with %d digits in %s", d.Every, d.Digits, d.zone())
}

func (d Dated) zone() string {
	if d.Zone == "" {
		return "UTC"
	}
	return d.Zone
}

// validate does not ask whether the zone is known, which depends on the machine.
func (d Dated) validate() error {
	switch {
	case d == (Dated{}):
		return nil
	case d.Every == 0:
		return fmt.Errorf("digits or a zone in a counter that is not dated; want dated day, month or year with them")
	case d.Every > EveryYear:
		return fmt.Errorf("there is no date that changes %v", d.Every)
	case d.Digits < 1 || d.Digits > d.Every.MaxDigits():
		return fmt.Errorf("dated %v with %d digits; want 1 to %d", d.Every, d.Digits, d.Every.MaxDigits())
	case len(d.Zone) > 64:
		return fmt.Errorf("the zone %.70q; want a name such as Europe/Berlin", d.Zone)
	}
	return nil
}

// ofMachines are the names of zones that differ from machine to machine, or are none.
var ofMachines = []string{"Local", "localtime", "posixrules", "Factory"}

var zones sync.Map // by name, those that were asked for: time.LoadLocation reads a file each time

// Location returns where it is the date. An error is returned when this machine does not know the zone.
func (d Dated) Location() (*time.Location, error) {
	if l, ok := zones.Load(d.Zone); ok {
		return l.(*time.Location), nil
	}
	l, err := time.LoadLocation(d.Zone)
	if err != nil || slices.Contains(ofMachines, d.Zone) {
		return nil, fmt.Errorf("the zone %.70q is not known; want a name of the IANA database such as Europe/Berlin",
			d.Zone)
	}
	zones.Store(d.Zone, l)
	return l, nil
}

// At returns the numbers of the date that it is at an instant, from first to last, and until when it is that date.
// Without a date that a number can have, last is 0.
func (d Dated) At(at time.Time, where *time.Location) (first, last firn.ID, until time.Time) {
	year, month, day := at.In(where).Date()
	if year < 1 || year > 9999 {
		return 1, 0, time.Time{}
	}
	date := 0
	switch d.Every {
	case EveryDay:
		date, until = (year*100+int(month))*100+day, begin(year, month, day+1, where)
	case EveryMonth:
		date, until = year*100+int(month), begin(year, month+1, 1, where)
	case EveryYear:
		date, until = year, begin(year+1, time.January, 1, where)
	}
	for ; !until.After(at); day++ { // a zone may leave out whole days
		until = begin(year, month, day+2, where)
	}
	each := d.each()
	return firn.ID(date)*each + 1, firn.ID(date)*each + each - 1, until
}

// begin returns when a day begins, which may have no midnight, or two.
func begin(year int, month time.Month, day int, where *time.Location) time.Time {
	noon := time.Date(year, month, day, 12, 0, 0, 0, where)
	at := time.Date(year, month, day, 0, 0, 0, 0, where)
	from, to := at.ZoneBounds()
	if at.Day() != noon.Day() {
		return to // time.Date has taken the clock of before
	}
	if last := from.Add(-1); !from.IsZero() && last.Day() == noon.Day() && at.Sub(last) < 12*time.Hour {
		h, m, s := last.Clock()
		return from.Add(-time.Duration(h)*time.Hour - time.Duration(m)*time.Minute - time.Duration(s+1)*time.Second)
	}
	return at
}

func (d Dated) each() firn.ID { return firn.ID(math.Pow10(d.Digits)) }

// Split takes a number apart: the instant at which its date begins, how that is written, and the number in it. False:
// it is no number of the counter.
func (d Dated) Split(id firn.ID, where *time.Location) (from time.Time, date string, number int64, ok bool) {
	layout := [...]string{"", "20060102", "200601", "2006"}[d.Every]
	digits := fmt.Sprintf("%0*d", len(layout), int64(id/d.each()))
	day, err := time.Parse(layout, digits)
	from = begin(day.Year(), day.Month(), day.Day(), where)
	number = int64(id % d.each())
	return from, day.Format([...]string{"", "2006-01-02", "2006-01", "2006"}[d.Every]), number,
		err == nil && id > 0 && number > 0
}
