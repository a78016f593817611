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
	"github.com/firn-id/firn/internal/core/cluster"
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

// Options configure a member. The zero value is good for production.
type Options struct {
	// TTL is how long the store waits for a silent member before the others take it out and its node IDs become
	// free. 1 s to 10 min; zero means 20 s. Uniqueness does not depend on it.
	TTL time.Duration

	// Window is how far ahead of the clock a horizon lies: how long a member makes IDs while the store is
	// unavailable, and how long others wait for its node IDs after a crash, and all after the store has lost data. 3 ms, and
	// three ticks of each layout used, to 1 h; zero means 30 s. Sequencers whose definition
	// has a shorter window use that.
	Window time.Duration

	// NodeIDs is how many node IDs to ask for in each sequencer, 1 to 64; zero means 1. With several, goroutines that
	// run at the same time take IDs side by side, and the member makes as many times the IDs of one. Nobody gets a
	// second before everybody who wants one has a first. IDs that one goroutine takes then ascend only to within the
	// look-ahead (see firn.WithLookAhead) and a tick.
	NodeIDs int

	// Nodes returns which node IDs of a sequencer to ask for. Nil, or a nil result, means any. It must always
	// return the same for the same arguments.
	Nodes func(name string, d cluster.Definition) *cluster.Range

	// Region is the share of the node IDs that the cluster of this store uses in every sequencer, so that clusters of
	// other regions, which know nothing of it, make other IDs. The zero value is all. The store keeps it from its first
	// sequencer on: a member of another region ends with a *RegionError.
	Region cluster.Region

	// Start returns the first node ID that a member gets of a sequencer that this member creates: one of nodes. Nil: one by
	// chance, so that two clusters that should be one, or have one region by mistake, seldom make equal IDs. It is for
	// tests.
	Start func(nodes cluster.Range) int64

	// CheckpointEvery is the number of log entries between checkpoints. Zero means 1000. The log keeps one to two
	// times as many entries.
	CheckpointEvery int64

	// Vitals supplies the vital signs that the pulse shows besides those that the member fills in itself: Left,
	// Offset and RoundTrip. It must not call the member's methods that ask the store. Nil: none.
	Vitals func() Vitals

	// Order says what to do where existing IDs exceed those that the member would make: GoOn or WaitForIDs.
	Order Order

	// Journal gets what the member does about its node IDs and which IDs it gives, a line of JSON with one Write for each
	// thing, before that has any effect; `firn journal` checks it. A call for IDs then waits for a Write. After an error the
	// member logs that, and writes no more. Nil: no journal, which costs nothing.
	Journal io.Writer

	// Resumed delivers something whenever the system resumes from a snapshot, see Resumes: the member then makes no more IDs
	// of what it has reserved, and starts over at once. Without it a member finds out at its next renewal whether there is
	// a copy of it. Nil: nothing tells.
	Resumed <-chan struct{}

	// Owner is the name of this node for people, such as ids-1: what the store, status and log call it. It decides nothing.
	// While another living node has it, this one is called ids-1-2. Empty: it has no name.
	Owner string

	Host   string            // its host, for people; empty: unknown
	Place  string            // tells it from other nodes that ask for its name, also after a restart; empty: it is another then
	Clock  *firn.SteadyClock // nil: one over package time
	Logger *slog.Logger      // nil: silent
}

func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	o.Window = cmp.Or(o.Window, fence.DefaultWindow)
	o.NodeIDs = cmp.Or(o.NodeIDs, 1)
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, DefaultCheckpointEvery)
	if o.Start == nil {
		o.Start = func(nodes cluster.Range) int64 { return nodes.From + rand.N(nodes.Size()) }
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
	case o.NodeIDs < 1 || o.NodeIDs > cluster.MaxNodeIDs:
		return fmt.Errorf("%d node IDs in each sequencer; want 1 to %d", o.NodeIDs, cluster.MaxNodeIDs)
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
		return fmt.Errorf("a window of %v is too short: want at least %v, three ticks of the layout", o.Window, least)
	}
	nodes, err := o.Region.Nodes(d)
	if err != nil {
		return fmt.Errorf("the sequencer %q in the region %v: %w", name, o.Region, err)
	}
	if r := o.wish(name, d); r != nil && (r.From < nodes.From || r.To < r.From || r.To > nodes.To) {
		return fmt.Errorf("node IDs %d to %d of the sequencer %q; there are %d to %d", r.From, r.To, name, nodes.From, nodes.To)
	}
	return nil
}
