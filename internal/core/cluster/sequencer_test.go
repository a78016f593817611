package cluster

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

// TestAsFewMovesAsPossible walks at random, and holds each step against the least that it must change: who keeps a
// place keeps the node ID, unless it declines it; nobody loses one but the last in line, and those who have gone.
func TestAsFewMovesAsPossible(t *testing.T) {
	w := walk{rand: rand.New(rand.NewPCG(5, 11))}
	kept, gained, lost := 0, 0, 0
	for range 20_000 {
		before := w.value
		position := before.Position() + 1
		command := w.command()
		w.value, _ = Apply(before, Entry{Position: position, Command: command})
		w.position = position
		for name, after := range w.value.Sequencers() {
			s, ok := before.Sequencer(name)
			if !ok || s.Created() != after.Created() {
				continue
			}
			here := map[string]bool{} // those that have a node ID before, and could still have it
			for node, member := range s.Nodes() {
				if !after.Attached(member) || !w.value.serves(member, name) {
					continue
				}
				here[member] = true
				now, has := after.Node(member)
				_, declines := command.(Decline)
				_, moves := command.(Move) // see TestMove
				switch {
				case has && now == node:
					kept++
				case declines || moves:
				case has:
					t.Fatalf("%v: %s has %d of %s, and no longer node ID %d\n%v\n%v", command, member, now, name, node,
						before, w.value)
				default:
					lost++
				}
			}
			holders, wanted := after.holding.len(), holders(after.allocation, w.value.Size())
			taken := len(here) - holders
			if _, moves := command.(Move); taken > 0 && !moves && int64(holders) != wanted {
				t.Fatalf("%v: %d members lose their node ID of %s, though %d shall have one\n%v\n%v", command, taken,
					name, wanted, before, w.value)
			}
			for _, member := range after.Nodes() {
				if !here[member] {
					gained++
				}
			}
		}
	}
	if kept == 0 || gained == 0 || lost == 0 {
		t.Errorf("kept %d, gained %d, lost %d: not all was tried", kept, gained, lost)
	}
}

// verbs is a sequencer of four node IDs, for three of the members that stand in line as a, b, c, d, e.
func verbs(t *testing.T) Value {
	t.Helper()
	var v Value
	commands := []Command{PrepareJoin{"a"}}
	for _, id := range []string{"b", "c", "d", "e"} {
		commands = append(commands, PrepareJoin{id}, NotifyWatchers{id}, AcceptJoin{id})
	}
	commands = append(commands,
		CreateSequencer{Sequencer: "s", Definition: small(4, Allocation{Kind: AllocateCount, Count: 3})})
	for _, id := range []string{"a", "b", "c"} {
		commands = append(commands, Attach{Sequencer: "s", Member: id})
	}
	commands = append(commands, Attach{Sequencer: "s", Member: "d", Nodes: &Range{From: 0, To: 1}})
	for _, c := range commands {
		v, _ = Apply(v, Entry{Position: v.position + 1, Command: c})
	}
	return v
}

