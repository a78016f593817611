package firn

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Layout says how the 63 bits of an ID are split:
//
//	time | datacenter | node | sequence
//
// The fields fill the ID from its low end; bits above them are zero. The
// datacenter field is the upper part of the node ID: node ID = datacenter <<
// NodeBits | node. Fields other than the time may have no bits and are then
// always zero. The zero Layout is not valid; take [Default] or another preset and
// change what should differ. A Layout must not change once IDs were made with it:
// two layouts over the same IDs make duplicates.
type Layout struct {
	Epoch          time.Time     // the instant of tick 0; 1970 to 2262
	Tick           time.Duration // one step of the time field; 1 ns to 1 s
	TimeBits       int           // 1 to 62
	DatacenterBits int           // 0 to 62
	NodeBits       int           // 0 to 62
	SequenceBits   int           // 0 to 62; 2^SequenceBits IDs per tick and node

	// NodeLowest puts the node below the sequence (time | sequence |
	// datacenter | node), as Sonyflake does.
	NodeLowest bool
}

// Parts are the fields of an ID, each as the number that its bits hold.
type Parts struct {
	Tick       int64 // ticks since the layout's epoch
	Datacenter int64
	Node       int64
	Sequence   int64
}

// ErrLifetime means that an instant lies outside the time that a layout can express:
// before its epoch, or after its time bits have run out.
var ErrLifetime = errors.New("outside the layout's lifetime")

// Validate returns an error that says what is wrong with the layout, or nil.
func (l Layout) Validate() error {
	for _, f := range []struct {
		name       string
		bits, from int
	}{
		{"time", l.TimeBits, 1},
		{"datacenter", l.DatacenterBits, 0},
		{"node", l.NodeBits, 0},
		{"sequence", l.SequenceBits, 0},
	} {
		if f.bits < f.from || f.bits > 62 {
			return fmt.Errorf("layout has %d %s bits; want %d to 62", f.bits, f.name, f.from)
		}
	}
	if sum := l.Bits(); sum > 63 {
		return fmt.Errorf("layout has %d bits (%s); want at most 63", sum, l.split())
	}
	if l.Tick < 1 || l.Tick > time.Second {
		return fmt.Errorf("layout has a tick of %v; want 1ns to 1s", l.Tick)
	}
	if l.Epoch.Before(time.Unix(0, 0)) || l.Epoch.After(time.Unix(0, math.MaxInt64)) {
		return fmt.Errorf("layout has the epoch %s; want 1970 to %s",
			stamp(l.Epoch), stamp(time.Unix(0, math.MaxInt64)))
	}
	return nil
}

// Compose makes an ID of its fields. It returns an error when the layout is not
// valid, or when a part does not fit its field. Nothing here knows which IDs exist:
// who composes IDs must own their node ID for their time, or they are not unique.
func (l Layout) Compose(p Parts) (ID, error) {
	if err := l.Validate(); err != nil {
		return 0, err
	}
	for _, f := range []struct {
		name  string
		value int64
		bits  int
	}{
		{"tick", p.Tick, l.TimeBits},
		{"datacenter", p.Datacenter, l.DatacenterBits},
		{"node", p.Node, l.NodeBits},
		{"sequence", p.Sequence, l.SequenceBits},
	} {
		if f.value < 0 || f.value > maxOf(f.bits) {
			return 0, fmt.Errorf("%s %d does not fit the layout's %d bits; want 0 to %d",
				f.name, f.value, f.bits, maxOf(f.bits))
		}
	}
	place := uint64(p.Tick)<<l.SequenceBits | uint64(p.Sequence)
	return l.packing(p.Datacenter<<l.NodeBits | p.Node).id(place), nil
}

// Time returns when an ID was made: the instant at which its tick begins, in UTC.
// Under saturation that is up to [MaxLookAhead] after the clock. The errors are
// those of [Layout.Decompose].
func (l Layout) Time(id ID) (time.Time, error) {
	p, err := l.Decompose(id)
	if err != nil {
		return time.Time{}, err
	}
	return l.TickStart(p.Tick), nil
}

// NodeID returns which node made an ID: datacenter << NodeBits | node, as
// [NewGenerator] takes it. The errors are those of [Layout.Decompose].
func (l Layout) NodeID(id ID) (int64, error) {
	p, err := l.Decompose(id)
	return p.Datacenter<<l.NodeBits | p.Node, err
}

// Decompose splits an ID into its fields. It returns an error when the layout is
// not valid, when the ID is negative, or when it has bits above the layout's.
func (l Layout) Decompose(id ID) (Parts, error) {
	if err := l.Validate(); err != nil {
		return Parts{}, err
	}
	if all := l.Bits(); id < 0 || int64(id) > maxOf(all) {
		return Parts{}, fmt.Errorf("%d is not an ID of the layout %s: its %d bits hold 0 to %d", int64(id), l.split(),
			all, maxOf(all))
	}
	field := func(shift, bits int) int64 { return int64(id) >> shift & maxOf(bits) }
	nodeAt, sequenceAt := l.SequenceBits, 0
	if l.NodeLowest {
		nodeAt, sequenceAt = 0, l.nodeIDBits()
	}
	return Parts{
		Tick:       field(l.SequenceBits+l.nodeIDBits(), l.TimeBits),
		Datacenter: field(nodeAt+l.NodeBits, l.DatacenterBits),
		Node:       field(nodeAt, l.NodeBits),
		Sequence:   field(sequenceAt, l.SequenceBits),
	}, nil
}

