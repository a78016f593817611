package sequencer

import "fmt"

// Order is what the order of a sequencer's IDs says. The zero value is OrderNode.
type Order uint8

// The orders.
const (
	// OrderNode means that the IDs of one member ascend. Those of a Snowflake also ascend over all members, as well as
	// their clocks agree.
	OrderNode Order = iota

	// OrderStrict means that IDs ascend over all members, callers and clocks: a call that begins after another one had
	// its answer gets a greater ID. Each answer waits for the store.
	OrderStrict
)

var orders = [...]string{"node", "strict"}

// String returns the order's name in JSON.
func (o Order) String() string {
	if int(o) >= len(orders) {
		return fmt.Sprintf("order %d", uint8(o))
	}
	return orders[o]
}

// MarshalText returns the order's name in JSON: node or strict.
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText wrote. An error is returned when the text names no order.
func (o *Order) UnmarshalText(text []byte) error {
	for order, name := range orders {
		if name == string(text) {
			*o = Order(order)
			return nil
		}
	}
	return fmt.Errorf("the order %.40q; want node or strict", text)
}

// Claimed reports whether members claim the IDs in blocks from the store, and need no node ID: those of a Counter, and
// all in strict order.
func (d Definition) Claimed() bool { return d.Kind == Counter || d.Order == OrderStrict }

// Shape returns in a few words what IDs that are claimed are: counter, counter by day, counter in strict order, or
// strict order. It is empty for others.
func (d Definition) Shape() string {
	switch {
	case !d.Claimed():
		return ""
	case d.Kind != Counter:
		return "strict order"
	}
	shape := "counter"
	if d.Dated.Every != 0 {
		shape += fmt.Sprintf(" by %v", d.Dated.Every)
	}
	if d.Order == OrderStrict {
		shape += " in strict order"
	}
	return shape
}

// validateClaimed is the part of Validate that is about what is claimed.
func (d Definition) validateClaimed() error {
	if others := d.claimed().Differences(d); len(others) > 0 {
		if d.Kind == Counter {
			return fmt.Errorf("%q of %s in a counter; want only after, max, order, prefix, dated, digits and "+
				"zone: its numbers have no layout and no node ID", others[0].Field, others[0].Wanted)
		}
		return fmt.Errorf("%q of %s with strict order; want only a layout, after, order and prefix: its IDs have no "+
			"node ID",
			others[0].Field, others[0].Wanted)
	}
	return nil
}

// claimed returns the definition without what has no meaning where IDs are claimed.
func (d Definition) claimed() Definition {
	c := Definition{Kind: d.Kind, Order: d.Order, After: d.After, Prefix: d.Prefix}
	if d.Kind == Counter {
		c.Max, c.Dated = d.Max, d.Dated
	} else {
		c.Layout = d.Layout
	}
	return c
}
