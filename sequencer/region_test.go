package sequencer

import (
	"math/rand/v2"
	"testing"

	"github.com/firn-id/firn"
)

// TestRegionsShareTheNodeIDs is about all regions of a number of them: each node ID is that of exactly one, in every
// preset, in fewer nodes than it has, and in layouts at random.
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
			if nodes, wrong := (Region{last, last + 1}).Nodes(d); err != nil || wrong != nil ||
				nodes != (Range{first, to}) {
				t.Errorf("region %d/%d of %v has the node IDs %v, %v; want those of the datacenter", last, last+1,
					d, nodes, wrong)
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
	for _, text := range []string{
		"", "2", "2/", "/8", "8/8", "-1/8", "2/6", "0/1", "0/0", "0/131072", "02/8", "2/8 ",
		"+2/8", "a/8", "the whole",
	} {
		if r, err := ParseRegion(text); err == nil {
			t.Errorf("%q is %v", text, r)
		}
	}
	var whole Region
	if text, err := whole.MarshalText(); err != nil || len(text) != 0 || whole.UnmarshalText(text) != nil ||
		whole != (Region{}) {
		t.Errorf("the whole is %q, %v", text, err)
	}
}
