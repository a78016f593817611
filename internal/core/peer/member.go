// Package peer is one living member of a cluster. Package member is its public face. A member joins, replays the log,
// watches the pulse that the cluster's value assigns to it, and makes IDs with the node IDs that the value grants it,
// each kept by a fence. This package has the goroutines and the clock; package cluster, which is pure, decides.
//
// Whatever happens to the store, the session, the other members or the clock, callers of Next get a unique ID or
// an error. While the store is unavailable, a member makes IDs up to its horizon. A member that lost its session,
// or that the others took for dead, joins again under a new member ID, makes IDs up to its old horizon meanwhile,
// and switches over.
package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/journal"
	"github.com/firn-id/firn/store"
)

// An orderly leave gives the node IDs back, announces the leave and ends the session. Whatever the store does, each of
// these is over so long after the beginning.
const (
	returnWithin   = 3 * time.Second
	announceWithin = 4 * time.Second
	leaveWithin    = 5 * time.Second
)

// Member is a member of a cluster, made by Start or Join. Its methods are safe for concurrent use.
type Member struct {
	mark     atomic.Pointer[string] // of this process, in its pulses
	named    atomic.Pointer[string] // see name; nil: not yet
	store    store.Store            // set once, under mu, before there is an incarnation; see opened
	options  Options
	clock    *firn.CoarseClock // of all generators, over that of the options, by which everything else goes
	log      *slog.Logger
	troubles troubles

	serving context.Context         // ends when the sequencers must end
	release context.CancelCauseFunc // ends it, and says why

	judge    judge         // of the wall clock
	believed atomic.Uint64 // how many steps ahead ID time has followed

	rejoins  atomic.Uint64
	copies   atomic.Uint64             // how often it started over since there may be a copy of it
	copiedAt atomic.Pointer[time.Time] // when it did last; nil: never
	losses   atomic.Int64              // how often the store has lost data; changed by the goroutine that plays the log
	window   atomic.Int64              // the longest that the store ever had, in nanoseconds
	lookups  lookups
	unkept   sync.Map // *lostReservations by the name of the sequencer
	jobs     sync.Map // floorAt by the node ID of a job: what of its fence was seen

	stop context.CancelFunc // ends the goroutine that plays the log
	done chan struct{}      // closed when it has ended
	wake chan struct{}      // has it check for work

	journal *journal.Writer // nil: none

	cluster atomic.Pointer[string]  // the ID; nil: not known yet
	awaits  atomic.Pointer[awaited] // for what its join waits; nil: for nobody, or that is not known yet

	stopped atomic.Pointer[stopped] // why it can't replay the log further; nil: it can

	// has room for one error that did not come with the log, and after which the log is replayed again
	broken chan error

	tail tail

	registry registry
	counters counters
	keeper   keeper // of the fences and the pulse

	mu          sync.Mutex    // guards what follows
	value       cluster.Value // that it has reached
	entry       string        // the ID of the entry that led to value; empty after a checkpoint
	missed      time.Time     // when a read first showed that this is gone from the log; zero: none has
	floorAt     floorAt       // how the floor was last seen
	witness     witness
	incarnation *incarnation  // nil before the first
	hasJoined   bool          // under this incarnation or an earlier one
	changed     chan struct{} // closed when value or incarnation changes
	outcomes    map[string]chan<- outcome
	claims      int   // how many claims are under way; -1: ID time follows the wall, and there can be none
	err         error // why it ended
}

// Start starts a new member of the cluster in a store. It returns at once; the member opens the store and joins
// by itself. Ready says how far it has come, and Wait waits until it has joined. Until then, its ID is empty and
// its Value zero, and methods that need the store or the cluster return an ErrNotReady that says why. It is a
// member until Leave.
//
// The context of open ends when the member is told to leave. An open that fails with store.ErrUnavailable or
// store.ErrAmbiguous is called again within a second; Ready says why it fails, and the member does not log it. Any
// other error ends the member, see Err. The store is not closed by the member; whoever opened it may close it after
// Leave.
//
// The error says what is wrong with the options.
func Start(open func(context.Context) (store.Store, error), options Options) (*Member, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	living, stop := context.WithCancel(context.Background())
	serving, release := context.WithCancelCause(context.Background())
	options = options.withDefaults()
	m := &Member{
		options: options, log: options.Logger, troubles: troubles{log: options.Logger, last: map[string]time.Time{}},
		serving: serving, release: release, stop: stop, done: make(chan struct{}), wake: make(chan struct{}, 1),
		broken:  make(chan error, 1),
		keeper:  keeper{writing: make(lock, 1), soon: make(chan struct{}, 1), windows: map[time.Duration]bool{}},
		changed: make(chan struct{}), outcomes: map[string]chan<- outcome{},
		registry: registry{sequencers: map[string]*Sequencer{}},
		counters: counters{all: map[string]*Counter{}},
		clock:    firn.NewCoarseClock(options.Clock),
		lookups:  newLookups(),
		journal: journal.NewWriter(options.Journal, func(err error) {
			options.Logger.Error("can't write the journal: it ends here", "err", err)
		}),
	}
	m.judge = judge{others: m, clock: options.Clock, judging: make(lock, 1)}
	mark := fresh.Text()
	m.mark.Store(&mark)
	m.journal.Write(journal.Line{Do: journal.Begin, Journal: journal.Version, Member: options.Owner})
	go newPlayer(m).run(living, open)
	return m, nil
}

// Join is Start on an open store, then Wait. If that fails, the member has ended.
func Join(ctx context.Context, s store.Store, options Options) (*Member, error) {
	m, err := Start(func(context.Context) (store.Store, error) { return s, nil }, options)
	if err != nil {
		return nil, err
	}
	if err := m.Wait(ctx); err != nil {
		m.Leave()
		return nil, err
	}
	return m, nil
}

