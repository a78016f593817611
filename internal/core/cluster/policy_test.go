package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// shared is a cluster with sequencers and a policy over them, to which the tests join members.
func shared(t testing.TB, shares ...Share) Value {
	t.Helper()
	var v Value
	for _, s := range shares {
		v = must(t, v, CreateSequencer{Sequencer: s.Sequencer, Definition: small(1024, Allocation{})})
	}
	return must(t, v, SetPolicy{shares})
}

// must applies commands that change something.
func must(t testing.TB, v Value, commands ...Command) Value {
	t.Helper()
	for _, c := range commands {
		next, out := Apply(v, Entry{Position: v.position + 1, Command: c})
		if out.Result != Applied {
			t.Fatalf("%s, then %s %v: %v", v, c.Name(), c, out)
		}
		v = next
	}
	return v
}

func joined(t testing.TB, v Value, id string) Value {
	t.Helper()
	if v.Size() == 0 {
		return must(t, v, PrepareJoin{id})
	}
	return must(t, v, PrepareJoin{id}, NotifyWatchers{id}, AcceptJoin{id})
}

func servesOf(v Value) map[string]string { return maps.Collect(v.assigned.all()) }

// moves returns how many of the members of both serve another sequencer.
func moves(before, after map[string]string) int {
	n := 0
	for member, name := range before {
		if now, ok := after[member]; ok && now != name {
			n++
		}
	}
	return n
}

// everyWay yields every way in which members can serve sequencers from which they are not drained.
func everyWay(v Value, members []string, yield func(map[string]string)) {
	way := map[string]string{}
	var choose func(int)
	choose = func(i int) {
		if i == len(members) {
			yield(way)
			return
		}
		for _, s := range v.Policy() {
			if !v.isDrained(members[i], s.Sequencer) {
				way[members[i]] = s.Sequencer
				choose(i + 1)
			}
		}
	}
	choose(0)
}

// apportioned reports whether so many members each are what the largest remainders give, whichever of equal ones.
func apportioned(v Value, counts map[string]int, members int) bool {
	var total, of int64
	for _, s := range v.Policy() {
		if total += s.Percent; s.Percent == 0 {
			of = 100
		}
	}
	if of == 0 {
		of = total
	}
	least, most := of, int64(-1) // the least remainder that was rounded up, and the greatest that was not
	for _, s := range v.Policy() {
		percent := s.Percent
		if percent == 0 {
			percent = 100 - total
		}
		whole, remainder := int64(members)*percent/of, int64(members)*percent%of
		switch int64(counts[s.Sequencer]) - whole {
		case 0:
			most = max(most, remainder)
		case 1:
			least = min(least, remainder)
		default:
			return false
		}
	}
	return least >= most
}

// Members lack a node ID when none is free that they accept, and not when the allocation or the policy has them wait.
func TestLacking(t *testing.T) {
	v := must(t, Value{}, CreateSequencer{Sequencer: "x", Definition: small(2, Allocation{})},
		CreateSequencer{Sequencer: "y", Definition: small(4, Allocation{})})
	for _, id := range []string{"a", "b", "c", "d"} {
		v = joined(t, v, id)
		v = must(t, v, Attach{Sequencer: "x", Member: id})
	}
	count := func(n int64) Allocation { return Allocation{Kind: AllocateCount, Count: n} }
	for _, tt := range []struct {
		commands []Command
		want     string
	}{
		{nil, "[c d]"},
		{[]Command{Allocate{"x", 0, count(3)}}, "[c]"},
		{[]Command{Allocate{"x", 0, count(2)}}, "[]"},
		{[]Command{Allocate{"x", 0, count(1)}}, "[]"},
		{[]Command{SetPolicy{[]Share{{"x", 50}, {"y", 50}}}}, "[]"},
		{[]Command{SetPolicy{[]Share{{"x", 75}, {"y", 0}}}}, "[c]"},
		{[]Command{Drain{"x", "a"}}, "[d]"},
		{[]Command{
			Detach{"x", "a"},
			Detach{"x", "b"},
			Detach{"x", "c"},
			Detach{"x", "d"},
			Attach{"x", "a", &Range{From: 1, To: 1}},
			Attach{"x", "b", &Range{From: 1, To: 1}},
		}, "[b]"},
	} {
		if got := fmt.Sprint(must(t, v, tt.commands...).Lacking("x")); got != tt.want {
			t.Errorf("after %v %s lack a node ID of x, want %s", tt.commands, got, tt.want)
		}
	}
	if got := v.Lacking("z"); got != nil {
		t.Errorf("%v lack a node ID of a sequencer that does not exist", got)
	}
}

