package counter

import (
	"math"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/sequencer"
)

// Limits say which numbers may be claimed.
type Limits struct {
	After int64 // they are greater
	Last  int64 // and not greater than that

	Until time.Time // when greater ones may be; zero: never
	soon  bool      // there are more in each tick
}

// Rule says which numbers a counter has. No number is unique since a rule or a clock says so: they choose among those
// above all that are reserved. RuleOf makes one.
type Rule struct {
	limits func(now time.Time, reserved int64) Limits
	expiry func(number int64) int64 // until when it may be given, in Unix nanoseconds; nil: for ever
	strict bool                     // blocks have as many numbers as callers wait for, see Queue
	timed  bool
}

// RuleOf returns the rule of a definition whose IDs are claimed. Numbers that are dated are those of the date, or of
// the date that it is in floor.Skew where somebody has reserved one of it. IDs in strict order that have a time are
// those of the present tick, or the next ones that nobody has reserved, up to floor.Skew ahead. An error is returned
// when this machine does not know the zone.
func RuleOf(d sequencer.Definition) (Rule, error) {
	r := Rule{
		strict: d.Order == sequencer.OrderStrict,
		timed:  d.Kind != sequencer.Counter || d.Dated != (sequencer.Dated{}),
	}
	switch {
	case d.Dated != (sequencer.Dated{}):
		where, err := d.Dated.Location()
		if err != nil {
			return r, err
		}
		r.limits = func(now time.Time, reserved int64) Limits { return datedLimits(d, where, now, reserved) }
		r.expiry = func(number int64) int64 { return expiry(d.Dated, where, firn.ID(number)) }
	case d.Kind == sequencer.Counter:
		limits := Limits{After: int64(d.After), Last: int64(d.Last())}
		r.limits = func(time.Time, int64) Limits { return limits }
	default:
		l := d.IDLayout()
		r.limits = func(now time.Time, _ int64) Limits { return timedLimits(l, d.After, now) }
	}
	return r, nil
}

// Limits says which numbers may be claimed at an instant, where this is the greatest reserved one.
func (r Rule) Limits(now time.Time, reserved int64) Limits { return r.limits(now, reserved) }

// Timed reports whether the numbers have a date or a time.
func (r Rule) Timed() bool { return r.timed }

func datedLimits(d sequencer.Definition, where *time.Location, now time.Time, reserved int64) Limits {
	first, last, until := d.Dated.At(now, where)
	if reserved > int64(last) {
		if f, l, u := d.Dated.At(now.Add(floor.Skew), where); reserved <= int64(l) {
			first, last, until = f, l, u
		}
	}
	return Limits{After: max(int64(d.After), int64(first)-1), Last: int64(last), Until: until}
}

// timedLimits counts ticks as places of a layout with a sequence and no node.
func timedLimits(l firn.Layout, after firn.ID, now time.Time) Limits {
	ticks := func(at time.Time) int64 { return int64(at.Sub(l.Epoch) / l.Tick) }
	end := int64(1)<<l.TimeBits - 1
	latest := min(ticks(now.Add(floor.Skew)), end)
	if now.Before(l.Epoch) || ticks(now) > end {
		return Limits{Last: -1}
	}
	limits := Limits{
		After: max(int64(after), ticks(now)<<l.SequenceBits-1),
		Last:  latest<<l.SequenceBits | (int64(1)<<l.SequenceBits - 1),
	}
	if latest < end {
		limits.Until, limits.soon = l.TickStart(ticks(now)+1), true
	}
	return limits
}

func expiry(d sequencer.Dated, where *time.Location, number firn.ID) int64 {
	from, _, _, ok := d.Split(number, where)
	if !ok {
		return math.MaxInt64
	}
	_, _, until := d.At(from, where)
	return until.UnixNano()
}
