package cluster

import (
	"encoding/json"
	"errors"
)

// attachJSON is an Attach as JSON.
type attachJSON struct {
	Sequencer string `json:"sequencer"`
	Member    string `json:"member"`
	From      *int64 `json:"from,omitempty"`
	To        *int64 `json:"to,omitempty"`
}

// MarshalJSON writes the range as "from" and "to".
func (c Attach) MarshalJSON() ([]byte, error) {
	w := attachJSON{Sequencer: c.Sequencer, Member: c.Member}
	if c.Nodes != nil {
		w.From, w.To = &c.Nodes.From, &c.Nodes.To
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. An error is returned when a field is unknown, or only one of "from"
// and "to" is present.
func (c *Attach) UnmarshalJSON(data []byte) error {
	var r attachJSON
	if err := strictJSON(data, &r); err != nil {
		return err
	}
	*c = Attach{Sequencer: r.Sequencer, Member: r.Member}
	if (r.From == nil) != (r.To == nil) {
		return errors.New(`"from" without "to", or the other way round; give both or neither`)
	}
	if r.From != nil {
		c.Nodes = &Range{From: *r.From, To: *r.To}
	}
	return nil
}

// nodeOf reads the arguments of a command with a node ID, and checks that it is there.
func nodeOf(data []byte, args any, node **int64) error {
	if err := strictJSON(data, args); err != nil {
		return err
	}
	if *node == nil {
		return errors.New(`"node" is missing`)
	}
	return nil
}

// UnmarshalJSON reads a decline. An error is returned when a field is unknown, or "node" is missing.
func (c *Decline) UnmarshalJSON(data []byte) error {
	var r struct {
		Sequencer string `json:"sequencer"`
		Member    string `json:"member"`
		Node      *int64 `json:"node"`
	}
	if err := nodeOf(data, &r, &r.Node); err != nil {
		return err
	}
	*c = Decline{r.Sequencer, r.Member, *r.Node}
	return nil
}

// UnmarshalJSON reads a move. An error is returned when a field is unknown, or "node" is missing.
func (c *Move) UnmarshalJSON(data []byte) error {
	var r struct {
		Sequencer string `json:"sequencer"`
		Node      *int64 `json:"node"`
		To        string `json:"to"`
	}
	if err := nodeOf(data, &r, &r.Node); err != nil {
		return err
	}
	*c = Move{r.Sequencer, *r.Node, r.To}
	return nil
}

// UnmarshalJSON reads an allocate. An error is returned when a field is unknown, or "allocation" is missing.
func (c *Allocate) UnmarshalJSON(data []byte) error {
	var r struct {
		Sequencer  string      `json:"sequencer"`
		Created    int64       `json:"created"`
		Allocation *Allocation `json:"allocation"`
	}
	if err := strictJSON(data, &r); err != nil {
		return err
	}
	if r.Allocation == nil {
		return errors.New(`"allocation" is missing`)
	}
	*c = Allocate{r.Sequencer, r.Created, r.Allocation.Plain()}
	return nil
}

// MarshalJSON writes an empty policy as an empty list.
func (c SetPolicy) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Shares []Share `json:"shares"`
	}{append([]Share{}, c.Shares...)})
}

// UnmarshalJSON reads a policy. An error is returned when a field is unknown, or "shares" is missing.
func (c *SetPolicy) UnmarshalJSON(data []byte) error {
	var r struct {
		Shares []Share `json:"shares"`
	}
	if err := strictJSON(data, &r); err != nil {
		return err
	}
	if r.Shares == nil {
		return errors.New(`"shares" is missing; [] is for no policy`)
	}
	*c = SetPolicy{append([]Share(nil), r.Shares...)}
	return nil
}
