// Package clocks judges a wall clock by those of others: by the majority of the living, including itself. A
// verdict decides who is served, and is never a reason why an ID is unique.
//
// A clock that is not surely right by what others wrote lately is judged by fresh readings alone, since an old one
// may be of a member that is gone: Look says when these are needed, and Hear judges by them.
package clocks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/base/floor"
)

const (
	// Skew is by how much clocks may differ.
	Skew = floor.Skew

	// slack is by how much more they may seem to differ, because a reading has an age.
	slack = time.Second
)

// Reading is what is known of another clock: how far it is ahead of this one now, at least and at most.
type Reading struct{ Least, Most time.Duration }

// Read returns the reading of a clock that showed this when mine shows that: at most age ago.
func Read(showed, mine time.Time, age time.Duration) Reading {
	const far = 100 * 365 * 24 * time.Hour // what is further is as wrong, and can't overflow
	ahead := max(-far, min(showed.Sub(mine), far))
	return Reading{Least: ahead, Most: ahead + age}
}

// Unknown is the reading of a clock of which nothing is known.
var Unknown = Reading{-2 * Skew, 2 * Skew}

// Narrow returns the reading of a clock from what was known of it before and a new one. Each is old by another time, so
// that together they narrow it down. What was known is forgotten where the new one contradicts it.
func Narrow(known Reading, passed time.Duration, r Reading) Reading {
	drift := passed / 10_000 // by which clocks run apart, at most
	both := Reading{max(known.Least-drift, r.Least), min(known.Most+drift, r.Most)}
	if both.Least > both.Most {
		return r
	}
	return both
}

// slack returns how uncertain the reading is, up to the most that is tolerated.
func (r Reading) slack() time.Duration { return min(r.Most-r.Least, slack) }

// agrees reports whether the clock surely agrees with this one.
func (r Reading) agrees() bool { return r.Least >= -Skew-r.slack() && r.Most <= Skew+r.slack() }

// Differs reports whether the clock surely does not agree with this one.
func (r Reading) Differs() bool { return r.Least > Skew || r.Most < -Skew }

// Kind is the kind of a Verdict. The zero value is Alone.
type Kind uint8

// The kinds of verdict. Most means more than half of all clocks, this one included.
const (
	Alone   Kind = iota // there is no other clock
	Agreed              // it and those that surely agree with it are most
	Ahead               // those that agree with each other, and surely not with it, are most: they are behind it
	Behind              // the same, but they are ahead of it
	Tied                // neither
	Unclear             // neither, but some readings are too old to say
)

var kinds = [...]string{"alone", "agreed", "ahead", "behind", "tied", "unclear"}

func (k Kind) String() string { return kinds[k] }

// KindOf returns the kind of this name, and Alone for a name that none has.
func KindOf(name string) Kind { return Kind(max(slices.Index(kinds[:], name), 0)) }

// Verdict is a judgement of a clock. The zero value is that of a clock without others.
type Verdict struct {
	Kind Kind

	// Offset is by how much the clock is surely ahead of the median of those that are most, if it is Ahead or Behind,
	// and else of all others.
	Offset time.Duration

	With    int // how many of the others surely agree with it
	Against int // how many surely do not; if it is Ahead or Behind, how many of these agree with each other
	Others  int // how many others there are
}

// Out reports whether most of the others are against this clock.
func (v Verdict) Out() bool { return v.Kind == Ahead || v.Kind == Behind }

// String returns text such as "2h0m ahead of 2 of 2 others".
func (v Verdict) String() string {
	switch v.Kind {
	case Ahead:
		return fmt.Sprintf("%s ahead of %d of %d others", text(v.Offset), v.Against, v.Others)
	case Behind:
		return fmt.Sprintf("%s behind %d of %d others", text(v.Offset), v.Against, v.Others)
	case Tied:
		return fmt.Sprintf("tied: %d of %d others agree with this clock, and %d do not", v.With, v.Others, v.Against)
	default:
		return v.Kind.String()
	}
}

// text returns the absolute value of a duration in text such as "2h0m" or "59m56s", rounded to seconds from a minute
// on.
func text(d time.Duration) string {
	d = d.Abs().Round(100 * time.Millisecond)
	if d < time.Minute {
		return d.String()
	}
	text := d.Round(time.Second).String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		return whole + "m"
	}
	return text
}

// Judge judges a clock by the readings of the others.
func Judge(others []Reading) Verdict {
	v := Verdict{Others: len(others)}
	if len(others) == 0 {
		return v
	}
	var against []Reading
	for _, r := range others {
		switch {
		case r.agrees():
			v.With++
		case r.Differs():
			against = append(against, r)
		}
	}
	v.Against, v.Offset = len(against), -Median(others)
	half := (len(others) + 1) / 2
	switch group := largest(against); {
	case v.With+1 > half:
		v.Kind = Agreed
	case len(group) > half:
		v.Against, v.Offset = len(group), -Median(group)
		v.Kind = Behind
		if v.Offset > 0 {
			v.Kind = Ahead
		}
	case v.With+v.Against < v.Others:
		v.Kind = Unclear
	default:
		v.Kind = Tied
	}
	return v
}

// largest returns the most clocks that agree with each other.
func largest(all []Reading) (group []Reading) {
	slices.SortFunc(all, func(a, b Reading) int { return cmp.Compare(a.Least, b.Least) })
	for i, from := 0, 0; i < len(all); i++ {
		for all[i].Least-all[from].Least > Skew+max(all[i].slack(), all[from].slack()) {
			from++
		}
		if i+1-from > len(group) {
			group = all[from : i+1]
		}
	}
	return group
}

// surely returns by how much the clock is ahead of this one, as far as that is certain.
func (r Reading) surely() time.Duration { return max(r.Least, min(0, r.Most)) }

// Median returns by how much the clock in the middle is surely ahead; 0 of none.
func Median(all []Reading) time.Duration {
	if len(all) == 0 {
		return 0
	}
	apart := make([]time.Duration, 0, len(all))
	for _, r := range all {
		apart = append(apart, r.surely())
	}
	slices.Sort(apart)
	n := len(apart)
	return (apart[(n-1)/2] + apart[n/2]) / 2
}

// Look judges by what all others wrote lately. If it asks, was still holds, until Hear has judged by answers: old
// readings let a clock in, and may leave it out, but never put it out.
func Look(was Verdict, others []Reading) (v Verdict, ask bool) {
	v = Judge(others)
	switch {
	case v.Kind == Alone, v.Kind == Agreed:
		return v, false
	case v.Out() && was.Out() && (v.Offset-was.Offset).Abs() <= Skew:
		v.Kind, v.Offset = was.Kind, was.Offset // which fresh readings told
		return v, false
	default:
		return was, true
	}
}

// Hear judges by the answers of those that were asked. Without one, or where they took too long to be clear, a clock
// that was out stays out.
func Hear(was Verdict, answers []Reading) Verdict {
	v := Judge(answers)
	if was.Out() && (v.Kind == Alone || v.Kind == Unclear) {
		return was
	}
	return v
}
