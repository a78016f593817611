package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/firn-id/firn"
)

// TestRegionsShareTheNodeIDs is about all regions of a number of them: each node ID is that of exactly one, in every preset,
// in fewer nodes than it has, and in layouts at random.
func TestRegionsShareTheNodeIDs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 7))
	definitions := []Definition{}
	for _, p := range firn.Presets() {
		definitions = append(definitions, Define(p.Layout))
	}
	for range 200 {
		l := firn.Default
		l.DatacenterBits = random.IntN(6)
		l.NodeBits = random.IntN(12)
		l.SequenceBits = 63 - l.TimeBits - l.DatacenterBits - l.NodeBits
		if l.Validate() != nil {
			continue
		}
		d := Define(l)
		if d.Nodes = 1 + random.Int64N(l.NodeIDs()); d.Validate() == nil {
			definitions = append(definitions, d)
		}
	}
	for _, d := range definitions {
		for of := int64(1); of <= 2*d.Capacity() && of <= maxRegions; of *= 2 {
			next := int64(0)
			for number := range of {
				region := Region{number, of}
				if of == 1 {
					region = Region{}
				}
				nodes, err := region.Nodes(d)
				if of > d.Capacity() {
					if err == nil {
						t.Errorf("%v has node IDs of %v: %v", region, d, nodes)
					}
					break
				}
				if err != nil || nodes.From != next || nodes.To < nodes.From {
					t.Fatalf("%v of %v: %v, %v; want it to begin at %d", region, d, nodes, err, next)
				}
				next = nodes.To + 1
			}
			if of <= d.Capacity() && next != d.Capacity() {
				t.Errorf("%d regions of %v end at %d", of, d, next)
			}
		}
		if l := d.IDLayout(); l.DatacenterBits > 0 {
			last := int64(1)<<l.DatacenterBits - 1
			first, to, err := l.DatacenterNodes(last)
			if nodes, wrong := (Region{last, last + 1}).Nodes(d); err != nil || wrong != nil || nodes != (Range{first, to}) {
				t.Errorf("region %d/%d of %v has the node IDs %v, %v; want those of the datacenter", last, last+1, d, nodes, wrong)
			}
		}
	}
}

// TestOverlaps compares Overlaps with the node IDs.
func TestOverlaps(t *testing.T) {
	all := []Region{{}}
	for of := int64(2); of <= 16; of *= 2 {
		for number := range of {
			all = append(all, Region{number, of})
		}
	}
	d := small(16, Allocation{})
	for _, a := range all {
		for _, b := range all {
			x, _ := a.Nodes(d)
			y, _ := b.Nodes(d)
			if want := x.From <= y.To && y.From <= x.To; a.Overlaps(b) != want {
				t.Errorf("%v and %v overlap: %v", a, b, !want)
			}
		}
	}
}

func TestParseRegion(t *testing.T) {
	for _, text := range []string{"0/2", "2/8", "31/32", "65535/65536"} {
		r, err := ParseRegion(text)
		var back Region
		written, _ := r.MarshalText()
		if err != nil || r.String() != text || back.UnmarshalText(written) != nil || back != r {
			t.Errorf("%q is %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "2", "2/", "/8", "8/8", "-1/8", "2/6", "0/1", "0/0", "0/131072", "02/8", "2/8 ", "+2/8", "a/8", "the whole"} {
		if r, err := ParseRegion(text); err == nil {
			t.Errorf("%q is %v", text, r)
		}
	}
	var whole Region
	if text, err := whole.MarshalText(); err != nil || len(text) != 0 || whole.UnmarshalText(text) != nil || whole != (Region{}) {
		t.Errorf("the whole is %q, %v", text, err)
	}
}

// TestSequencersOfARegion is about a cluster that has one: all its sequencers are in it, nobody gets a node ID of another,
// and a checkpoint keeps it.
func TestSequencersOfARegion(t *testing.T) {
	quarter := Region{2, 4}
	v := must(t, joined(t, Value{}, "a"), CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Region: quarter, Start: 5})
	for _, other := range []Region{{}, {1, 4}, {2, 8}, {1, 2}} {
		c := CreateSequencer{Sequencer: "other", Definition: small(8, Allocation{}), Region: other}
		if _, out := Apply(v, Entry{Position: v.position + 1, Command: c}); out.Result != Refused {
			t.Errorf("a sequencer of %v beside one of %v: %v", other, quarter, out)
		}
	}
	v = must(t, v, CreateSequencer{Sequencer: "other", Definition: small(4, Allocation{}), Region: quarter})
	v = must(t, v, Attach{"s", "a", nil, 8}, Attach{"other", "a", nil, 8})
	for _, at := range []Value{v, restore(t, checkpoint(t, v))} {
		s, _ := at.Sequencer("s")
		other, _ := at.Sequencer("other")
		region, ok := at.Region()
		if !ok || region != quarter || s.Region() != quarter || s.NodeIDs() != (Range{4, 5}) || s.Free() != 0 || !slices.Equal(s.Held("a"), []int64{5, 4}) ||
			!slices.Equal(other.Held("a"), []int64{2}) {
			t.Errorf("%v: %v, s %v of %v, other %v", at, region, s.Held("a"), s.NodeIDs(), other.Held("a"))
		}
	}
	for _, node := range []int64{0, 3, 6} {
		c := Move{"s", node, "a"}
		if _, out := Apply(v, Entry{Position: v.position + 1, Command: c}); out.Result != Refused || out.Why != fmt.Sprintf("there is no node ID %d; want 4 to 5", node) {
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
	v := must(t, joined(t, Value{}, "a"), CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Region: Region{1, 2}, Start: 6}, Attach{"s", "a", nil, 0})
	refuses(t, string(checkpoint(t, v)), []damage{
		{`"region":"1/2"`, `"region":"1/3"`, "region"},
		{`"region":"1/2"`, `"region":"0/2"`, "start at 6; want 0 to 3"},
		{`"region":"1/2"`, `"region":"1/4"`, "start at 6; want 2 to 3"},
		{`"region":"1/2"`, `"region":"1/16"`, "8 node IDs for 16 regions"},
		{`,"region":"1/2"`, ``, "4 node IDs are free or held; want 8"},
		{`"start":6`, `"start":8`, "start at 8; want 4 to 7"},
		{`[7,7]`, `[7,8]`, "fresh node IDs 7 to 8; want 7 to 7"},
		{`"node":6`, `"node":3`, "node ID 3"},
	})
}
