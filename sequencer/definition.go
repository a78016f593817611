package sequencer

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"

	"github.com/firn-id/firn"
)

// Definition is what a sequencer is created with. It never changes. The zero value is invalid.
type Definition struct {
	// Kind is what the IDs are made of. A Counter has only Order, After, Max, Dated and Prefix
	// besides.
	Kind Kind

	// Order is what their order says. In OrderStrict IDs have no node ID; there are only Layout, After and Prefix
	// besides, or what a Counter has.
	Order Order

	// Nodes is how many members can have a node ID at a time, from 1 to the number of node IDs of Layout.
	// Capacity rounds it up to a power of two.
	Nodes int64

	// Allocation is how many of the attached members get a node ID. The zero value means all.
	Allocation Allocation

	// After, if not zero, is an ID that every new ID exceeds: the greatest existing one, to continue an ID space.
	// The sequencer makes no ID in the tick of After or an earlier one. What is claimed begins at After + 1 or above.
	After firn.ID

	// Max is the greatest number of a counter. Zero means firn.MaxID. Only for a Counter.
	Max firn.ID

	// Dated says that the numbers of a counter begin with a date. The zero value means that they don't. Only for a
	// Counter.
	Dated Dated

	// Attach says when a node attaches. An application with a member of its own ignores it, and decides that
	// itself.
	Attach AttachPolicy

	// Window is how far ahead of the clock a member's horizon lies: how long it makes IDs while the store is
	// unavailable, and how long the next owner of its node ID waits if it dies. 1 s to 1 h, and at least three
	// ticks. A member whose own window is shorter uses that. The zero value means that of the member.
	Window time.Duration

	// Layout is the layout of the IDs if Capacity needs all its node bits. Otherwise the spare ones go to the
	// sequence, see IDLayout.
	Layout firn.Layout

	// Prefix, if not empty, begins the prefixed form of the IDs, before an underscore: "ord" makes ord_01h455vb4pex5. 1
	// to 16 of a-z and 0-9, the first a letter.
	Prefix string

	// Scattered says that the IDs are those of Layout after firn.Scatter: as keys they spread over all ranges of a
	// store, and do not sort by time. Not with After.
	Scattered bool

	// RandomStart says that the sequence of a tick begins at a random number, unless that of the tick before was used
	// up, see firn.WithRandomStart: so at low rates the IDs are not all divisible by a power of two, and a single one
	// does not tell how many came before it in its tick.
	RandomStart bool
}

// Define returns the definition of a sequencer with all node IDs of a layout, allocated to every member.
func Define(l firn.Layout) Definition {
	l.Epoch = l.Epoch.UTC()
	return Definition{Nodes: l.NodeIDs(), Layout: l}
}

// Validate returns an error when a field is out of range, when no new ID could exceed After, or when After is given and
// Scattered, or a field is given that the kind has not.
func (d Definition) Validate() error {
	switch {
	case d.Kind > Counter:
		return fmt.Errorf("there is no kind %d", uint8(d.Kind))
	case d.Order > OrderStrict:
		return fmt.Errorf("there is no order %d", uint8(d.Order))
	case d.Kind == Counter:
		return d.validateCounter()
	case d.Max != 0:
		return fmt.Errorf("a maximum of %d in a sequencer of the kind %v; only a counter has one", int64(d.Max), d.Kind)
	case d.Dated != (Dated{}):
		return fmt.Errorf("%v in a sequencer of the kind %v; only a counter can be dated", d.Dated, d.Kind)
	}
	if err := d.Layout.Validate(); err != nil {
		return err
	}
	if d.Layout.Tick < time.Millisecond {
		return fmt.Errorf("a tick of %v; want 1ms to 1s", d.Layout.Tick)
	}
	if _, err := d.Above(d.After); err != nil {
		return err
	}
	if err := d.validatePrefix(); err != nil {
		return err
	}
	if d.Claimed() {
		return d.validateClaimed()
	}
	limit := d.Layout.NodeIDs()
	switch {
	case d.Nodes < 1 || d.Nodes > limit:
		return fmt.Errorf("%d nodes; want 1 to %d, as many as the layout has", d.Nodes, limit)
	case d.nodeBits() < d.Layout.DatacenterBits:
		return fmt.Errorf("%d nodes are fewer than the %d datacenters of the layout; want at least one for each",
			d.Nodes, int64(1)<<d.Layout.DatacenterBits)
	}
	if d.Attach > AttachExplicit {
		return fmt.Errorf("there is no attach policy %d", uint8(d.Attach))
	}
	if least := max(time.Second, 3*d.Layout.Tick); d.Window != 0 && (d.Window < least || d.Window > time.Hour) {
		return fmt.Errorf("a window of %v; want %v to 1h, at least three ticks, or 0 for that of the node",
			d.Window, least)
	}
	if d.Scattered && d.After != 0 {
		return fmt.Errorf("IDs after %d that are scattered: scattered IDs exceed no other; want one of the two",
			int64(d.After))
	}
	return d.Allocation.Validate()
}

