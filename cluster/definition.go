package cluster

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"time"

	"github.com/firn-id/firn"
)

// Definition is what a sequencer is created with, for good.
type Definition struct {
	// Nodes is how many members can have a node ID at a time: 1 to as many as Layout has node IDs.
	// It is rounded up to a power of two, see Capacity.
	Nodes int64

	// Allocation is how many of the members that want a node ID get one. The zero value stands for
	// every one.
	Allocation Allocation

	// Layout is that of the IDs if Nodes is all that it has; with fewer, the spare node bits go to the
	// sequence, see IDLayout.
	Layout firn.Layout
}

// Allocation is how many members of those that want one get a node ID. It is comparable; the zero value
// is every one.
type Allocation struct {
	Kind    AllocationKind
	Count   int64 // of AllocateCount: at least 1
	Percent int64 // of AllocatePercent: 1 to 100
}

// AllocationKind is a kind of Allocation.
type AllocationKind uint8

// The kinds of allocation.
const (
	AllocateAll     AllocationKind = iota // every member
	AllocateCount                         // so many
	AllocatePercent                       // a percentage of the members of the cluster, rounded up
)

var allocationKinds = [...]string{"all", "count", "percent"}

func (k AllocationKind) String() string { return allocationKinds[k] }

// MarshalText writes the kind as it is written in JSON: all, count or percent.
func (k AllocationKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote. An error is returned when it is none of the kinds.
func (k *AllocationKind) UnmarshalText(text []byte) error {
	for kind, name := range allocationKinds {
		if name == string(text) {
			*k = AllocationKind(kind)
			return nil
		}
	}
	return fmt.Errorf("the allocation kind %.40q; want all, count or percent", text)
}

// String says for whom node IDs are: "all members", "2 members", "50% of the members".
func (a Allocation) String() string {
	switch a.Kind {
	case AllocateCount:
		return fmt.Sprintf("%d members", a.Count)
	case AllocatePercent:
		return fmt.Sprintf("%d%% of the members", a.Percent)
	default:
		return "all members"
	}
}

// holders is how many of so many members may hold a node ID.
func (a Allocation) holders(members int) int64 {
	switch a.Kind {
	case AllocateCount:
		return a.Count
	case AllocatePercent:
		return (a.Percent*int64(members) + 99) / 100
	default:
		return int64(members)
	}
}

// Define returns the definition of a sequencer with a layout's own number of node IDs, for every member.
func Define(l firn.Layout) Definition {
	l.Epoch = l.Epoch.UTC()
	return Definition{Nodes: l.NodeIDs(), Layout: l}
}

// Validate reports what is wrong with the definition, and nil when nothing is.
func (d Definition) Validate() error {
	if err := d.Layout.Validate(); err != nil {
		return err
	}
	limit := d.Layout.NodeIDs()
	switch {
	case d.Nodes < 1 || d.Nodes > limit:
		return fmt.Errorf("cluster: %d nodes; want 1 to %d, as many as the layout has", d.Nodes, limit)
	case d.nodeBits() < d.Layout.DatacenterBits:
		return fmt.Errorf("cluster: %d nodes are fewer than the %d datacenters of the layout; want at least one for each",
			d.Nodes, int64(1)<<d.Layout.DatacenterBits)
	}
	switch a := d.Allocation; {
	case a.Kind > AllocatePercent:
		return fmt.Errorf("cluster: there is no allocation kind %d", a.Kind)
	case a.Kind == AllocateCount && a.Count < 1:
		return fmt.Errorf("cluster: an allocation to a count of %d members; want at least 1", a.Count)
	case a.Kind == AllocatePercent && (a.Percent < 1 || a.Percent > 100):
		return fmt.Errorf("cluster: an allocation to %d percent of the members; want 1 to 100", a.Percent)
	}
	return nil
}

// Capacity is how many node IDs there are: Nodes, rounded up to a power of two. They are 0 to Capacity-1.
func (d Definition) Capacity() int64 { return 1 << d.nodeBits() }

func (d Definition) nodeBits() int { return bits.Len64(uint64(d.Nodes - 1)) }

// IDLayout is the layout of the IDs: Layout, with the node bits that Capacity does not need given to the
// sequence, so that fewer nodes make more IDs per tick each.
func (d Definition) IDLayout() firn.Layout {
	l := d.Layout
	spare := l.DatacenterBits + l.NodeBits - d.nodeBits()
	l.NodeBits -= spare
	l.SequenceBits += spare
	return l
}

// Equal tells whether two definitions are the same.
func (d Definition) Equal(other Definition) bool {
	d.Layout.Epoch, other.Layout.Epoch = d.Layout.Epoch.UTC(), other.Layout.Epoch.UTC()
	return d == other
}

// String is the definition for people.
func (d Definition) String() string {
	return fmt.Sprintf("%d nodes for %v, layout %v", d.Nodes, d.Allocation, d.Layout)
}

// definitionJSON is a definition as it is written: only Nodes must be there.
type definitionJSON struct {
	Nodes          *int64          `json:"nodes"`
	Allocation     *allocationJSON `json:"allocation,omitempty"`
	Epoch          *time.Time      `json:"epoch,omitempty"`
	Tick           *duration       `json:"tick,omitempty"`
	TimeBits       *int            `json:"time_bits,omitempty"`
	DatacenterBits *int            `json:"datacenter_bits,omitempty"`
	NodeBits       *int            `json:"node_bits,omitempty"`
	SequenceBits   *int            `json:"sequence_bits,omitempty"`
	NodeLowest     *bool           `json:"node_lowest,omitempty"`
}

type allocationJSON struct {
	Kind    AllocationKind `json:"kind"`
	Count   int64          `json:"count,omitempty"`
	Percent int64          `json:"percent,omitempty"`
}

// duration is written like 10ms.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

// MarshalJSON writes every field.
func (d Definition) MarshalJSON() ([]byte, error) {
	l, tick := d.Layout, duration(d.Layout.Tick)
	epoch := l.Epoch.UTC()
	allocation := allocationJSON(d.Allocation)
	return json.Marshal(definitionJSON{
		&d.Nodes, &allocation, &epoch, &tick,
		&l.TimeBits, &l.DatacenterBits, &l.NodeBits, &l.SequenceBits, &l.NodeLowest,
	})
}

// UnmarshalJSON reads a definition in which all fields but nodes may be absent: the layout's are then those of
// firn.Default, and the allocation is to every member. An error is returned when it is not valid.
func (d *Definition) UnmarshalJSON(data []byte) error {
	*d = Definition{Layout: firn.Default}
	var allocation allocationJSON
	tick := duration(d.Layout.Tick)
	l := &d.Layout
	fields := definitionJSON{
		nil, &allocation, &l.Epoch, &tick,
		&l.TimeBits, &l.DatacenterBits, &l.NodeBits, &l.SequenceBits, &l.NodeLowest,
	}
	if err := strictJSON(data, &fields); err != nil {
		return err
	}
	if fields.Nodes == nil {
		return fmt.Errorf(`cluster: a definition without "nodes"`)
	}
	d.Nodes = *fields.Nodes
	d.Allocation = Allocation{Kind: allocation.Kind}
	switch allocation.Kind { // what the kind does not use is dropped
	case AllocateCount:
		d.Allocation.Count = allocation.Count
	case AllocatePercent:
		d.Allocation.Percent = allocation.Percent
	}
	l.Tick, l.Epoch = time.Duration(tick), l.Epoch.UTC()
	return d.Validate()
}
