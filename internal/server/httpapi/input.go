package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/server"
)

// parseCount reads the query of a call for several IDs. Without a count it is 1.
func parseCount(query string) (int, error) {
	given, err := parameters(query, "count=N", "count")
	if err != nil {
		return 0, err
	}
	text, ok := given["count"]
	if !ok {
		return 1, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < 1 || n > server.MaxCount {
		return 0, fmt.Errorf("count is %.40q; want a number from 1 to %d", text, server.MaxCount)
	}
	return int(n), nil
}

// parameters reads a query that may have these parameters, each once.
func parameters(query, example string, names ...string) (map[string]string, error) {
	if query == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("the query %.80q can't be read; want %s", query, example)
	}
	given := make(map[string]string, len(values))
	for name, list := range values {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("there is no parameter %.40q; want %s", name, strings.Join(names, ", "))
		}
		if len(list) > 1 {
			return nil, fmt.Errorf("%s is given %d times; want it once", name, len(list))
		}
		given[name] = list[0]
	}
	return given, nil
}

// position reads a position of the log, and returns false when there is none.
func position(given map[string]string, name string) (int64, bool, error) {
	text, ok := given[name]
	if !ok {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, false, fmt.Errorf("%s is %.40q; want a position of the log: a whole number from 0", name, text)
	}
	return int64(n), true, nil
}

// parseLog reads the query of a call for the log.
func parseLog(query string) (from int64, follow bool, err error) {
	given, err := parameters(query, "from=N, follow=1 or both", "from", "follow")
	if err != nil {
		return 0, false, err
	}
	if text, ok := given["follow"]; ok {
		if text != "0" && text != "1" {
			return 0, false, fmt.Errorf("follow is %.40q; want 0 or 1", text)
		}
		follow = text == "1"
	}
	from, _, err = position(given, "from")
	return from, follow, err
}

// parseNodes reads the query of a call for node IDs.
func parseNodes(query string) (from int64, limit int, err error) {
	given, err := parameters(query, "from=N, limit=N or both", "from", "limit")
	if err != nil {
		return 0, 0, err
	}
	limit = server.MaxNodes
	if text, ok := given["limit"]; ok {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n < 1 || n > server.MaxNodes {
			return 0, 0, fmt.Errorf("limit is %.40q; want a number from 1 to %d", text, server.MaxNodes)
		}
		limit = int(n)
	}
	if text, ok := given["from"]; ok {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return 0, 0, fmt.Errorf("from is %.40q; want a node ID to begin at: a whole number from 0", text)
		}
		from = int64(n)
	}
	return from, limit, nil
}

// noParameters refuses a query where there is nothing to choose, and says what to do instead.
func noParameters(query, instead string) error {
	if query == "" {
		return nil
	}
	return fmt.Errorf("the query %.80q has no effect here; %s", query, instead)
}
