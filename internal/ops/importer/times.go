package importer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// clock reads times as databases print them.
type clock struct {
	zone *time.Location // of times that have none
}

var (
	errNoTime = errors.New("want a time such as 2019-01-02T03:04:05Z, 2019-01-02 03:04:05.678+01, 2019-01-02, or " +
		"milliseconds since 1970")
	errSkipped = errors.New("the clocks went forward; want another --zone, or times that name theirs")
)

// read reads a time: RFC 3339, the same with a space, or without a zone, or with one in hours; a date; or a whole
// number of milliseconds since 1970.
func (c clock) read(cell string) (time.Time, error) {
	t, err := c.parse(cell)
	switch {
	case len(cell) == 0:
		err = fmt.Errorf("there is no time; %w", errNoTime)
	case errors.Is(err, errSkipped):
		err = fmt.Errorf("%.40q never was in %v: %w", cell, c.zone, err)
	case err != nil:
		err = fmt.Errorf("%.40q is not a time; %w", cell, err)
	}
	return t, err
}

// parse is read with shorter errors: errNoTime and errSkipped.
func (c clock) parse(cell string) (time.Time, error) {
	if len(cell) < len(time.DateOnly) || cell[4] != '-' {
		n, err := strconv.ParseInt(cell, 10, 64)
		if err != nil || cell[0] == '+' {
			return time.Time{}, errNoTime
		}
		return time.UnixMilli(n), nil
	}
	form, hasZone := formOf(cell)
	t, err := time.Parse(form, cell)
	if err != nil || t.Year() < 1 {
		return t, errNoTime
	}
	if hasZone {
		return t, nil
	}
	local, err := c.local(t.Unix(), int64(t.Nanosecond()))
	if form == time.DateOnly && errors.Is(err, errSkipped) { // midnight was; the day begins later
		_, before := t.AddDate(0, 0, -1).In(c.zone).Zone()
		begins, _ := t.Add(-time.Duration(before) * time.Second).In(c.zone).ZoneBounds()
		if begins.Format(form) == cell {
			return begins, nil
		}
	}
	return local, err
}

// formOf returns a layout of package time that a text may have, and whether that has a zone.
func formOf(text string) (form string, hasZone bool) {
	if len(text) < len(time.DateTime) {
		return time.DateOnly, false
	}
	form, rest := time.DateTime, text[len(time.DateTime):] // perhaps with a fraction, which needs no place in a layout
	if text[len(time.DateOnly)] == 'T' {
		form = "2006-01-02T15:04:05"
	}
	zone := strings.IndexAny(rest, "Z+-")
	if zone < 0 {
		return form, false
	}
	for _, z := range []string{"Z07:00:00", "Z07:00", "Z0700"} { // those of Z, too
		if len(z) == len(rest)-zone {
			return form + z, true
		}
	}
	return form + "Z07", true
}

// local returns the time at which clocks of the zone show so many seconds since 1970, the first one if there are two.
// It returns errSkipped if there is none.
func (c clock) local(seconds, nanos int64) (time.Time, error) {
	if c.zone == time.UTC {
		return time.Unix(seconds, nanos), nil
	}
	for _, near := range []int64{seconds - 86400, seconds + 86400} { // before a change of the offset, and after
		_, offset := time.Unix(near, 0).In(c.zone).Zone()
		t := time.Unix(seconds-int64(offset), nanos)
		if _, is := t.In(c.zone).Zone(); is == offset {
			return t, nil
		}
	}
	return time.Time{}, errSkipped
}