// Wait returns nil once the member has joined the cluster. The error is that of ctx, with the latest trouble, or says
// why the member has ended, as Err does.
func (m *Member) Wait(ctx context.Context) error {
	_, _, err := m.joined(ctx)
	return err
}

// Ready returns nil while it is a member of the cluster. Otherwise it returns an ErrNotReady that says why not
// (its store is not open yet, or it is joining), or what Err returns. It does not ask the store. An ErrNotReady that
// wraps a *cluster.UnreadableError is returned while it can't read an entry of the log: its sequencers make IDs up to
// their horizons, and it waits until the entry is passed over, see Skip.
func (m *Member) Ready() error {
	if m.over() {
		return m.ended()
	}
	if _, err := m.opened(); err != nil {
		return err
	}
	if err := m.stoppedAt(); err != nil {
		return err
	}
	if v, incarnation, _ := m.look(); incarnation == nil || !v.IsMember(incarnation.id) {
		return m.joiningFor(errJoining)
	}
	return nil
}

// Leave releases the node IDs, leaves the cluster and ends the member; later calls of its sequencers fail with
// ErrNotReady. It takes at most 5 s, also while the store is out of reach. The other members do the rest once the
// session has ended.
func (m *Member) Leave() {
	m.registry.leave()
	m.release(errLeft)
	m.registry.serving.Wait()
	m.stop()
	<-m.done
}

// Done is closed when the member has ended: by Leave, or because it can't go on, see Err.
func (m *Member) Done() <-chan struct{} { return m.done }

// Err returns nil until Done is closed and after Leave, and otherwise why the member can't go on: a *RegionError,
// store.ErrRefused, or what opening the store returned: its sequencers then make IDs up to their horizons, and end.
// After ErrExpelled they make none. A member that met an entry of the log that it can't read has not ended, see Ready.
func (m *Member) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// ID returns the current member ID. It changes when the member has to join again, and is empty before its first
// attempt.
func (m *Member) ID() string {
	_, incarnation, _ := m.look()
	if incarnation == nil {
		return ""
	}
	return incarnation.id
}

// Value returns the value that the member has reached.
func (m *Member) Value() cluster.Value {
	v, _, _ := m.look()
	return v
}

// Log returns the log that the member replays, and an ErrNotReady while its store is not open yet.
func (m *Member) Log() (store.Log, error) { return m.opened() }

// opened returns the store, and an error while it is not open yet. What runs only for members and joiners uses m.store.
func (m *Member) opened() (store.Store, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.store == nil {
		return nil, m.troubles.why(errOpening)
	}
	return m.store, nil
}

// openStore opens the store, and tries again after errors that may pass, until ctx ends.
func (m *Member) openStore(ctx context.Context, open func(context.Context) (store.Store, error)) error {
	for tries := 0; ; tries++ {
		s, err := open(ctx)
		switch {
		case err == nil && s == nil:
			return errNoStore
		case err == nil:
			m.mu.Lock()
			defer m.mu.Unlock()
			m.store = s
			m.troubles.keep(nil)
			return nil
		case !passes(err):
			return err
		}
		m.troubles.keep(err)
		if err := retry.Sleep(ctx, openBackoff.After(tries)); err != nil {
			return m.troubles.because(err)
		}
	}
}

// look returns the value and the incarnation, and a channel that is closed when one of them changes.
func (m *Member) look() (cluster.Value, *incarnation, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value, m.incarnation, m.changed
}

// rejoined waits until it is a member again, under any ID, if it has ever joined.
func (m *Member) rejoined(ctx context.Context) (cluster.Value, *incarnation, error) {
	if err := m.stoppedAt(); err != nil {
		return cluster.Value{}, nil, err
	}
	m.mu.Lock()
	hasJoined := m.hasJoined
	m.mu.Unlock()
	if !hasJoined {
		if err := m.Ready(); err != nil {
			return cluster.Value{}, nil, err
		}
	}
	return m.joined(ctx)
}

// joined waits until it is a member, under any ID.
func (m *Member) joined(ctx context.Context) (cluster.Value, *incarnation, error) {
	for {
		v, incarnation, changed := m.look()
		if m.over() {
			return v, incarnation, m.ended()
		}
		stop := m.stoppedAt()
		if incarnation != nil && v.IsMember(incarnation.id) && stop == nil {
			return v, incarnation, nil
		}
		select {
		case <-changed:
		case <-m.done:
		case <-ctx.Done():
			if stop != nil {
				return v, incarnation, fmt.Errorf("%w: %w", stop, ctx.Err())
			}
			return v, incarnation,
				fmt.Errorf("it has not joined the cluster: %w", m.joiningFor(m.troubles.because(ctx.Err())))
		}
	}
}

// poke has the player check for work.
func (m *Member) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// breaks has the member start over if err says that the store has lost data. The operation that failed began
// after so many losses.
func (m *Member) breaks(losses int64, err error) {
	if !errors.Is(err, store.ErrRolledBack) || losses != m.losses.Load() {
		return
	}
	select {
	case m.broken <- err:
	default:
	}
}

// over reports whether the member has ended.
func (m *Member) over() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// ended returns why the member has ended.
func (m *Member) ended() error {
	if err := m.Err(); err != nil {
		return err
	}
	return errHasLeft
}

// now returns ID time.
func (m *Member) now() time.Time { return time.Unix(0, m.options.Clock.Now()) }

// newID returns a fresh ID of 65 random bits.
func newID() string { return strings.ToLower(fresh.Text()[:13]) }
