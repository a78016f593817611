package cluster

import (
	"math/rand/v2"
	"testing"

	"github.com/firn-id/firn"
)

// TestAsFewMovesAsPossible walks at random, and holds each step against the least that it must change: who keeps a place
// keeps the node ID, unless it declines it; nobody loses one but the last in line, and those who have gone.
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
				if !after.Attached(member) {
					continue
				}
				here[member] = true
				now, has := after.Node(member)
				switch _, declines := command.(Decline); {
				case has && now == node:
					kept++
				case declines:
				case has:
					t.Fatalf("%v moves %s from node ID %d to %d of %s\n%v\n%v", command, member, node, now, name, before, w.value)
				default:
					lost++
				}
			}
			holders, wanted := after.nodes.len(), after.definition.Allocation.holders(w.value.Size())
			taken := len(here) - holders
			if taken > 0 && int64(holders) != wanted {
				t.Fatalf("%v: %d members lose their node ID of %s, though %d shall have one\n%v\n%v", command, taken, name, wanted, before, w.value)
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
	create := CreateSequencer{"orders", Define(firn.Default)}
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
