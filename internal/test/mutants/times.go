package main

const (
	byTime   = "^Test(LogByTime|FollowSince|CutLogByTime|ValueByTime)$"
	instants = "^Test(ParseInstant|Following)$"
	looked   = "^TestLook"
)

// times are faults by which a search of the log by time finds something else.
var times = []mutant{
	{
		"an entry of the very time is later", "internal/service/httpapi/history.go",
		"if !when.After(at) {", "if when.Before(at) {",
		"./internal/service/httpapi", byTime,
	},
	{
		"the first entry that is not later counts", "internal/service/httpapi/history.go",
		"range slices.Backward(t.at)", "range slices.All(t.at)",
		"./internal/service/httpapi", byTime,
	},
	{
		"an entry of an unknown time is earlier than any", "internal/service/httpapi/history.go",
		"if when.IsZero() {", "if false {",
		"./internal/service/httpapi", byTime,
	},
	{
		"an entry of the very time is before it", "internal/service/httpapi/history.go",
		"if !when.Before(at) {", "if when.After(at) {",
		"./internal/service/httpapi", byTime,
	},
	{
		"all entries are found where all are later", "internal/service/httpapi/log.go",
		"(err != nil || int64(t.entries[n-1].Position) > last)",
		"(err == nil && int64(t.entries[n-1].Position) > last)",
		"./internal/service/httpapi", byTime,
	},
	{
		"entries that come are left out by their time", "internal/service/httpapi/log.go",
		"			wanted.since = time.Time{} // what follows is wanted, whatever its time\n", "",
		"./internal/service/httpapi", byTime,
	},
	{
		"a log that was cut is whole", "internal/service/httpapi/log.go",
		"missing = len(entries) == len(batch.Entries)", "missing = false",
		"./internal/service/httpapi", byTime,
	},
	{
		"a log that was cut always lacks something", "internal/service/httpapi/log.go",
		"missing = len(entries) == len(batch.Entries)", "missing = true",
		"./internal/service/httpapi", byTime,
	},
	{
		"the value at a time is the latest", "internal/service/httpapi/input.go",
		"		return p, nil\n	}\n	n, err", "		return point{position: latest}, nil\n	}\n	n, err",
		"./internal/service/httpapi", byTime,
	},
	{
		"a time of day is one that will come", "internal/ops/setting/instant.go",
		"today.After(now)", "today.Before(now)",
		"./internal/ops/setting", instants,
	},
	{
		"a time of day that has not passed is meant", "internal/ops/setting/instant.go",
		"				today = today.AddDate(0, 0, -1)\n", "",
		"./internal/ops/setting", instants,
	},
	{
		"a time without an offset is UTC", "internal/ops/setting/instant.go",
		"time.ParseInLocation(format, text, time.Local)", "time.ParseInLocation(format, text, time.UTC)",
		"./internal/ops/setting", instants,
	},
	{
		"the end of a span is before its beginning", "internal/ops/setting/instant.go",
		"at = at.AddDate(0, 0, 1)", "at = at.AddDate(0, 0, 0)",
		"./internal/ops/setting", instants,
	},
	{
		"the end of a span is days after its beginning", "cmd/firn/cluster_log.go",
		"		o.until = o.until.Following(o.since)\n", "",
		"./cmd/firn", looked,
	},
}
