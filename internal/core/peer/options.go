package peer

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/core/fence"
)

// Defaults for the fields of Options that are zero.
const (
	DefaultTTL             = 20 * time.Second
	DefaultCheckpointEvery = 1000
)

// The greatest values of Options. Others wait for both after a member has crashed.
const (
	MaxTTL    = 10 * time.Minute
	MaxWindow = floor.MaxWindow
)

const (
	minTTL    = time.Second
	minWindow = 3 * time.Millisecond
)

// Options configure a member. The zero value is good for production. Package member says what they mean; here are also
// those that only a service and tests set.
type Options struct {
	TTL             time.Duration
	Window          time.Duration
	Nodes           func(name string, d cluster.Definition) *cluster.Range
	Region          cluster.Region
	CheckpointEvery int64
	Order           Order
	Journal         io.Writer
	Resumed         <-chan struct{}

	Owner  string
	Host   string
	Place  string
	Clock  *firn.SteadyClock
	Logger *slog.Logger

	// Start returns the first node ID that a member gets of a sequencer that this member creates: one of nodes. Nil:
	// one by chance, so that two clusters that should be one, or have one region by mistake, seldom make equal IDs. It
	// is for tests.
	Start func(nodes cluster.Range) int64

	// Pace is for how long the blocks of counters last.
	Pace counter.Pace

	// ID returns the member ID of the next incarnation. Nil: a fresh one. It is for tests.
	ID func() string

	// Vitals supplies the vital signs that the pulse shows besides those that the member fills in itself: Left,
	// Offset and RoundTrip. It must not call the member's methods that ask the store. Nil: none.
	Vitals func() Vitals
}

func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	o.Window = cmp.Or(o.Window, fence.DefaultWindow)
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, DefaultCheckpointEvery)
	if o.Start == nil {
		o.Start = func(nodes cluster.Range) int64 { return nodes.From + rand.N(nodes.Size()) }
	}
	if o.ID == nil {
		o.ID = newID
	}
	if o.Clock == nil {
		o.Clock = firn.NewSteadyClock(0)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate returns an error that names the first option that is not valid, or nil.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case o.TTL < minTTL:
		return fmt.Errorf("a TTL of %v is too short: want at least %v", o.TTL, minTTL)
	case o.TTL > MaxTTL:
		return fmt.Errorf("a TTL of %v is too long: want at most %v", o.TTL, MaxTTL)
	case o.Window < minWindow:
		return fmt.Errorf("a window of %v is too short: want at least %v", o.Window, minWindow)
	case o.Window > MaxWindow:
		return fmt.Errorf("a window of %v is too long: want at most %v", o.Window, MaxWindow)
	case o.CheckpointEvery < 1:
		return fmt.Errorf("a checkpoint every %d entries; want at least 1", o.CheckpointEvery)
	case o.Order > WaitForIDs:
		return fmt.Errorf("there is no order %d; want GoOn or WaitForIDs", o.Order)
	}
	return o.Region.Validate()
}

// wish returns which node IDs of a sequencer to ask for; nil: any.
func (o Options) wish(name string, d cluster.Definition) *cluster.Range {
	if o.Nodes == nil {
		return nil
	}
	return o.Nodes(name, d)
}

// window returns how far ahead of the clock the horizons of a sequencer lie.
func (o Options) window(d cluster.Definition) time.Duration {
	if d.Window == 0 {
		return o.Window
	}
	return min(d.Window, o.Window)
}

// ValidateFor is Validate, and also checks the options against a sequencer's definition.
func (o Options) ValidateFor(name string, d cluster.Definition) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if err := d.Validate(); err != nil {
		return err
	}
	o = o.withDefaults()
	if least := 3 * d.Layout.Tick; o.Window < least { // that of a definition is long enough
		return reason.With("unfit",
			fmt.Errorf("a window of %v is too short: want at least %v, three ticks of the layout", o.Window, least))
	}
	nodes, err := o.Region.Nodes(d)
	if err != nil {
		return reason.With("bad_request", fmt.Errorf("the sequencer %q in the region %v: %w", name, o.Region, err))
	}
	if d.Claimed() {
		return nil // which has no node IDs to wish for
	}
	r := o.wish(name, d)
	if r == nil || nodes.From <= r.From && r.From <= r.To && r.To <= nodes.To {
		return nil
	}
	wants, there := fmt.Sprintf("node IDs %d to %d", r.From, r.To), fmt.Sprintf("%d to %d", nodes.From, nodes.To)
	if r.From == r.To {
		wants = fmt.Sprintf("node ID %d", r.From)
	}
	if o.Region != (cluster.Region{}) {
		there += fmt.Sprintf(" in the region %v", o.Region)
	}
	return reason.With("unfit",
		fmt.Errorf("this member wants %s of the sequencer %q; there are %s", wants, name, there))
}
