package sequencer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
)

// definitionJSON is a definition as JSON.
type definitionJSON struct {
	Kind           Kind         `json:"kind,omitempty"`  // absent: snowflake
	Nodes          *int64       `json:"nodes,omitempty"` // absent only where IDs are claimed
	Allocation     *Allocation  `json:"allocation,omitempty"`
	Epoch          *time.Time   `json:"epoch,omitempty"`
	Tick           *duration    `json:"tick,omitempty"`
	TimeBits       *int         `json:"time_bits,omitempty"`
	DatacenterBits *int         `json:"datacenter_bits,omitempty"`
	NodeBits       *int         `json:"node_bits,omitempty"`
	SequenceBits   *int         `json:"sequence_bits,omitempty"`
	NodeLowest     *bool        `json:"node_lowest,omitempty"`
	After          firn.ID      `json:"after,omitempty"`
	Max            firn.ID      `json:"max,omitempty"`
	Order          Order        `json:"order,omitempty"` // absent: node
	Dated          Every        `json:"dated,omitempty"` // absent: not dated
	Digits         int          `json:"digits,omitempty"`
	Zone           string       `json:"zone,omitempty"`
	Attach         AttachPolicy `json:"attach,omitempty"` // absent: on-demand
	Layout         *string      `json:"layout,omitempty"` // read, never written
	Window         *duration    `json:"window,omitempty"` // absent: that of the node
	Prefix         string       `json:"prefix,omitempty"`
	Scattered      bool         `json:"scattered,omitempty"`
	RandomStart    bool         `json:"random_start,omitempty"`
}

// duration is a time.Duration that is written like 10ms.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("the duration %.40q; want one such as 10ms or 30s", text)
	}
	*d = duration(parsed)
	return nil
}

// MarshalJSON writes every field, except those whose zero value is the default: kind, order, after, max,
// dated, digits, zone, attach, window, prefix, scattered and random_start, and except those that have no meaning. So a
// program that does not know one of these reads the definitions that do not need it.
func (d Definition) MarshalJSON() ([]byte, error) {
	fields := definitionJSON{
		Kind: d.Kind, Order: d.Order, After: d.After, Max: d.Max, Dated: d.Dated.Every, Digits: d.Dated.Digits,
		Zone: d.Dated.Zone, Attach: d.Attach, Prefix: d.Prefix, Scattered: d.Scattered, RandomStart: d.RandomStart,
	}
	if d.Window != 0 {
		fields.Window = (*duration)(&d.Window)
	}
	if l := &d.Layout; d.Kind != Counter {
		l.Epoch = l.Epoch.UTC()
		fields.Epoch, fields.Tick, fields.NodeLowest = &l.Epoch, (*duration)(&l.Tick), &l.NodeLowest
		fields.TimeBits, fields.DatacenterBits, fields.NodeBits = &l.TimeBits, &l.DatacenterBits, &l.NodeBits
		fields.SequenceBits = &l.SequenceBits
	}
	if !d.Claimed() {
		fields.Nodes, fields.Allocation = &d.Nodes, &d.Allocation
	}
	return json.Marshal(fields)
}

// UnmarshalJSON reads a definition. Absent fields of the layout are those of "layout", as firn.ParseLayout reads
// it, or else of firn.Default; absent nodes are all that the layout has, an absent allocation is to every member,
// an absent attach is on-demand, an absent window is that of the member, absent digits of a date are DefaultDigits.
// Where IDs are claimed there are no nodes, no allocation and no window, and a counter has no layout. An error is
// returned when a field is unknown or the definition is invalid.
func (d *Definition) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return errors.New("null; want a definition")
	}
	var base struct {
		Kind   Kind
		Order  Order
		Layout *string
	}
	if err := json.Unmarshal(data, &base); err != nil {
		return err
	}
	*d = Definition{Kind: base.Kind, Order: base.Order}
	if d.Kind != Counter {
		d.Layout = firn.Default
	}
	if base.Layout != nil {
		var err error
		if d.Layout, err = firn.ParseLayout(*base.Layout); err != nil {
			return err
		}
	}
	tick := duration(d.Layout.Tick)
	l := &d.Layout
	fields := definitionJSON{
		Allocation: &d.Allocation, Epoch: &l.Epoch, Tick: &tick, TimeBits: &l.TimeBits,
		DatacenterBits: &l.DatacenterBits, NodeBits: &l.NodeBits, SequenceBits: &l.SequenceBits,
		NodeLowest: &l.NodeLowest,
		Window:     (*duration)(&d.Window),
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&fields); err != nil {
		return err
	}
	l.Tick, l.Epoch = time.Duration(tick), l.Epoch.UTC()
	if d.Kind != Counter {
		if err := l.Validate(); err != nil {
			return err
		}
	}
	if !d.Claimed() {
		d.Nodes = l.NodeIDs()
	}
	d.After, d.Max, d.Attach = fields.After, fields.Max, fields.Attach
	if d.Dated = (Dated{fields.Dated, fields.Digits, fields.Zone}); d.Dated.Every != 0 && d.Dated.Digits == 0 {
		d.Dated.Digits = DefaultDigits
	}
	d.Prefix, d.Scattered, d.RandomStart = fields.Prefix, fields.Scattered, fields.RandomStart
	if fields.Nodes != nil {
		d.Nodes = *fields.Nodes
	}
	d.Allocation = d.Allocation.Plain()
	return d.Validate()
}
