package peer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// Minute is what the pulses of the cluster said once in a minute. One member writes it to the store, so that the cost
// is linear in the members.
type Minute struct {
	At      time.Time    `json:"at"`      // the beginning of the minute, by the clock of the member that wrote it
	Members int          `json:"members"` // with a pulse
	Ready   int          `json:"ready"`   // of them
	Rate    float64      `json:"rate"`    // IDs per second, of all
	Nodes   []NodeMinute `json:"nodes"`   // by owner; none of more than 2,000 members
}

// NodeMinute is what one member's pulse said once in a minute.
type NodeMinute struct {
	Owner  string        `json:"owner"`               // see Options.Owner
	Ready  bool          `json:"ready,omitempty"`     // see Vitals, as what follows
	Rate   float64       `json:"rate,omitempty"`      // IDs per second
	Offset time.Duration `json:"offset_ns,omitempty"` // see Vitals, in whole milliseconds
}

const (
	history = "history/"

	// mostNodes is of how many members a minute tells what each said. It must fit into a transaction of the store.
	mostNodes = 2000

	// kept is how many minutes the store keeps. Each replaces the one of an hour ago.
	kept = 60

	// A minute is written by the member whose turn it is, or else by one of those that follow, each of which waits for
	// the one before it.
	turns     = 4
	turnEvery = 10 * time.Second
)

func minuteKey(at time.Time) string { return fmt.Sprintf("%s%d", history, at.Unix()/60%kept) }

// recordHistory writes the minutes that are this member's to write, until ctx ends. An error of the store leaves a
// minute to others, or out.
func (m *Member) recordHistory(ctx context.Context) {
	for {
		now := m.Wall()
		at := now.Truncate(time.Minute).Add(time.Minute)
		if retry.Sleep(ctx, at.Sub(now)) != nil {
			return
		}
		turn := m.turn(at)
		if turn < 0 {
			continue
		}
		if retry.Sleep(ctx, time.Duration(turn)*turnEvery) != nil {
			return
		}
		if passed := m.Wall().Sub(at); passed < 0 || passed >= time.Minute || m.judged().Out() {
			continue // the clock has stepped, or others take it for wrong
		}
		losses := m.losses.Load()
		m.breaks(losses, m.recordMinute(ctx, at))
	}
}

// turn returns how many members are before this one in writing a minute; negative: enough.
func (m *Member) turn(at time.Time) int {
	v, incarnation, _ := m.look()
	if incarnation == nil {
		return -1
	}
	for turn := range turns {
		if v.InTurn(at.Unix()/60+int64(turn)) == incarnation.id {
			return turn
		}
	}
	return -1
}

// recordMinute writes a minute, unless another member has.
func (m *Member) recordMinute(ctx context.Context, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, turnEvery/2)
	defer cancel()
	key := minuteKey(at)
	before, err := m.store.Get(ctx, key)
	if err != nil {
		return err
	}
	if written, ok := readMinute(before.Value); ok && written.At.Equal(at) {
		return nil
	}
	pulses, err := m.Pulses(ctx)
	if err != nil {
		return err
	}
	value, err := json.Marshal(minuteOf(at, pulses))
	if err != nil {
		return err
	}
	if _, err = m.store.Commit(ctx, store.Txn{
		If:   []store.Condition{{Key: key, Version: before.Version}},
		Then: []store.Op{store.Put(key, value)},
	}); err != nil {
		return err
	}
	return m.forgetOld(ctx, pulses)
}

// minuteOf sums pulses up.
func minuteOf(at time.Time, pulses map[string]Pulse) Minute {
	minute := Minute{At: at.UTC(), Members: len(pulses), Nodes: []NodeMinute{}}
	for _, p := range pulses {
		v := p.Vitals
		rate := math.Round(10*v.Rate) / 10
		minute.Rate += rate
		if v.Ready {
			minute.Ready++
		}
		if len(pulses) <= mostNodes {
			minute.Nodes = append(minute.Nodes, NodeMinute{p.Owner, v.Ready, rate, v.Offset.Round(time.Millisecond)})
		}
	}
	minute.Rate = math.Round(10*minute.Rate) / 10
	slices.SortFunc(minute.Nodes, func(a, b NodeMinute) int { return cmp.Compare(a.Owner, b.Owner) })
	return minute
}

// readMinute reads what a key holds.
func readMinute(value []byte) (minute Minute, ok bool) {
	return minute, json.Unmarshal(value, &minute) == nil
}

// History reads the minutes of the last hour, by time. Some may be missing: nobody may have been there to write them.
// The error is one of the store.
func (m *Member) History(ctx context.Context) ([]Minute, error) {
	s, err := m.opened()
	if err != nil {
		return nil, err
	}
	all, err := s.List(ctx, history)
	if err != nil {
		return nil, err
	}
	now := m.trueWall()
	var hour []Minute
	for _, kv := range all {
		minute, ok := readMinute(kv.Value)
		if ago := now.Sub(minute.At); ok && ago < kept*time.Minute && ago > -time.Minute {
			hour = append(hour, minute)
		}
	}
	slices.SortFunc(hour, func(a, b Minute) int { return a.At.Compare(b.At) })
	return hour, nil
}
