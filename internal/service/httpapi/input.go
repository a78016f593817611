package httpapi

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/service/idtext"
)

// query holds the parameters of a call.
type query map[string]string

// parameters reads a query that may have these parameters, each once.
func parameters(text, example string, names ...string) (query, error) {
	if text == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, fmt.Errorf("can't read the query %.80q; want %s", text, example)
	}
	q := query{}
	for name, list := range values {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("unknown parameter %.40q; want %s", name, strings.Join(names, ", "))
		}
		if len(list) > 1 {
			return nil, fmt.Errorf("%s is given %d times; want it once", name, len(list))
		}
		q[name] = list[0]
	}
	return q, nil
}

// number reads a whole number; absent is its value when it is not given.
func (q query) number(name string, least, most, absent int64) (int64, error) {
	text, ok := q[name]
	if !ok {
		return absent, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	switch {
	case err == nil && least <= int64(n) && int64(n) <= most:
		return int64(n), nil
	case most == math.MaxInt64:
		return 0, fmt.Errorf("%s is %.40q; want a whole number from %d", name, text, least)
	default:
		return 0, fmt.Errorf("%s is %.40q; want a number from %d to %d", name, text, least, most)
	}
}

// form reads a form of IDs; nil when it is not given.
func (q query) form(name string) (*idtext.Form, error) {
	text, ok := q[name]
	if !ok {
		return nil, nil
	}
	f, err := idtext.ParseForm(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &f, nil
}

// instant reads a time, in RFC 3339 or in Unix milliseconds; zero when it is not given.
func (q query) instant(name string) (time.Time, error) {
	text, ok := q[name]
	if !ok {
		return time.Time{}, nil
	}
	return instant(name, text)
}

// instant reads a time, in RFC 3339 or in Unix milliseconds.
func instant(name, text string) (time.Time, error) {
	if ms, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.UnixMilli(int64(ms)), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{},
			fmt.Errorf("%s is %.40q; want a time such as 2026-11-22T03:12:00Z, or Unix milliseconds", name, text)
	}
	return at, nil
}

// point is a point of the log: a position, or a time.
type point struct {
	position int64     // latest: the last one
	at       time.Time // zero: the position counts
}

// point reads a point of the log. A whole number is a position.
func (q query) point(name string) (p point, err error) {
	text, ok := q[name]
	if !ok {
		return point{position: latest}, nil
	}
	if p.at, err = time.Parse(time.RFC3339, text); err == nil {
		return p, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return p, fmt.Errorf("%s is %.40q; want a whole number from 0, a position, or a time such as "+
			"2026-11-22T03:12:00Z", name, text)
	}
	return point{position: int64(n)}, nil
}
