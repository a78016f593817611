package server

import (
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/idtext"
)

// Parts has the fields of an ID in a layout, as JSON.
type Parts struct {
	ID         int64  `json:"id"`
	IDStr      string `json:"id_str"`
	Time       string `json:"time"`       // RFC 3339 in UTC, to the millisecond or, for finer layouts, the nanosecond
	UnixMS     int64  `json:"unix_ms"`    // Time, rounded down
	Tick       int64  `json:"tick"`       // since the layout's epoch
	Datacenter int64  `json:"datacenter"` // 0 in a layout without datacenters
	Node       int64  `json:"node"`
	NodeID     int64  `json:"node_id"` // datacenter << node bits | node
	Sequence   int64  `json:"sequence"`
	NeverHeld  bool   `json:"never_held,omitempty"` // no member ever had the node ID, as far as the server has read the log; false: one had, or that is unknown
	Text       string `json:"text,omitempty"`       // the ID in the form that the caller has asked for; empty: in none
}

// lastTime is the first time that RFC 3339 can't write.
var lastTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// Decode decodes an ID of a sequencer. It returns an error when the layout is not valid, when the ID has more bits than
// the layout, or when its time is after the year 9999.
func Decode(q idtext.Sequencer, id firn.ID) (Parts, error) {
	layout := q.Layout
	p, err := layout.Decompose(q.Made(id))
	if err != nil {
		return Parts{}, err
	}
	at := layout.TickStart(p.Tick)
	if !at.Before(lastTime) {
		return Parts{}, fmt.Errorf("%d is no ID of the layout %v: its time would be after the year 9999", int64(id), layout)
	}
	format := "2006-01-02T15:04:05.000Z"
	if layout.Tick%time.Millisecond != 0 || layout.Epoch.Nanosecond()%int(time.Millisecond) != 0 {
		format = "2006-01-02T15:04:05.000000000Z"
	}
	return Parts{
		ID: int64(id), IDStr: id.String(),
		Time: at.Format(format), UnixMS: at.UnixMilli(), Tick: p.Tick,
		Datacenter: p.Datacenter, Node: p.Node, NodeID: p.Datacenter<<layout.NodeBits | p.Node,
		Sequence: p.Sequence,
	}, nil
}
