package sequencer

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Region is the share of all node IDs that a cluster uses, in every sequencer: the slice Number of Of equal ones.
// Clusters that know nothing of each other make different IDs if their regions do not overlap and their sequencers of a
// name have the same definition. The zero value is the whole: all node IDs.
type Region struct {
	Number int64 // 0 to Of-1
	Of     int64 // how many slices there are: a power of two, 2 to 65536; 0 for the whole
}

const maxRegions = 1 << 16

// ParseRegion reads a region such as "2/8". An error is returned when text is anything else; there is no text for the
// whole.
func ParseRegion(text string) (r Region, err error) {
	number, of, _ := strings.Cut(text, "/")
	r.Number, err = strconv.ParseInt(number, 10, 64)
	if err == nil {
		r.Of, err = strconv.ParseInt(of, 10, 64)
	}
	if err != nil || r.Of == 0 || r.Validate() != nil || r.String() != text {
		return Region{},
			fmt.Errorf("the region %.40q; want one such as 2/8: a number from 0, and how many slices there are, a "+
				"power of two from 2 to %d", text, maxRegions)
	}
	return r, nil
}

// String returns the region as ParseRegion reads it, and "the whole" for that.
func (r Region) String() string {
	if r == (Region{}) {
		return "the whole"
	}
	return fmt.Sprintf("%d/%d", r.Number, r.Of)
}

// Validate returns an error when a field is out of range.
func (r Region) Validate() error {
	if r == (Region{}) {
		return nil
	}
	if r.Of < 2 || r.Of > maxRegions || bits.OnesCount64(uint64(r.Of)) != 1 || r.Number < 0 || r.Number >= r.Of {
		return fmt.Errorf("the region %d/%d; want a number from 0, of a power of two from 2 to %d", r.Number,
			r.Of, maxRegions)
	}
	return nil
}

// Nodes returns the node IDs of a sequencer that are the region's: none of a counter. An error is returned when the
// region is not valid, the sequencer has fewer node IDs than there are regions, or it is a counter in a region.
func (r Region) Nodes(d Definition) (Range, error) {
	if err := r.Validate(); err != nil {
		return Range{}, err
	}
	if d.Claimed() {
		if r != (Region{}) {
			return Range{}, fmt.Errorf("a counter or strict order in the region %v, which would give the IDs of the "+
				"others; want a cluster without regions", r)
		}
		return Range{0, -1}, nil
	}
	of := max(r.Of, 1)
	each := d.Capacity() / of
	if each == 0 {
		return Range{},
			fmt.Errorf("%d node IDs for %d regions; want at least one for each: more nodes, or a layout with more "+
				"node bits",
				d.Capacity(), of)
	}
	return Range{r.Number * each, (r.Number+1)*each - 1}, nil
}

// Overlaps reports whether two regions share node IDs.
func (r Region) Overlaps(other Region) bool {
	a, b := max(r.Of, 1), max(other.Of, 1)
	return r.Number*b < (other.Number+1)*a && other.Number*a < (r.Number+1)*b
}

// MarshalText writes the region as String does, and the whole as the empty text.
func (r Region) MarshalText() ([]byte, error) {
	if r == (Region{}) {
		return nil, nil
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads what MarshalText wrote. An error is returned when text is anything else.
func (r *Region) UnmarshalText(text []byte) (err error) {
	*r = Region{}
	if len(text) > 0 {
		*r, err = ParseRegion(string(text))
	}
	return err
}

// Range is the node IDs From to To, both included; 0 <= From <= To, or none if To is less than From.
type Range struct{ From, To int64 }

// Size returns how many node IDs these are.
func (r Range) Size() int64 { return r.To - r.From + 1 }

// Holds reports whether a node ID is one of these.
func (r Range) Holds(node int64) bool { return r.From <= node && node <= r.To }
