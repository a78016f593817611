package main

import (
	"encoding"
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
)

// parseWord returns what reads a value by one of its words.
func parseWord[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](words string) func(text string) (T, error) {
	return func(text string) (value T, err error) {
		if P(&value).UnmarshalText([]byte(text)) != nil {
			err = fmt.Errorf("%.40q is not right; want %s", text, words)
		}
		return value, err
	}
}

// parseMax reads the greatest number of a counter.
func parseMax(text string) (firn.ID, error) {
	number, err := firn.Parse(text)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("%.40q is not right; want a number from 1 to %d", text, int64(firn.MaxID))
	}
	return number, nil
}

// parseAllocation reads for how many nodes there are node IDs.
func parseAllocation(text string) (cluster.Allocation, error) {
	if text == "all" {
		return cluster.Allocation{}, nil
	}
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil || n < 1 || percent && n > 100:
		return cluster.Allocation{}, fmt.Errorf("%.40q is not right; want all, a number from 1, or 1%% to 100%%", text)
	case percent:
		return cluster.Allocation{Kind: cluster.AllocatePercent, Percent: n}, nil
	default:
		return cluster.Allocation{Kind: cluster.AllocateCount, Count: n}, nil
	}
}
