package httpapi

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/firn-id/firn"
)

// parseCount reads the query of a call for several IDs. Without a count it is 1.
func parseCount(query string) (int, error) {
	if query == "" {
		return 1, nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0, fmt.Errorf("the query %.80q can't be read; want count=N", query)
	}
	for name := range values {
		if name != "count" {
			return 0, fmt.Errorf("there is no parameter %.40q; want count", name)
		}
	}
	counts := values["count"]
	if len(counts) == 0 {
		return 1, nil
	}
	if len(counts) > 1 {
		return 0, fmt.Errorf("count is given %d times; want it once", len(counts))
	}
	n, err := strconv.ParseUint(counts[0], 10, 32)
	if err != nil || n < 1 || n > MaxCount {
		return 0, fmt.Errorf("count is %.40q; want a number from 1 to %d", counts[0], MaxCount)
	}
	return int(n), nil
}

// noParameters refuses a query where there is nothing to choose.
func noParameters(query string) error {
	if query == "" {
		return nil
	}
	return fmt.Errorf("the query %.80q has no effect here; for several IDs POST /api/v1/ids?count=N", query)
}

// parseParts reads a decimal ID and takes it apart.
func parseParts(layout firn.Layout, text string) (Parts, error) {
	id, err := firn.Parse(text)
	if err != nil {
		return Parts{}, err
	}
	return Decode(layout, id)
}
