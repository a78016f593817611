package member

import (
	"io"
	"log/slog"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/sequencer"
)

// The greatest values of Options. Others wait for both after a member has crashed.
const (
	MaxTTL    = peer.MaxTTL    // 10 min
	MaxWindow = peer.MaxWindow // 1 h
)

// Options configure a member. The zero value is good for production.
type Options struct {
	// TTL is how long the store waits for a silent member before the others take it out and its node IDs become free. 1
	// s to 10 min; zero means 20 s. Uniqueness does not depend on it.
	TTL time.Duration

	// Window is how far ahead of the clock a horizon lies: how long a member makes IDs while the store is unavailable,
	// how long others wait for its node IDs after a crash, and all after the store has lost data. 3 ms, and three ticks
	// of each layout used, to 1 h; zero means 30 s. Sequencers whose definition has a shorter window use that.
	Window time.Duration

	// Nodes returns which node IDs of a sequencer to ask for. Nil, or a nil result, means any. It must always return
	// the same for the same arguments.
	Nodes func(name string, d sequencer.Definition) *sequencer.Range

	// Region is the share of the node IDs that the cluster of this store uses in every sequencer, so that clusters of
	// other regions, which know nothing of it, make other IDs. The zero value is all. The store keeps it from its first
	// sequencer on: a member of another region ends with a *RegionError.
	Region sequencer.Region

	// CheckpointEvery is the number of log entries between checkpoints. Zero means 1000. The log keeps one to two times
	// as many entries.
	CheckpointEvery int64

	// Order says what to do where existing IDs exceed those that the member would make: GoOn or WaitForIDs.
	Order Order

	// Journal gets what the member does about its node IDs and which IDs it gives, a line of JSON with one Write for
	// each thing, before that has any effect; `firn journal` checks it. A call for IDs then waits for a Write. After an
	// error the member logs that, and writes no more. Nil: no journal, which costs nothing.
	Journal io.Writer

	// Resumed delivers something whenever the system resumes from a snapshot, see Resumes: the member then makes no
	// more IDs of what it has reserved, and starts over at once. Without it a member finds out at its next renewal
	// whether there is a copy of it. Nil: nothing tells.
	Resumed <-chan struct{}

	// Owner is the name of this node for people, such as ids-1: what the store, status and log call it. It decides
	// nothing. While another living node has it, this one is called ids-1-2. Empty: it has no name.
	Owner string

	Host string // its host, for people; empty: unknown
	// tells it from other nodes that ask for its name, also after a restart; empty: it is another then
	Place  string
	Clock  *firn.SteadyClock // nil: one over package time
	Logger *slog.Logger      // nil: silent
}

// Validate returns an error that names the first option that is not valid, or nil.
func (o Options) Validate() error { return o.peer().Validate() }

func (o Options) peer() peer.Options {
	return peer.Options{
		TTL: o.TTL, Window: o.Window, Nodes: o.Nodes, Region: o.Region,
		CheckpointEvery: o.CheckpointEvery,
		Order:           o.Order, Journal: o.Journal, Resumed: o.Resumed,
		Owner: o.Owner, Host: o.Host, Place: o.Place, Clock: o.Clock, Logger: o.Logger,
	}
}

// Order says what a member does before its first node ID in a sequencer whose node IDs were used up to far beyond its
// clock: an earlier clock was ahead. New IDs would be unique, but smaller than existing ones. The zero value is GoOn.
type Order = peer.Order

// The orders.
const (
	GoOn       = peer.GoOn       // it makes IDs, and logs a warning
	WaitForIDs = peer.WaitForIDs // it makes none until the clock is there: Ready returns an *OrderError
)
