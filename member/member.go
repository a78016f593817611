package member

import (
	"context"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store"
)

// DefaultSequencer is the sequencer of calls to a service that name no sequencer.
const DefaultSequencer = peer.DefaultSequencer

// Member is a member of a cluster, made by Start or Join. Its methods are safe for concurrent use.
type Member peer.Member

// Join is Start on an open store, then Wait. If that fails, the member has ended.
func Join(ctx context.Context, s store.Store, options Options) (*Member, error) {
	m, err := peer.Join(ctx, s, options.peer())
	return (*Member)(m), err
}

// Start starts a new member of the cluster in a store, and returns at once. The member opens the store and joins in the
// background: Ready says how far it has come, and Wait waits until it has joined. It is a member until Leave.
//
// The context of open ends when the member is told to leave. An open that fails with store.ErrUnavailable or
// store.ErrAmbiguous is called again within a second, and Ready says why it fails. Any other error ends the member, see
// Err. The member does not close the store; close it after Leave.
//
// An error is returned when an option is not valid; it says which.
func Start(open func(context.Context) (store.Store, error), options Options) (*Member, error) {
	m, err := peer.Start(open, options.peer())
	return (*Member)(m), err
}

// Resumes returns a channel for Options.Resumed that tells whenever the virtual machine resumes from a snapshot, until
// ctx ends. The hypervisor then gives the machine another generation ID (VMGenID), and Linux 6.8 and later report that
// as a uevent. A container gets it too, unless it has a user namespace of its own. An error is returned where the
// system has no such reports, or does not allow this process to read them.
func Resumes(ctx context.Context) (<-chan struct{}, error) { return peer.Resumes(ctx) }

// Wait returns nil once the member has joined the cluster. The error is that of ctx, with the latest trouble, or says
// why the member has ended, as Err does.
func (m *Member) Wait(ctx context.Context) error { return m.peer().Wait(ctx) }

// Ready returns nil while the member belongs to the cluster. Otherwise it returns an ErrNotReady that says why it does
// not, or what Err returns. It does not ask the store. It stays not ready after an entry of the log that it can't read,
// as an older program: its sequencers then make IDs up to their horizons.
func (m *Member) Ready() error { return m.peer().Ready() }

// Done is closed when the member has ended: by Leave, or because it can't go on, see Err.
func (m *Member) Done() <-chan struct{} { return m.peer().Done() }

// Err returns nil until Done is closed and after Leave, and otherwise why the member can't go on: a *RegionError,
// store.ErrRefused, or what opening the store returned. Its sequencers then make IDs up to their horizons, and end.
// After ErrExpelled they make none.
func (m *Member) Err() error { return m.peer().Err() }

// Leave releases the node IDs, leaves the cluster and ends the member. Later calls of its sequencers fail with
// ErrNotReady. It takes at most 5 s, also while the store is out of reach.
func (m *Member) Leave() { m.peer().Leave() }

// ID returns the member ID. It changes when the member joins again, and is empty before its first attempt.
func (m *Member) ID() string { return m.peer().ID() }

// Cluster returns the ID of the cluster: 1 to 64 letters and digits, which two clusters have in common only by a chance
// of 1 in 10^12. It is empty until the member has read it from the store.
func (m *Member) Cluster() string { return m.peer().Cluster() }

// EnsureSequencer creates a sequencer unless it exists, attaches to it, and waits for the outcome: this member may use
// a node ID, or Ready says why it can't yet. Another call with the same definition returns the same Sequencer.
//
// A *sequencer.NameError is returned when the name is not allowed, an *ExistsError when the sequencer exists with
// another definition, a *PrefixError when another sequencer has its prefix, an *EarlyError when its IDs would stay too
// small for long, firn.ErrLifetime when the layout's time is over or has not begun, and other errors when the
// definition is not valid, or when ctx or the member has ended.
func (m *Member) EnsureSequencer(ctx context.Context, name string, d sequencer.Definition) (*Sequencer, error) {
	s, err := m.peer().EnsureSequencer(ctx, name, d)
	return (*Sequencer)(s), err
}

// Create creates a sequencer without attaching to it, and reports whether it is new. The errors are those of
// EnsureSequencer.
func (m *Member) Create(ctx context.Context, name string, d sequencer.Definition) (created bool, err error) {
	return m.peer().Create(ctx, name, d)
}

// Attach attaches to an existing sequencer, whatever its definition, and waits as EnsureSequencer does. ErrNoSequencer
// is returned when no sequencer has the name, ErrUnfit when the member's options do not fit its definition, and other
// errors when ctx or the member has ended.
func (m *Member) Attach(ctx context.Context, name string) (*Sequencer, error) {
	s, err := m.peer().Attach(ctx, name)
	return (*Sequencer)(s), err
}

// Destroy ends a sequencer for ever, on every member, and returns once no member can make an ID of it: each has
// stopped, or its horizon has passed. That takes a round through the log when all members are healthy, and up to a
// window when one has crashed or is out of reach.
//
// ErrNoSequencer is returned when no sequencer has the name. A *UsedUntilError is returned when it is destroyed, but
// ctx ended before no member could make an ID. After any other error it may or may not be destroyed.
func (m *Member) Destroy(ctx context.Context, name string) error { return m.peer().Destroy(ctx, name) }

// Sequencer returns the sequencer of a name if this member was ever attached to it, and false otherwise. It does not
// ask the store.
func (m *Member) Sequencer(name string) (*Sequencer, bool) {
	s, ok := m.peer().Sequencer(name)
	return (*Sequencer)(s), ok
}

func (m *Member) peer() *peer.Member { return (*peer.Member)(m) }
