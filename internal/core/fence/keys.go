package fence

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	liveKeys     = "live/"
	reportedKeys = "last_reported_time/"
)

func liveKey(prefix string, node int64) string {
	return prefix + liveKeys + strconv.FormatInt(node, 10)
}

func reportedKey(prefix string, node int64) string {
	return prefix + reportedKeys + strconv.FormatInt(node, 10)
}

func liveValue(operation string, since int64, owner string) []byte {
	return fmt.Appendf(nil, "%s %d %s", operation, since, owner)
}

// readLive returns what a live key shows people, or zero values when it has another format.
func readLive(value []byte) (since time.Time, owner string) {
	_, rest, _ := strings.Cut(string(value), " ")
	at, owner, _ := strings.Cut(rest, " ")
	millis, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return time.Time{}, ""
	}
	return time.UnixMilli(millis), owner
}

func reportedValue(horizon int64, operation, stamp string) []byte {
	return fmt.Appendf(nil, "%d %s %s", horizon, operation, stamp)
}

// put adds to a view what a key holds, as the owner sees it that has this operation and has sent what sent says. An
// error is returned when it can't read the horizon.
func (v *View) put(prefix string, kv store.KV, operation string, sent func(stamp string) bool) (err error) {
	name := strings.TrimPrefix(kv.Key, prefix)
	switch {
	case strings.HasPrefix(name, liveKeys):
		v.Live = kv.Version
		v.LiveBy, _, _ = strings.Cut(string(kv.Value), " ")
		v.LiveMine = v.LiveBy == operation
	case strings.HasPrefix(name, reportedKeys):
		horizon, rest, _ := strings.Cut(string(kv.Value), " ")
		by, stamp, _ := strings.Cut(rest, " ")
		own := by == operation && sent != nil
		v.Reported, v.ReportedBy, v.ReportedStamp = kv.Version, by, stamp
		v.ReportedMine = own && sent(stamp)
		v.ReportedCopy = own && !v.ReportedMine
		if v.Horizon, err = strconv.ParseInt(horizon, 10, 64); err != nil || v.Horizon < 0 {
			return fmt.Errorf("key %q holds %.60q; want a horizon in Unix milliseconds, an operation ID and a stamp",
				kv.Key, kv.Value)
		}
	}
	return nil
}

// nodeOf returns the node ID in the name of a key, and false when the key is not a fence's.
func nodeOf(prefix, key string) (node int64, ok bool) {
	name := strings.TrimPrefix(key, prefix)
	_, number, _ := strings.Cut(name, "/")
	node, err := strconv.ParseInt(number, 10, 64)
	return node, err == nil && node >= 0 && (key == liveKey(prefix, node) || key == reportedKey(prefix, node))
}
