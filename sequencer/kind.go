package sequencer

import (
	"fmt"

	"github.com/firn-id/firn"
)

// Kind is what the IDs of a sequencer are made of. The zero value is Snowflake.
type Kind uint8

// The kinds.
const (
	Snowflake Kind = iota // of a time, a node ID and a sequence, as the layout says
	Counter               // the numbers 1, 2, 3 and so on, perhaps with a date, without node IDs and a layout
)

var kinds = [...]string{"snowflake", "counter"}

// String returns the kind's name in JSON.
func (k Kind) String() string {
	if int(k) >= len(kinds) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kinds[k]
}

// MarshalText returns the kind's name in JSON: snowflake or counter.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote. An error is returned when the text names no kind.
func (k *Kind) UnmarshalText(text []byte) error {
	for kind, name := range kinds {
		if name == string(text) {
			*k = Kind(kind)
			return nil
		}
	}
	return fmt.Errorf("the kind %.40q; want snowflake or counter", text)
}

// validateCounter is Validate for a counter.
func (d Definition) validateCounter() error {
	if err := d.validateClaimed(); err != nil {
		return err
	}
	if err := d.Dated.validate(); err != nil {
		return err
	}
	switch {
	case d.After < 0:
		return fmt.Errorf("a counter after %d; want 0 or more", int64(d.After))
	case d.Max < 0:
		return fmt.Errorf("a counter to at most %d; want 1 or more, or 0 for %d", int64(d.Max), int64(firn.MaxID))
	case d.Max != 0 && d.Dated != (Dated{}):
		return fmt.Errorf("a counter to at most %d that is dated; want one of the two: the digits say how many "+
			"numbers a date has", int64(d.Max))
	case d.Last() <= d.After:
		return fmt.Errorf("a counter after %d to at most %d; want a greater maximum", int64(d.After), int64(d.Last()))
	}
	return d.validatePrefix()
}

// Last returns the greatest number of a counter: Max, or firn.MaxID if that is zero.
func (d Definition) Last() firn.ID {
	if d.Max == 0 {
		return firn.MaxID
	}
	return d.Max
}
