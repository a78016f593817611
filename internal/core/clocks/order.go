package clocks

import (
	"slices"
	"sort"
	"time"
)

// soon is how far beyond now a time may be that is believed.
const soon = time.Minute

// Order returns when the entries of a log were written, by the times in them, which are of many clocks, and by their
// order, which is certain. It is pure. The times that agree with the order, and with now, are those of a longest run
// that never goes back. They are believed, each other one is as close to its own time as they let it be, and an unknown
// one, zero, stays so. So a single clock that is wrong spoils the times of its own entries alone. Now counts for
// nothing where most times are later.
func Order(told []time.Time, now time.Time) []time.Time {
	latest := now.Add(soon)
	later, known := 0, 0
	for _, at := range told {
		if !at.IsZero() {
			known++
		}
		if at.After(latest) {
			later++
		}
	}
	bounded := 2*later <= known
	believed := longestRun(told, func(at time.Time) bool { return !at.IsZero() && (!bounded || !at.After(latest)) })
	when := slices.Clone(told)
	var next time.Time // zero: none
	if bounded {
		next = now
	}
	for i, at := range slices.Backward(told) {
		n := len(believed)
		if n > 0 && believed[n-1] == i {
			next, believed = at, believed[:n-1]
			continue
		}
		if at.IsZero() {
			continue
		}
		if !next.IsZero() && at.After(next) {
			when[i] = next
		}
		if n > 0 && told[believed[n-1]].After(when[i]) {
			when[i] = told[believed[n-1]]
		}
		next = when[i]
	}
	return when
}

// longestRun returns the places of a longest run of times that never goes back; of several, one of those that end
// earliest.
func longestRun(times []time.Time, counts func(time.Time) bool) []int {
	var ends []int // of the runs of each length that end earliest
	before := make([]int, len(times))
	for i, at := range times {
		if !counts(at) {
			continue
		}
		n := sort.Search(len(ends), func(n int) bool { return times[ends[n]].After(at) })
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		}
		ends[n] = i
	}
	run := slices.Clone(ends) // the last place is right
	for n := len(run) - 1; n > 0; n-- {
		run[n-1] = before[run[n]]
	}
	return run
}