// Members come and go, are drained and come back, and the policy changes. Without drained members the shares are
// always those of the largest remainders, and no assignment with such shares has fewer members change. With drained
// members none comes nearer to what is due.
func TestAssignmentAgainstEveryOther(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	policies := [][]Share{
		{{"a", 75}, {"b", 0}},
		{{"a", 50}, {"b", 50}},
		{{"a", 33}, {"b", 33}, {"c", 34}},
		{{"a", 10}, {"b", 20}, {"c", 0}},
		{{"a", 1}, {"b", 1}, {"c", 98}},
	}
	moved, drained := 0, 0
	for round := range 60 {
		v := shared(t, policies[round%len(policies)]...)
		for step := range 40 {
			before := servesOf(v)
			switch members := v.Members(); {
			case len(members) < 2 || len(members) < 7 && random.IntN(2) == 0:
				v = joined(t, v, fmt.Sprintf("m%d-%d", random.IntN(1000), step))
			case random.IntN(2) == 0:
				v = must(t, v, Leave{Member: members[random.IntN(len(members))]})
			case round%2 == 0:
				continue
			default:
				name, member := v.Policy()[random.IntN(len(v.Policy()))].Sequencer, members[random.IntN(len(members))]
				if v.isDrained(member, name) {
					v = must(t, v, Undrain{name, member})
				} else {
					v = must(t, v, Drain{name, member})
				}
			}
			if wrong := inconsistency(v); wrong != "" {
				t.Fatalf("%s: %s", v, wrong)
			}
			after := servesOf(v)
			moved += moves(before, after)
			free := true
			for _, s := range v.sequencers.all() {
				free = free && s.drained.len() == 0
			}
			members := slices.Sorted(maps.Keys(after))
			due := v.due(len(members))
			unmet := func(counts map[string]int) (n int) {
				for name, want := range due {
					n += max(0, want-counts[name])
				}
				return n
			}
			counts := countsOf(after)
			if free && !apportioned(v, counts, len(members)) {
				t.Fatalf("%s: %v serve", v, counts)
			}
			if !free {
				drained++
			}
			everyWay(v, members, func(way map[string]string) {
				others := countsOf(way)
				switch {
				case free && apportioned(v, others, len(members)) && moves(before, way) < moves(before, after):
					t.Fatalf("%v, now %v: %d moves, and with %v only %d", before, after, moves(before, after), way,
						moves(before, way))
				case !free && unmet(others) < unmet(counts):
					t.Fatalf("%s: %d are missing of %v, and with %v only %d", v, unmet(counts), due, way, unmet(others))
				}
			})
		}
	}
	if moved < 50 || drained < 50 {
		t.Errorf("%d moves, %d values with drained members: that is too few", moved, drained)
	}
}

func countsOf(serves map[string]string) map[string]int {
	counts := map[string]int{}
	for _, name := range serves {
		counts[name]++
	}
	return counts
}

