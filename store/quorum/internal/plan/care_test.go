package plan

import (
	"strings"
	"testing"
)

// situation describes one in a line: each word is a machine, and says what it is. In capital letters it answers that it
// has its log; else it is silent, unless an answer follows. The first voter leads.
//
//	A b=empty C:learner D:ready e:added
func situation(record, own, machines string) Situation {
	s := Situation{
		Cluster: "x", Record: strings.Fields(record), Own: strings.Fields(own),
		Said: map[string]Machine{}, CaughtUp: map[uint64]bool{},
	}
	said := map[string]Disk{
		"empty": {}, "lost": {Lost, "x"}, "removed": {Removed, "x"}, "promised": {Promised, "x"},
		"promised-other": {Promised, "y"},
		"formed":         {Formed, "x"}, "started-other": {Started, "y"},
	}
	for i, word := range strings.Fields(machines) {
		name, answer, _ := strings.Cut(word, "=")
		name, role, _ := strings.Cut(name, ":")
		address := strings.ToLower(name)
		if role != "none" {
			id := uint64(i + 1)
			s.Members = append(s.Members,
				Member{ID: id, Address: address, Learner: role != "", Started: role != "added", Leader: i == 0})
			s.CaughtUp[id] = role == "ready"
		}
		m := Machine{Address: address, Disk: Disk{Started, "x"}, List: s.Own}
		if answer != "" {
			m.Disk = said[answer]
		}
		if answer != "" || name != address {
			s.Said[address] = m
		}
	}
	return s
}

func TestCare(t *testing.T) {
	const abc = "a b c"
	for _, test := range []struct {
		record, own, machines string
		want                  string
	}{
		{"", abc, "A B C", "set record a b c"},
		{"", abc, "A", "set record a"},
		{abc, abc, "A B C", "nothing"},
		{abc, abc, "A B c", "nothing"},
		{abc, abc, "A b c", "nothing"},

		{abc, abc, "A B c=empty", "remove c"},
		{abc, abc, "A B c=lost", "remove c"},
		{abc, abc, "A B c=promised-other", "remove c"},
		{abc, abc, "A B c=promised", "nothing"},
		{abc, abc, "A B c=formed", "nothing"},
		{abc, abc, "A B c=started-other", "nothing"},
		{abc, abc, "A b c=empty", "nothing"},
		{abc, abc, "A b=started-other c=empty", "nothing"},
		{abc, abc, "A B", "add c"},
		{abc, abc, "A B c:added=empty", "nothing"},
		{abc, abc, "A B C:learner", "nothing"},
		{abc, abc, "A B C:ready", "promote c"},
		{abc, abc, "A B c:ready", "nothing"},
		{abc, abc, "A B C:learner=lost", "remove c"},

		{"a", abc, "A b:none=empty c:none=empty", "set record a b c"},
		{"a", abc, "A b:none=empty c:none=promised-other", "set record a b c"},
		{"a", abc, "A b:none=empty c:none=removed", "nothing"},
		{"a", abc, "A b:none=empty", "nothing"},
		{"a", "a b d", "A", "nothing"},
		{"a b d", abc, "A B D c:none=empty", "nothing"},
		{abc, abc, "A", "add b"},
		{abc, abc, "A b:added", "add c"},
		{abc, abc, "A B:ready C:learner", "nothing"},
		{abc, abc, "A B:ready C:ready", "promote b"},
		{abc, abc, "A B C:ready", "promote c"},
		{"a b c d e", abc, "A B C D:ready E:learner", "nothing"},
		{"a b c d e", abc, "A B C D:ready E:ready", "promote d"},

		{"a b d", abc, "A B c", "add d"},
		{"a b d", abc, "A B C D:learner", "nothing"},
		{"a b d", abc, "A B C D:ready", "remove c"},
		{"a b d", abc, "A b C D:ready", "promote d"},
		{"a b d", abc, "A b C D", "remove c"},
		{"a b d", abc, "A B D:ready", "promote d"},
		{"b c d", abc, "A B C D:ready", "hand over b"},
		{"a b c", abc, "A B C D:learner", "remove d"},
		{"b", "b", "A B:ready", "promote b"},
		{"b", "b", "A B", "hand over b"},

		{"a", abc, "A B C", "remove b"},
		{"a", abc, "A B c", "remove c"},
		{"b", abc, "A B C", "remove c"},
		{"b", abc, "A C B:learner", "nothing"},
	} {
		s := situation(test.record, test.own, test.machines)
		a := Care(s)
		var got strings.Builder
		got.WriteString(a.Kind.String())
		for _, m := range s.Members {
			if m.ID == a.ID {
				got.WriteString(" " + m.Address)
			}
		}
		if a.Kind == Add {
			got.WriteString(" " + a.Add)
		}
		if a.Kind == SetRecord {
			got.WriteString(" " + strings.Join(a.Record, " "))
		}
		if got.String() != test.want || a.Kind != Nothing && a.Why == "" {
			t.Errorf("record %s, list %s, machines %s: %s (%s), want %s", test.record, test.own, test.machines,
				got.String(), a.Why, test.want)
		}
	}
}

func TestCareSaysThatThereIsNoMajority(t *testing.T) {
	if a := Care(situation("a b c", "a b c", "A b c")); a.Why != "1 of 3 voters answer: no majority" {
		t.Errorf("%+v", a)
	}
}