// Capacity returns the number of node IDs: Nodes, rounded up to a power of two. The node IDs are 0 to Capacity-1.
// There are none where IDs are Claimed.
func (d Definition) Capacity() int64 {
	if d.Claimed() {
		return 0
	}
	return 1 << d.nodeBits()
}

// ForRate returns the definition with as many nodes as can make so many IDs a second each, at most those that it has:
// the bits that other nodes would need go to the sequence. An error is returned when no number of nodes can, and where
// IDs are Claimed, whose rate does not depend on their layout.
func (d Definition) ForRate(perSecond float64) (Definition, error) {
	if d.Claimed() {
		return d, fmt.Errorf("a rate of %.0f IDs a second for each node; IDs that are claimed have none", perSecond)
	}
	for {
		rate := d.IDLayout().Rate()
		if rate >= perSecond {
			return d, nil
		}
		if d.nodeBits() <= d.Layout.DatacenterBits {
			return d, fmt.Errorf("%.0f IDs a second for each node; the layout has at most %.0f, with %d",
				perSecond, rate, d.Capacity())
		}
		d.Nodes = d.Capacity() / 2
	}
}

func (d Definition) nodeBits() int { return bits.Len64(uint64(d.Nodes - 1)) }

// IDLayout returns the layout of the IDs: Layout, with the node bits that Capacity does not need given to the
// sequence, so that each of fewer nodes makes more IDs per tick. The numbers of a counter have none, so it returns the
// zero value.
func (d Definition) IDLayout() firn.Layout {
	if d.Kind == Counter {
		return firn.Layout{}
	}
	l := d.Layout
	if d.Order == OrderStrict {
		l.SequenceBits += l.DatacenterBits + l.NodeBits
		l.DatacenterBits, l.NodeBits = 0, 0
		return l
	}
	spare := l.DatacenterBits + l.NodeBits - d.nodeBits()
	l.NodeBits -= spare
	l.SequenceBits += spare
	return l
}

// Above returns the start of the first tick in which all IDs exceed id, and the layout's epoch when id is zero.
// An error is returned when there is no such tick, or it is a counter.
func (d Definition) Above(id firn.ID) (time.Time, error) {
	if d.Kind == Counter {
		return time.Time{}, fmt.Errorf("a time after %d: the numbers of a counter have none", int64(id))
	}
	l := d.IDLayout()
	if id == 0 {
		return l.Epoch, nil
	}
	p, err := l.Decompose(id)
	if err != nil {
		return time.Time{}, fmt.Errorf("IDs after %d: %w", int64(id), err)
	}
	at := l.TickStart(p.Tick + 1)
	if !at.Before(l.Lifetime()) {
		return time.Time{}, fmt.Errorf("IDs after %d: it is in the layout's last tick", int64(id))
	}
	return at, nil
}

// MinLifetimeLeft is the remaining lifetime of a layout below which Check warns.
const MinLifetimeLeft = 365 * 24 * time.Hour

// Check checks whether a sequencer created at now could make IDs. An error is returned when the definition is
// invalid, its zone is not known here, its epoch has not come or its lifetime has ended. The warning says that the
// lifetime ends within a year, or is empty.
func (d Definition) Check(now time.Time) (warning string, err error) {
	if err := d.Validate(); err != nil {
		return "", err
	}
	if d.Kind == Counter {
		_, err := d.Dated.Location()
		return "", err
	}
	end := d.Layout.Lifetime()
	left := end.Sub(now)
	switch {
	case now.Before(d.Layout.Epoch):
		return "", fmt.Errorf("%w: its epoch %s has not come; want one in the past", firn.ErrLifetime,
			stamp(d.Layout.Epoch))
	case left <= 0:
		return "", fmt.Errorf("%w: its time ended on %s; want a later epoch, more time bits or a longer tick",
			firn.ErrLifetime, stamp(end))
	case left < MinLifetimeLeft:
		return fmt.Sprintf("its time ends on %s, in %.0f days; a later epoch, more time bits or a longer tick "+
			"last longer", stamp(end), left.Hours()/24), nil
	}
	return "", nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Difference is a field in which a wanted definition differs from the one in force.
type Difference struct {
	Field   string `json:"field"` // its name in JSON
	InForce string `json:"in_force"`
	Wanted  string `json:"wanted"`
}

// String returns text such as "nodes: 128 is in force, 64 is wanted".
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s is in force, %s is wanted", d.Field, d.InForce, d.Wanted)
}