// First returns the smallest ID that any node can make in the tick that t lies in.
// Where t begins a tick, IDs made from t on are those at or above First(t). It returns
// ErrLifetime when t lies outside the layout's lifetime.
func (l Layout) First(t time.Time) (ID, error) {
	tick, err := l.TickAt(t)
	if err != nil {
		return 0, err
	}
	return ID(tick << (l.nodeIDBits() + l.SequenceBits)), nil
}

// Last returns the largest ID that any node can make in the tick that t lies in. It
// returns ErrLifetime when t lies outside the layout's lifetime.
func (l Layout) Last(t time.Time) (ID, error) {
	first, err := l.First(t)
	return first | ID(maxOf(l.nodeIDBits()+l.SequenceBits)), err
}

// TickAt returns the tick that t lies in: the number of whole ticks since the epoch. It
// returns ErrLifetime when t lies outside the layout's lifetime.
func (l Layout) TickAt(t time.Time) (int64, error) {
	if err := l.Validate(); err != nil {
		return 0, err
	}
	if t.Before(l.Epoch) || !t.Before(l.Lifetime()) {
		return 0, fmt.Errorf("%s is %w; want a time from %s on, before %s", stamp(t), ErrLifetime, stamp(l.Epoch),
			stamp(l.Lifetime()))
	}
	seconds, nanos := t.Unix()-l.Epoch.Unix(), int64(t.Nanosecond()-l.Epoch.Nanosecond())
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1e9
	}
	hi, lo := bits.Mul64(uint64(seconds), 1e9)
	lo, carry := bits.Add64(lo, uint64(nanos), 0)
	tick, _ := bits.Div64(hi+carry, lo, uint64(l.Tick))
	return int64(tick), nil
}

// TickStart returns the instant at which a tick begins, in UTC. Ticks count from 0 at
// the epoch; a negative tick gives the epoch. [Layout.Time] tells that of an ID.
func (l Layout) TickStart(tick int64) time.Time {
	hi, lo := bits.Mul64(uint64(max(tick, 0)), uint64(l.Tick))
	seconds, nanos := bits.Div64(hi, lo, 1e9)
	return time.Unix(l.Epoch.Unix()+int64(seconds), int64(l.Epoch.Nanosecond())+int64(nanos)).UTC()
}

// Lifetime returns the instant at which the time bits run out, in UTC: the first one
// for which there is no ID. The layout must be valid.
func (l Layout) Lifetime() time.Time { return l.TickStart(maxOf(l.TimeBits)).Add(l.Tick) }

// Rate returns how many IDs one node can make per second. The layout must be valid.
func (l Layout) Rate() float64 {
	return math.Ldexp(float64(time.Second)/float64(l.Tick), l.SequenceBits)
}

// NodeIDs returns how many node IDs there are: 2^(DatacenterBits + NodeBits). Node
// IDs count from 0. The layout must be valid.
func (l Layout) NodeIDs() int64 { return maxOf(l.nodeIDBits()) + 1 }

// DatacenterNodes returns the first and the last node ID of a datacenter. It returns an
// error when the layout has no such datacenter.
func (l Layout) DatacenterNodes(datacenter int64) (first, last int64, err error) {
	if err := l.Validate(); err != nil {
		return 0, 0, err
	}
	if l.DatacenterBits == 0 {
		return 0, 0,
			fmt.Errorf("datacenter %d does not exist: the layout %s has no datacenter bits", datacenter, l.split())
	}
	if datacenter < 0 || datacenter > maxOf(l.DatacenterBits) {
		return 0, 0, fmt.Errorf("datacenter %d does not exist: the layout %s has datacenters 0 to %d",
			datacenter, l.split(), maxOf(l.DatacenterBits))
	}
	first = datacenter << l.NodeBits
	return first, first | maxOf(l.NodeBits), nil
}

// Bits returns how many bits an ID has, at most 63. With up to 53, as in [JavaScript],
// IDs are exact where numbers are doubles; with more, different IDs become one number
// there. The layout must be valid.
func (l Layout) Bits() int { return l.TimeBits + l.nodeIDBits() + l.SequenceBits }

func (l Layout) nodeIDBits() int { return l.DatacenterBits + l.NodeBits }

// maxOf is the greatest number that the bits hold.
func maxOf(bits int) int64 { return 1<<bits - 1 }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// packing turns a place (tick and sequence, as a generator counts them) into the
// ID of one node, by opening a gap for the node's bits:
//
//	place     tick ............ | low bits
//	ID        tick ... | node ID | low bits
//
// The low bits are the sequence, or none where the node lies lowest.
type packing struct {
	low  uint64 // the low bits, as a mask
	node uint64 // the node's bits, where they go
	gap  uint8  // how many bits the node has
}

func (l Layout) packing(node int64) packing {
	low := l.SequenceBits
	if l.NodeLowest {
		low = 0
	}
	return packing{low: uint64(maxOf(low)), node: uint64(node) << low, gap: uint8(l.nodeIDBits())}
}

func (p packing) id(place uint64) ID {
	return ID(place&^p.low<<(p.gap&63) | p.node | place&p.low)
}