// What each verb does to who has which node ID, in which order the others wait, and who may not attach.
func TestVerbs(t *testing.T) {
	count := func(n int64) Allocation { return Allocation{Kind: AllocateCount, Count: n} }
	for _, tt := range []struct {
		commands []Command
		result   Result
		want     string
	}{
		{nil, Unchanged, "0:a 1:b 2:c, waiting d"},
		// c gets another
		{[]Command{Move{"s", 2, "a"}}, Applied, "1:b 2:a 3:c, waiting d"},
		// there is none for b
		{[]Command{Move{"s", 1, "d"}}, Applied, "0:a 1:d 2:c, waiting b"},
		// b waits in its old place
		{[]Command{Move{"s", 1, "d"}, Attach{Sequencer: "s", Member: "e"}}, Applied, "0:a 1:d 2:c, waiting b e"},
		{[]Command{Move{"s", 1, "d"}, Allocate{"s", 0, count(4)}}, Applied, "0:a 1:d 2:c 3:b, for 4 members"},
		// the last in line go
		{[]Command{Move{"s", 1, "d"}, Allocate{"s", 0, count(2)}}, Applied, "0:a 2:c, waiting b d, for 2 members"},
		// a free one
		{[]Command{Move{"s", 3, "b"}}, Applied, "0:a 2:c 3:b, waiting d"},
		// not attached
		{[]Command{Move{"s", 3, "e"}}, Refused, "0:a 1:b 2:c, waiting d"},
		// not accepted
		{[]Command{Move{"s", 3, "d"}}, Refused, "0:a 1:b 2:c, waiting d"},
		// there is none
		{[]Command{Move{"s", 4, "a"}}, Refused, "0:a 1:b 2:c, waiting d"},
		{[]Command{Move{"s", 0, "a"}}, Unchanged, "0:a 1:b 2:c, waiting d"},
		// the last other one goes
		{[]Command{Attach{Sequencer: "s", Member: "e"}, Move{"s", 3, "e"}}, Applied, "0:a 1:b 3:e, waiting c d"},
		{[]Command{Drain{"s", "b"}, Move{"s", 2, "b"}}, Refused, "0:a 1:d 2:c, drained b"},
		{[]Command{Drain{"s", "b"}}, Applied, "0:a 1:d 2:c, drained b"},
		{[]Command{Drain{"s", "b"}, Drain{"s", "b"}}, Unchanged, "0:a 1:d 2:c, drained b"},
		{[]Command{Drain{"s", "e"}}, Applied, "0:a 1:b 2:c, waiting d, drained e"}, // it was not attached
		{[]Command{Drain{"s", "x"}}, Refused, "0:a 1:b 2:c, waiting d"},
		{[]Command{Drain{"s", "b"}, Attach{Sequencer: "s", Member: "b"}}, Refused, "0:a 1:d 2:c, drained b"},
		{[]Command{Undrain{"s", "b"}}, Unchanged, "0:a 1:b 2:c, waiting d"},
		{[]Command{Drain{"s", "b"}, Undrain{"s", "b"}}, Applied, "0:a 1:d 2:c"},
		{
			[]Command{Drain{"s", "b"}, Undrain{"s", "b"}, Attach{Sequencer: "s", Member: "b"}},
			Applied,
			"0:a 1:d 2:c, waiting b",
		},
		{[]Command{Drain{"s", "b"}, Leave{Member: "b"}}, Applied, "0:a 1:d 2:c"},
		{[]Command{Drain{"s", "e"}, Expel{"e", "a"}}, Applied, "0:a 1:b 2:c, waiting d"},
		{[]Command{Expel{"b", "a"}}, Applied, "0:a 1:d 2:c"},
		{[]Command{Allocate{"s", 14, count(1)}}, Applied, "0:a, waiting b c d, for 1 member"},
		{[]Command{Allocate{"s", 13, count(1)}}, Refused, "0:a 1:b 2:c, waiting d"}, // another generation
		{[]Command{Allocate{"s", 0, count(3)}}, Unchanged, "0:a 1:b 2:c, waiting d"},
		// d accepts 0 and 1 only
		{[]Command{Allocate{"s", 0, Allocation{}}}, Applied, "0:a 1:b 2:c, waiting d, for all members"},
		{[]Command{Allocate{"s", 0, count(1)}, Allocate{"s", 0, count(3)}}, Applied, "0:a 1:c 3:b, waiting d"},
		// the definition is as it was
		{
			[]Command{Allocate{"s", 0, count(1)}, CreateSequencer{Sequencer: "s", Definition: small(4, count(3))}},
			Unchanged, "0:a, waiting b c d, for 1 member",
		},
	} {
		before := verbs(t)
		v, out := before, Outcome{}
		for _, c := range tt.commands {
			v, out = Apply(v, Entry{Position: v.position + 1, Command: c})
		}
		_, have, _ := strings.Cut(v.String(), "; s ")
		have, _, _ = strings.Cut(have, ";")
		if out.Result != tt.result || have != tt.want {
			t.Errorf("%v: %v, %s; want %v, %s", tt.commands, out, have, tt.result, tt.want)
		}
		if back := restore(t, checkpoint(t, v)); back.String() != v.String() {
			t.Errorf("%v: a checkpoint turns %s into %s", tt.commands, v, back)
		}
		if wrong := inconsistency(v); wrong != "" {
			t.Errorf("%v: %s", tt.commands, wrong)
		}
	}
}

// Two values that come from one share what they have in common, and nothing that either changes.
func TestValuesStayAsTheyAre(t *testing.T) {
	v := joined(t, joined(t, joined(t, Value{}, "a"), "b"), "c")
	v = must(t, v, CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{})},
		Attach{Sequencer: "s", Member: "a"}, Attach{"s", "b", &Range{From: 6, To: 6}},
		Attach{"s", "c", &Range{From: 7, To: 7}})
	one := must(t, v, Detach{"s", "b"})
	before := one.String()
	_ = must(t, v, Detach{"s", "c"})
	if one.String() != before || !bytes.Contains(checkpoint(t, one), []byte(`"fresh":[[1,5]],"freed":[6]`)) {
		t.Errorf("%s was %s", checkpoint(t, one), before)
	}
}

// TestIncarnations tells the successive sequencers of one name apart.
func TestIncarnations(t *testing.T) {
	var v Value
	step := func(position int64, c Command, want Result) {
		t.Helper()
		var o Outcome
		if v, o = Apply(v, Entry{Position: position, Command: c}); o.Result != want {
			t.Fatalf("%v at %d: %v, want %v", c, position, o, want)
		}
	}
	create := CreateSequencer{Sequencer: "orders", Definition: Define(firn.Default)}
	step(10, create, Applied)
	step(11, create, Unchanged)
	if s, _ := v.Sequencer("orders"); s.Created() != 10 {
		t.Errorf("created at %d, want 10", s.Created())
	}
	step(12, DestroySequencer{"orders", 10}, Applied)
	step(13, DestroySequencer{"orders", 10}, Refused)
	step(14, create, Applied)
	step(15, DestroySequencer{"orders", 10}, Refused) // it comes late, and means the one before
	if s, ok := restore(t, checkpoint(t, v)).Sequencer("orders"); !ok || s.Created() != 14 {
		t.Errorf("created at %d, want 14", s.Created())
	}
	step(16, DestroySequencer{"orders", 0}, Applied)
}
