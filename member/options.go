package member

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/fence"
)

// Defaults for the fields of Options that are zero.
const (
	DefaultTTL             = 20 * time.Second
	DefaultCheckpointEvery = 1000
)

// Options say how a member behaves. The zero value is good for production.
type Options struct {
	// TTL is how long the store waits for a silent member before the others take it out and its node
	// IDs may be taken over. Zero means 20 s. At least a second. Uniqueness does not depend on it.
	TTL time.Duration

	// Window is how far ahead of the clock the horizon is written: for how long IDs flow while
	// the store is gone. Zero means 30 s. At least three ticks of each layout used.
	Window time.Duration

	// Nodes says which node IDs of a sequencer to wish for; nil, or nil as its answer, means any. It must answer
	// the same each time.
	Nodes func(name string, d cluster.Definition) *cluster.Range

	// RandomStart begins the sequence of each tick at random, see firn.WithRandomStart.
	RandomStart bool

	// CheckpointEvery is after how many entries of the log a checkpoint is written. Zero means 1000. The
	// log keeps between one and two times as many entries, for looking back.
	CheckpointEvery int64

	Owner  string            // what the store shows people of this member; decides nothing
	Clock  *firn.SteadyClock // nil: one over package time
	Logger *slog.Logger      // nil: silent
}

func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	o.Window = cmp.Or(o.Window, fence.DefaultWindow)
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, DefaultCheckpointEvery)
	if o.Clock == nil {
		o.Clock = firn.NewSteadyClock(0)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate reports what makes no sense, and nil when all does.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case o.TTL < time.Second:
		return fmt.Errorf("a TTL of %v is too short: want at least 1s", o.TTL)
	case o.Window < 3*time.Millisecond:
		return fmt.Errorf("a window of %v is too short: want at least 3ms", o.Window)
	case o.CheckpointEvery < 1:
		return fmt.Errorf("a checkpoint every %d entries; want at least 1", o.CheckpointEvery)
	}
	return nil
}

// wish is which node IDs of a sequencer to wish for; nil: any.
func (o Options) wish(name string, d cluster.Definition) *cluster.Range {
	if o.Nodes == nil {
		return nil
	}
	return o.Nodes(name, d)
}

// ValidateFor reports also what makes no sense for a sequencer of this name and definition.
func (o Options) ValidateFor(name string, d cluster.Definition) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if err := d.Validate(); err != nil {
		return err
	}
	o = o.withDefaults()
	if least := 3 * d.Layout.Tick; o.Window < least {
		return fmt.Errorf("a window of %v is too short: want at least %v, three ticks of the layout", o.Window, least)
	}
	if r, last := o.wish(name, d), d.Capacity()-1; r != nil && (r.From < 0 || r.To < r.From || r.To > last) {
		return fmt.Errorf("node IDs %d to %d of the sequencer %q; there are 0 to %d", r.From, r.To, name, last)
	}
	return nil
}
