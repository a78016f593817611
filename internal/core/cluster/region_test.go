package cluster

import (
	"fmt"
	"testing"
)

// TestSequencersOfARegion is about a cluster that has one: all its sequencers are in it, nobody gets a node ID of
// another, and a checkpoint keeps it.
func TestSequencersOfARegion(t *testing.T) {
	quarter := Region{Number: 2, Of: 4}
	v := must(t, joined(t, Value{}, "a"),
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Region: quarter, Start: 5})
	for _, other := range []Region{{}, {Number: 1, Of: 4}, {Number: 2, Of: 8}, {Number: 1, Of: 2}} {
		c := CreateSequencer{Sequencer: "other", Definition: small(8, Allocation{}), Region: other}
		if _, out := Apply(v, Entry{Position: v.position + 1, Command: c}); out.Result != Refused {
			t.Errorf("a sequencer of %v beside one of %v: %v", other, quarter, out)
		}
	}
	v = must(t, v, CreateSequencer{Sequencer: "other", Definition: small(4, Allocation{}), Region: quarter})
	v = must(t, v, Attach{Sequencer: "s", Member: "a"}, Attach{Sequencer: "other", Member: "a"})
	for _, at := range []Value{v, restore(t, checkpoint(t, v))} {
		s, _ := at.Sequencer("s")
		other, _ := at.Sequencer("other")
		region, ok := at.Region()
		if !ok || region != quarter || s.Region() != quarter || s.NodeIDs() != (Range{From: 4, To: 5}) ||
			s.Free() != 1 || heldOf(s, "a") != 5 || heldOf(other, "a") != 2 {
			t.Errorf("%v: %v, s %d of %v, other %d", at, region, heldOf(s, "a"), s.NodeIDs(), heldOf(other, "a"))
		}
	}
	for _, node := range []int64{0, 3, 6} {
		c := Move{"s", node, "a"}
		if _, out := Apply(v, Entry{Position: v.position + 1, Command: c}); out.Result != Refused ||
			out.Why != fmt.Sprintf("there is no node ID %d; want 4 to 5", node) {
			t.Errorf("the node ID %d of another region is given: %v", node, out)
		}
	}
	v = must(t, v, DestroySequencer{"s", 0}, DestroySequencer{"other", 0})
	if region, ok := v.Region(); ok {
		t.Errorf("without sequencers it is %v", region)
	}
	must(t, v, CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{})})
}

// TestCheckpointsOfRegions is about those that no log can lead to.
func TestCheckpointsOfRegions(t *testing.T) {
	v := must(t, joined(t, Value{}, "a"), CreateSequencer{
		Sequencer: "s", Definition: small(8, Allocation{}),
		Region: Region{Number: 1, Of: 2}, Start: 6,
	}, Attach{Sequencer: "s", Member: "a"})
	refuses(t, string(checkpoint(t, v)), []damage{
		{`"region":"1/2"`, `"region":"1/3"`, "region"},
		{`"region":"1/2"`, `"region":"0/2"`, "start at 6; want 0 to 3"},
		{`"region":"1/2"`, `"region":"1/4"`, "start at 6; want 2 to 3"},
		{`"region":"1/2"`, `"region":"1/16"`, "8 node IDs for 16 regions"},
		{`,"region":"1/2"`, ``, "4 node IDs are free, held or reserved; want 8"},
		{`"start":6`, `"start":8`, "start at 8; want 4 to 7"},
		{`[7,7]`, `[7,8]`, "fresh node IDs 7 to 8; want 7 to 7"},
		{`"node":6`, `"node":3`, "node ID 3"},
	})
}

// heldOf is the node ID that a member has, or noNode.
func heldOf(s Sequencer, member string) int64 {
	if node, ok := s.Node(member); ok {
		return node
	}
	return noNode
}
