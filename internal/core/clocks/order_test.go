package clocks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Times are believed that agree with the order of the log and with now; of the others only their own are doubted.
func TestOrder(t *testing.T) {
	at := func(minutes string) (all []time.Time) {
		for text := range strings.FieldsSeq(minutes) {
			var m int
			if _, err := fmt.Sscan(text, &m); err != nil {
				all = append(all, time.Time{})
				continue
			}
			all = append(all, time.Unix(0, 0).Add(time.Duration(m)*time.Minute))
		}
		return all
	}
	for _, tt := range []struct{ told, now, want string }{
		{"", "9", ""},
		{"-", "9", "-"},
		{"1 2 3", "9", "1 2 3"},
		{"1 2 130 3 4", "9", "1 2 3 3 4"},                 // ahead, of the last two hours
		{"1 2 130 3 4", "200", "1 2 3 3 4"},               // or long ago
		{"1 2 130", "9", "1 2 9"},                         // ahead, and the latest
		{"1 2 130 131 132", "9", "1 2 130 131 132"},       // now is wrong, it seems
		{"1 2 3 4 130 131 132", "9", "1 2 3 4 9 9 9"},     // one that is ahead has joined
		{"10 11 3 12", "20", "10 11 11 12"},               // behind
		{"10 11 3", "20", "10 11 11"},                     // behind, and the latest
		{"10 11 30 3 12", "40", "10 11 11 11 12"},         // one of each kind
		{"10 11 3 30 12", "40", "10 11 11 12 12"},         // in the other order
		{"1 3 2 4", "9", "1 2 2 4"},                       // one or the other: the first
		{"- 1 - 130 - 2 -", "9", "- 1 - 2 - 2 -"},         // unknown times stay so
		{"2 2 2", "9", "2 2 2"},                           // at the same time
		{"130 1 2", "9", "1 1 2"},                         // the first is wrong
		{"1 101 2 102 3 103 4 5", "6", "1 2 2 3 3 4 4 5"}, // turn by turn
		{"1 2 3 10", "9", "1 2 3 10"},                     // a little ahead of now
		{"100 101 102", "1", "100 101 102"},               // now counts for nothing
		{"5 6 7 1 2 3 8", "9", "1 1 1 1 2 3 8"},           // as many: the earlier
	} {
		if have := fmt.Sprint(Order(at(tt.told), at(tt.now)[0])); have != fmt.Sprint(at(tt.want)) {
			t.Errorf("%q at %s: have %s, want %s", tt.told, tt.now, have, at(tt.want))
		}
	}
}

// Whatever the times, the order of the log is kept, right ones are believed while few are wrong, and a time that agrees
// with its neighbours stays as it is.
func TestOrderOfMany(t *testing.T) {
	start := time.Unix(0, 0)
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		var told []time.Time
		wrong := map[int]bool{}
		for i := range 1 + r.IntN(40) {
			at := start.Add(time.Duration(i) * time.Minute)
			if i >= 6 && r.IntN(8) == 0 && len(wrong) < 2 {
				wrong[i] = true
				at = at.Add(time.Duration(r.IntN(7200)-3600) * time.Second)
			}
			told = append(told, at)
		}
		now := start.Add(time.Duration(len(told)) * time.Minute)
		for i, at := range Order(told, now) {
			if i > 0 && at.Before(Order(told, now)[i-1]) {
				t.Fatalf("seed %d: %d goes back", seed, i)
			}
			if right := start.Add(time.Duration(i) * time.Minute); at.Sub(right).Abs() > 3*time.Minute {
				t.Fatalf("seed %d: %d of %v is at %v, want about %v", seed, i, told, at, right)
			}
		}
	}
}
