package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/sequencer"
)

// parseKind reads what the IDs are.
func parseKind(text string) (kind cluster.Kind, err error) {
	if kind.UnmarshalText([]byte(text)) != nil {
		err = fmt.Errorf("%.40q is not right; want snowflake or counter", text)
	}
	return kind, err
}

// parseIDOrder reads what the order of the IDs says.
func parseIDOrder(text string) (order cluster.Order, err error) {
	if order.UnmarshalText([]byte(text)) != nil {
		err = fmt.Errorf("%.40q is not right; want node or strict", text)
	}
	return order, err
}

// parseEvery reads how often a date changes.
func parseEvery(text string) (every sequencer.Every, err error) {
	if text != "" && (every.UnmarshalText([]byte(text)) != nil || every == 0) {
		err = fmt.Errorf("%.40q is not right; want day, month or year", text)
	}
	return every, err
}

// parseMax reads the greatest number of a counter.
func parseMax(text string) (firn.ID, error) {
	number, err := firn.Parse(text)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("%.40q is not right; want a number from 1 to %d", text, int64(firn.MaxID))
	}
	return number, nil
}

// parseAttach reads what has a node attach.
func parseAttach(text string) (policy cluster.AttachPolicy, err error) {
	if policy.UnmarshalText([]byte(text)) != nil {
		err = fmt.Errorf("%.40q is not right; want on-demand or explicit", text)
	}
	return policy, err
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
