// Package member is one living member of a cluster: it holds a node ID, keeps its fence, and
// makes IDs with it. It owns the clock, and the goroutine is the caller's: the one that
// runs Run.
//
// Whatever happens to the store, the session, the node ID or the clock, callers of Next get a
// unique ID or an error. While the store is gone IDs flow until the horizon; when the node ID is lost the
// member claims another while it uses up what it has, and switches over.
package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/fence"
	"github.com/firn-id/firn/store"
)

// ErrNotReady is returned when no ID can be given now: no node ID is held yet or any more, its
// horizon is reached, or the member has left. It passes by itself, except after Run has returned.
var ErrNotReady = errors.New("member: not ready to make IDs")

// Defaults for the fields of Config that are zero.
const (
	DefaultSequencer = "default"
	DefaultTTL       = 20 * time.Second
)

// Config says what a member needs and how it behaves.
type Config struct {
	Store  store.Store
	Layout firn.Layout

	// Sequencer names the ID space; members of one name share their node IDs and must have the
	// same layout. Empty means "default".
	Sequencer string

	// Nodes are the node IDs to choose from. Nil means all that the layout has.
	Nodes *Range

	// TTL is how long the store waits for a silent member before others may take over its node
	// ID. Zero means 20 s. Uniqueness does not depend on it.
	TTL time.Duration

	// Window is how far ahead of the clock the horizon is written: for how long IDs flow while
	// the store is gone. Zero means 30 s. At least three ticks of the layout.
	Window time.Duration

	// Wait makes Run wait for a node ID at the start, instead of returning the error, when none
	// is free or the clock is behind all that are.
	Wait bool

	// RandomStart begins the sequence of each tick at random, see firn.WithRandomStart.
	RandomStart bool

	Owner  string            // what the store shows people of this member; decides nothing
	Clock  *firn.SteadyClock // nil: one over package time
	Logger *slog.Logger      // nil: silent
}

// Range is the node IDs from First to Last.
type Range struct{ First, Last int64 }

// Member is made by New. Its methods are safe for concurrent use.
type Member struct {
	config Config
	fences fence.Config
	log    *slog.Logger

	current atomic.Pointer[hold] // what Next uses; nil while there is nothing to use

	switching sync.RWMutex // held for writing while current is exchanged
	used      time.Time    // guarded by switching: the end of the last tick of any generator before

	why atomic.Pointer[string] // why current is nil or no longer moves

	// The rest belongs to the goroutine of Run.
	session store.Session
	agreed  bool  // the layout is that of all members
	latest  *hold // the newest node ID; it becomes current once the clock is past its floor
	nags    map[string]time.Time
}

// Validate reports what makes no sense in the configuration, apart from the store, and nil when all does.
func (c Config) Validate() error {
	c = c.withDefaults()
	if err := c.Layout.Validate(); err != nil {
		return err
	}
	if n := c.nodes(); n.First < 0 || n.Last < n.First || n.Last >= c.Layout.NodeIDs() {
		return fmt.Errorf("member: node IDs %d to %d: the layout has 0 to %d", n.First, n.Last, c.Layout.NodeIDs()-1)
	}
	if least := max(3*c.Layout.Tick, 3*time.Millisecond); c.Window < least {
		return fmt.Errorf("member: a window of %v is too short: at least %v, three ticks of the layout", c.Window, least)
	}
	if c.TTL < time.Second {
		return fmt.Errorf("member: a TTL of %v is too short: at least 1s", c.TTL)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Sequencer = cmp.Or(c.Sequencer, DefaultSequencer)
	c.TTL = cmp.Or(c.TTL, DefaultTTL)
	c.Window = cmp.Or(c.Window, fence.DefaultWindow)
	if c.Clock == nil {
		c.Clock = firn.NewSteadyClock(0)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) nodes() Range {
	if c.Nodes == nil {
		return Range{0, c.Layout.NodeIDs() - 1}
	}
	return *c.Nodes
}

// New returns a member that does nothing until Run. An error is returned when the configuration
// is not valid or has no store.
func New(config Config) (*Member, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Store == nil {
		return nil, errors.New("member: there is no store")
	}
	config = config.withDefaults()
	m := &Member{config: config, log: config.Logger, nags: map[string]time.Time{}}
	m.fences = fence.Config{
		Store:  config.Store,
		Prefix: "sequencers/" + config.Sequencer + "/workers/",
		Owner:  config.Owner,
		Window: config.Window,
	}
	m.say("it has not joined yet")
	return m, nil
}

// Next returns the next ID. It waits for the clock, by milliseconds, until ctx ends, but not for the
// store: ErrNotReady is returned when an ID can't be given.
func (m *Member) Next(ctx context.Context) (firn.ID, error) {
	var id firn.ID
	err := m.with(func(g *firn.Generator) (err error) {
		id, err = g.Next(ctx)
		return err
	})
	return id, err
}

// Fill fills ids with the next IDs, in ascending order. It waits and fails as Next does; after
// an error ids is zeroed.
func (m *Member) Fill(ctx context.Context, ids []firn.ID) error {
	err := m.with(func(g *firn.Generator) error { return g.Fill(ctx, ids) })
	if err != nil {
		clear(ids)
	}
	return err
}

// with calls f with the current generator, and again with the next one if that was stopped
// because another took its place.
func (m *Member) with(f func(*firn.Generator) error) error {
	for {
		h := m.current.Load()
		if h == nil {
			return m.notReady()
		}
		err := f(h.generator)
		switch {
		case errors.Is(err, firn.ErrStopped):
			m.switching.RLock() // whoever stopped it puts another in its place
			m.switching.RUnlock()
		case errors.Is(err, firn.ErrBound):
			if m.current.Load() == h {
				return m.notReady()
			}
		default:
			return err
		}
	}
}

func (m *Member) notReady() error { return fmt.Errorf("%w: %s", ErrNotReady, *m.why.Load()) }

// Ready returns nil when Next can be expected to give an ID, and else an ErrNotReady that says why not.
func (m *Member) Ready() error {
	h := m.current.Load()
	if h == nil || m.now().Add(m.config.Layout.Tick).After(h.fence.Horizon()) {
		return m.notReady()
	}
	return nil
}

// Layout returns the layout of the IDs.
func (m *Member) Layout() firn.Layout { return m.config.Layout }

// NodeID returns the node ID that is in use, and whether there is one.
func (m *Member) NodeID() (int64, bool) {
	h := m.current.Load()
	if h == nil {
		return 0, false
	}
	return h.fence.Node(), true
}

// now is ID time.
func (m *Member) now() time.Time { return time.Unix(0, m.config.Clock.Now()) }

func (m *Member) say(why string) { m.why.Store(&why) }
