package clocks

import (
	"testing"
	"time"
)

const s = time.Second

// at are fresh readings of clocks that are so far ahead.
func at(ahead ...time.Duration) (all []Reading) {
	for _, d := range ahead {
		all = append(all, Reading{d, d})
	}
	return all
}

func TestJudge(t *testing.T) {
	hour := time.Hour
	for _, c := range []struct {
		others []Reading
		want   Kind
		text   string
	}{
		{nil, Alone, "alone"},
		{at(0), Agreed, "agreed"},
		{at(10 * s), Agreed, "agreed"},
		{at(-10 * s), Agreed, "agreed"},
		{at(10*s + 1), Tied, "tied: 0 of 1 others agree with this clock, and 1 do not"},
		{at(-2*hour, -2*hour), Ahead, "2h0m ahead of 2 of 2 others"},
		{at(hour-4*s, hour-4*s), Behind, "59m56s behind 2 of 2 others"},
		{at(11*s, 12*s), Behind, "11.5s behind 2 of 2 others"},
		// they differ from each other
		{at(11*s, 22*s), Tied, "tied: 0 of 2 others agree with this clock, and 2 do not"},
		{at(hour, -hour), Tied, "tied: 0 of 2 others agree with this clock, and 2 do not"},
		{at(0, hour), Agreed, "agreed"},
		{at(0, hour, hour), Tied, "tied: 1 of 3 others agree with this clock, and 2 do not"}, // two against two
		{at(hour, hour, hour), Behind, "1h0m behind 3 of 3 others"},
		{at(0, -hour, -hour, -hour), Ahead, "1h0m ahead of 3 of 4 others"},
		{at(-hour, 0, hour, hour, hour-9*s, hour), Behind, "1h0m behind 4 of 6 others"},
		{at(9*s, -9*s), Agreed, "agreed"}, // who differ from each other
		// Readings with an age: the clock showed this up to so long ago.
		{[]Reading{Read(time.Unix(0, 0), time.Unix(10, 0), 11*s)}, Agreed, "agreed"},
		{[]Reading{Read(time.Unix(10, 0), time.Unix(10, 0), 11*s)}, Agreed, "agreed"},
		{[]Reading{Read(time.Unix(13, 0), time.Unix(10, 0), 11*s)}, Unclear, "unclear"},
		{
			[]Reading{Read(time.Unix(21, 0), time.Unix(10, 0), 11*s)},
			Tied,
			"tied: 0 of 1 others agree with this clock, and 1 do not",
		},
		{
			[]Reading{Read(time.Unix(3600, 0), time.Unix(0, 0), 11*s), Read(time.Unix(3605, 0), time.Unix(0, 0), 11*s)},
			Behind, "1h0m3s behind 2 of 2 others",
		},
		{
			[]Reading{
				Read(time.Unix(1<<40, 0), time.Unix(0, 0), 11*s),
				Read(time.Unix(1<<40, 0), time.Unix(0, 0), 11*s),
			},
			Behind, "876000h0m behind 2 of 2 others",
		},
	} {
		v := Judge(c.others)
		if v.Kind != c.want || v.String() != c.text {
			t.Errorf("%v: %v, %q; want %v, %q", c.others, v.Kind, v, c.want, c.text)
		}
	}
}

// A clock is read every ten seconds, each time at another age.
func TestNarrow(t *testing.T) {
	const (
		ahead = 3300 * time.Millisecond
		every = 10 * time.Second
	)
	known := Unknown
	for look := range 30 {
		age := time.Duration(look) * 3700 * time.Millisecond % every
		known = Narrow(known, every, Reading{ahead - age, ahead - age + every + time.Second})
	}
	if off := (Median([]Reading{known}) - ahead).Abs(); off > 500*time.Millisecond {
		t.Errorf("after thirty looks it is known to be within %v to %v; want %v", known.Least, known.Most, ahead)
	}
	moved := Reading{-5 * time.Second, -4 * time.Second}
	if now := Narrow(known, every, moved); now != moved {
		t.Errorf("the clock has moved, and is known as %v; want %v", now, moved)
	}
}
