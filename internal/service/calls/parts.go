package calls

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/idtext"
	"github.com/firn-id/firn/sequencer"
)

// Parts has the fields of an ID, as JSON.
type Parts struct {
	ID     int64        `json:"id"`
	IDStr  string       `json:"id_str"`
	Kind   cluster.Kind `json:"kind,omitempty"` // of its sequencer; absent: snowflake
	*Made               // nil: it is the number of a counter
	Date   string       `json:"date,omitempty"`   // of a counter that is dated: 2026-11-26, 2026-11 or 2026
	Number int64        `json:"number,omitempty"` // in that date
	// no member ever had the node ID, as far as the server has read the log; false: one had, or that is unknown
	NeverHeld bool   `json:"never_held,omitempty"`
	Text      string `json:"text,omitempty"` // the ID in the form that the caller has asked for; empty: in none
}

// Made says when and where an ID was made, by its layout.
type Made struct {
	Time       string `json:"time"`       // RFC 3339 in UTC, to the millisecond or, for finer layouts, the nanosecond
	UnixMS     int64  `json:"unix_ms"`    // Time, rounded down
	Tick       int64  `json:"tick"`       // since the layout's epoch
	Datacenter int64  `json:"datacenter"` // 0 in a layout without datacenters
	Node       int64  `json:"node"`
	NodeID     int64  `json:"node_id"` // datacenter << node bits | node
	Sequence   int64  `json:"sequence"`
}

// lastTime is the first time that RFC 3339 can't write.
var lastTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// Decode decodes an ID of a sequencer. It returns an error when the layout is not valid, when the ID has more bits than
// the layout, or when its time is after the year 9999.
func Decode(q idtext.Sequencer, id firn.ID) (Parts, error) {
	if q.Kind == cluster.Counter {
		return decodeNumber(q, id)
	}
	layout := q.Layout
	p, err := layout.Decompose(q.Made(id))
	if err != nil {
		return Parts{}, err
	}
	at := layout.TickStart(p.Tick)
	if !at.Before(lastTime) {
		return Parts{},
			fmt.Errorf("%d is no ID of the layout %v: its time would be after the year 9999", int64(id), layout)
	}
	return Parts{
		ID: int64(id), IDStr: id.String(),
		Made: &Made{
			Time: tickTime(layout, at), UnixMS: at.UnixMilli(), Tick: p.Tick,
			Datacenter: p.Datacenter, Node: p.Node, NodeID: p.Datacenter<<layout.NodeBits | p.Node,
			Sequence: p.Sequence,
		},
	}, nil
}

func decodeNumber(q idtext.Sequencer, id firn.ID) (Parts, error) {
	p := Parts{ID: int64(id), IDStr: id.String(), Kind: q.Kind}
	if q.Dated == (sequencer.Dated{}) {
		return p, nil
	}
	_, date, number, ok := q.Dated.Split(id, time.UTC)
	if !ok {
		return p, fmt.Errorf("%d is no number of the counter %q: it does not begin with a %v and end with %d "+
			"digits from 1", int64(id), q.Name, q.Dated.Every, q.Dated.Digits)
	}
	p.Date, p.Number = date, number
	return p, nil
}

// tickTime is the text of the time at which a tick begins.
func tickTime(l firn.Layout, at time.Time) string {
	if l.Tick%time.Millisecond != 0 || l.Epoch.Nanosecond()%int(time.Millisecond) != 0 {
		return at.Format("2006-01-02T15:04:05.000000000Z")
	}
	return at.Format("2006-01-02T15:04:05.000Z")
}

// Span has the first and the last ID of a tick in a layout, as JSON.
type Span struct {
	First    int64  `json:"first"`
	FirstStr string `json:"first_str"`
	Last     int64  `json:"last"`
	LastStr  string `json:"last_str"`
	// when the tick begins: RFC 3339 in UTC, to the millisecond or, for finer layouts, the nanosecond
	Time   string `json:"time"`
	UnixMS int64  `json:"unix_ms"` // Time, rounded down
	Tick   int64  `json:"tick"`    // since the layout's epoch
}

// SpanOf returns the span of the tick that an instant lies in. It returns an error when the layout is not valid, when
// the instant lies outside the layout's lifetime, or after the year 9999.
func SpanOf(l firn.Layout, at time.Time) (Span, error) {
	tick, err := l.TickAt(at)
	if err != nil {
		return Span{}, err
	}
	begins := l.TickStart(tick)
	if !at.Before(lastTime) {
		return Span{}, fmt.Errorf("%s is after the year 9999; want an earlier time", at.UTC().Format(time.RFC3339Nano))
	}
	first, err1 := l.First(begins)
	last, err2 := l.Last(begins)
	return Span{
		First: int64(first), FirstStr: first.String(), Last: int64(last), LastStr: last.String(),
		Time: tickTime(l, begins), UnixMS: begins.UnixMilli(), Tick: tick,
	}, errors.Join(err1, err2)
}
