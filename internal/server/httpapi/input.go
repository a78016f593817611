package httpapi

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
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