// What a policy does to who has node IDs.
func TestPolicy(t *testing.T) {
	attach := func(v Value, names, ids string) Value {
		for _, name := range names {
			for _, id := range ids {
				v = must(t, v, Attach{Sequencer: string(name), Member: string(id)})
			}
		}
		return v
	}
	cluster := func() Value {
		var v Value
		for _, name := range []string{"x", "y"} {
			v = must(t, v, CreateSequencer{Sequencer: name, Definition: small(4, Allocation{})})
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			v = joined(t, v, id)
		}
		return v
	}
	both := func() Value { return attach(cluster(), "xy", "abcd") }
	policy := SetPolicy{[]Share{{"x", 75}, {"y", 0}}}
	for _, tt := range []struct {
		name string
		v    Value
		want string
	}{
		{
			"all attached", must(t, both(), policy),
			"x 0:a 1:b 2:c, waiting d; y 3:d, waiting a b c; 75% for x: a b c; the rest for y: d",
		},
		{
			"who has a node ID keeps it", must(t, attach(attach(cluster(), "y", "a"), "x", "bcd"), policy),
			"x 0:b 1:c 2:d; y 0:a; 75% for x: b c d; the rest for y: a",
		},
		{
			"one leaves", must(t, both(), policy, Leave{Member: "a"}),
			"x 1:b 2:c, waiting d; y 3:d, waiting b c; 75% for x: b c; the rest for y: d",
		},
		{
			"one joins and attaches", attach(joined(t, must(t, both(), policy), "e"), "xy", "e"),
			"x 0:a 1:b 2:c 3:e, waiting d; y 3:d, waiting a b c e; 75% for x: a b c e; the rest for y: d",
		},
		{
			"the one of y is drained", must(t, both(), policy, Drain{"y", "d"}),
			"x 0:a 1:b 3:d, waiting c; y 0:c, waiting a b, drained d; 75% for x: a b d; the rest for y: c",
		},
		{
			"drained from both", must(t, both(), policy, Drain{"y", "d"}, Drain{"x", "d"}),
			"x 0:a 1:b, waiting c, drained d; y 0:c, waiting a b, drained d; 75% for x: a b; the rest for y: c",
		},
		{
			"and back", must(t, both(), policy, Drain{"y", "d"}, Drain{"x", "d"}, Undrain{"y", "d"}),
			"x 0:a 1:b 2:c, drained d; y, waiting a b c; 75% for x: a b c; the rest for y: d",
		},
		{
			"other shares", must(t, both(), policy, SetPolicy{[]Share{{"x", 50}, {"y", 50}}}),
			"x 0:a 1:b, waiting c d; y 0:c 3:d, waiting a b; 50% for x: a b; 50% for y: c d",
		},
		{
			"one sequencer is destroyed", must(t, both(), policy, DestroySequencer{"y", 0}),
			"x 0:a 1:b 2:c 3:d; 75% for x: a b c d",
		},
		{"none", must(t, both(), policy, SetPolicy{}), "x 0:a 1:b 2:c 3:d; y 0:a 1:b 2:c 3:d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if have := tt.v.String(); have[strings.Index(have, "x "):] != tt.want {
				t.Errorf("\n%s, want\n%s", have, tt.want)
			}
			if back := restore(t, checkpoint(t, tt.v)); back.String() != tt.v.String() {
				t.Errorf("a checkpoint turns %s into %s", tt.v, back)
			}
			if wrong := inconsistency(tt.v); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	v := must(t, both(), policy)
	for _, tt := range []struct {
		c    Command
		want Result
	}{
		{policy, Unchanged},
		{SetPolicy{[]Share{{"y", 0}, {"x", 75}}}, Unchanged},
		{SetPolicy{[]Share{{"x", 75}, {"z", 0}}}, Refused},
		{Move{"x", 0, "d"}, Refused}, // it serves y
		{Move{"x", 0, "b"}, Applied},
		{CreateSequencer{Sequencer: "x", Definition: small(4, Allocation{})}, Unchanged},
	} {
		if next, out := Apply(v, Entry{Position: v.position + 1, Command: tt.c}); out.Result != tt.want ||
			out.Result != Applied && next.String() != v.String() {
			t.Errorf("%v: %v, %s; want %v", tt.c, out, next, tt.want)
		}
	}
}

// A thousand members join and leave under a policy over three sequencers.
func BenchmarkPolicy(b *testing.B) {
	v := shared(b, Share{"a", 50}, Share{"b", 30}, Share{"c", 0})
	id := func(i int) string { return fmt.Sprintf("m%07d", i) }
	const members = 1024
	for i := range members {
		v = joined(b, v, id(i))
		for _, name := range []string{"a", "b", "c"} {
			v = must(b, v, Attach{Sequencer: name, Member: id(i)})
		}
	}
	b.ResetTimer()
	entries := v.Entries()
	for i := range b.N {
		v = joined(b, must(b, v, Leave{Member: id(i)}), id(i+members))
		for _, name := range []string{"a", "b", "c"} {
			v = must(b, v, Attach{Sequencer: name, Member: id(i + members)})
		}
	}
	b.ReportMetric(float64(v.Entries()-entries)/b.Elapsed().Seconds(), "entries/s")
}