// Differences returns the fields in which the wanted definition differs from this one, which is in force, or nil
// if they are Equal. If the kinds differ, or IDs are claimed
// in one alone, that is the only one.
func (d Definition) Differences(wanted Definition) []Difference {
	if d.Kind != wanted.Kind {
		return []Difference{{"kind", d.Kind.String(), wanted.Kind.String()}}
	}
	if d.Claimed() != wanted.Claimed() {
		return []Difference{{"order", d.Order.String(), wanted.Order.String()}}
	}
	var all []Difference
	a, b := d.Layout, wanted.Layout
	for _, f := range []struct {
		name            string
		inForce, wanted any
	}{
		{"nodes", d.Nodes, wanted.Nodes},
		{"allocation", d.Allocation, wanted.Allocation},
		{"epoch", stamp(a.Epoch), stamp(b.Epoch)},
		{"tick", a.Tick, b.Tick},
		{"time_bits", a.TimeBits, b.TimeBits},
		{"datacenter_bits", a.DatacenterBits, b.DatacenterBits},
		{"node_bits", a.NodeBits, b.NodeBits},
		{"sequence_bits", a.SequenceBits, b.SequenceBits},
		{"node_lowest", a.NodeLowest, b.NodeLowest},
		{"after", d.After, wanted.After},
		{"max", d.Last(), wanted.Last()},
		{"order", d.Order, wanted.Order},
		{"dated", d.Dated.Every, wanted.Dated.Every},
		{"digits", d.Dated.Digits, wanted.Dated.Digits},
		{"zone", d.Dated.zone(), wanted.Dated.zone()},
		{"attach", d.Attach, wanted.Attach},
		{"window", d.window(), wanted.window()},
		{"prefix", cmp.Or(d.Prefix, "no prefix"), cmp.Or(wanted.Prefix, "no prefix")},
		{"scattered", d.Scattered, wanted.Scattered},
		{"random_start", d.RandomStart, wanted.RandomStart},
	} {
		if f.inForce != f.wanted {
			all = append(all, Difference{f.name, fmt.Sprint(f.inForce), fmt.Sprint(f.wanted)})
		}
	}
	return all
}

func (d Definition) window() string {
	if d.Window == 0 {
		return "that of the node"
	}
	return d.Window.String()
}

// Equal reports whether two definitions are the same, in whatever time zones their epochs are.
func (d Definition) Equal(other Definition) bool {
	d.Layout.Epoch, other.Layout.Epoch = d.Layout.Epoch.UTC(), other.Layout.Epoch.UTC()
	if d.Dated != (Dated{}) && other.Dated != (Dated{}) {
		d.Dated.Zone, other.Dated.Zone = d.Dated.zone(), other.Dated.zone()
	}
	return d == other
}

// String returns the definition for people, with the layout that its IDs have.
func (d Definition) String() string {
	more := ""
	if d.After != 0 {
		more = fmt.Sprintf(", after %d", int64(d.After))
	}
	if d.Max != 0 {
		more += fmt.Sprintf(", to %d", int64(d.Max))
	}
	if d.Order != OrderNode {
		more += fmt.Sprintf(", order %v", d.Order)
	}
	if d.Dated != (Dated{}) {
		more += fmt.Sprintf(", %v", d.Dated)
	}
	if d.Attach != AttachOnDemand {
		more += fmt.Sprintf(", attach %v", d.Attach)
	}
	if d.Window != 0 {
		more += fmt.Sprintf(", window %v", d.Window)
	}
	if d.Prefix != "" {
		more += ", prefix " + d.Prefix
	}
	if d.Scattered {
		more += ", scattered"
	}
	if d.RandomStart {
		more += ", random start"
	}
	if d.Kind == Counter {
		return "counter" + more
	}
	if d.Claimed() {
		return fmt.Sprintf("layout %v%s", d.IDLayout(), more)
	}
	return fmt.Sprintf("%s for %v, layout %v%s", counted(d.Nodes, "node"), d.Allocation, d.IDLayout(), more)
}
