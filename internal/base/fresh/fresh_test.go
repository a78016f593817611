package fresh

import (
	"regexp"
	"testing"
)

// Copies of a process may get the same random bits. They make a name at another nanosecond, or under another process
// ID.
func TestNamesDifferWhereTheRandomBitsAreTheSame(t *testing.T) {
	var random [32]byte
	all := map[[32]byte]bool{}
	for _, differs := range [][]int64{{5, 6, 7, 8}, {6, 6, 7, 8}, {5, 7, 7, 8}, {5, 6, 8, 8}, {5, 6, 7, 9}} {
		all[mix(random, differs...)] = true
	}
	random[31] = 1
	all[mix(random, 5, 6, 7, 8)] = true
	if len(all) != 6 {
		t.Errorf("%d of 6 are different", len(all))
	}
}

func TestTextIsALongName(t *testing.T) {
	all := map[string]bool{}
	for range 1000 {
		name := Text()
		if !regexp.MustCompile("^[A-Z2-7]{26}$").MatchString(name) {
			t.Fatalf("%q is none", name)
		}
		all[name] = true
	}
	if len(all) != 1000 {
		t.Errorf("%d of 1000 are different", len(all))
	}
}

func TestAWriterKnowsItsWritesAgain(t *testing.T) {
	var s Stamps
	if s.Sent("") {
		t.Error("a writer that has sent nothing knows a write")
	}
	first, second := s.Next(), s.Next()
	twin := s.Clone()
	third := s.Next()
	for _, stamp := range []string{first, second, third} {
		if !s.Sent(stamp) {
			t.Errorf("%s is forgotten before anything is settled", stamp)
		}
	}
	if twin.Sent(third) || !twin.Sent(second) {
		t.Error("a copy knows what was sent after it was made, or not what was sent before")
	}
	s.Settle(second)
	if s.Sent(first) || !s.Sent(second) || s.Sent(third) {
		t.Error("after the second is settled, it is not the only one")
	}
	for range mostStamps {
		s.Next()
	}
	last := s.Next()
	if len(s.sent) != mostStamps || !s.Sent(second) || !s.Sent(last) {
		t.Errorf("%d stamps are kept, want the one that was settled and the latest, %d in all", len(s.sent), mostStamps)
	}
}
