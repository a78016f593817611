package servertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store"
)

// Member is a [calls.Member] of which a test says what it knows. It is attached to no sequencer, and creates and
// destroys none. The zero value is a member of an empty cluster. Its fields are set before it is used.
type Member struct {
	Name     string // its ID
	Of       string // the ID of its cluster
	Journal  store.Log
	Recalled store.Batch  // what it remembers of the log; empty: it has not read it
	Owned    []peer.Owner // of every sequencer
	OwnedErr error
	Wrote    time.Time // when the store answered a write

	mu     sync.Mutex // guards what follows
	value  cluster.Value
	pulses map[string]peer.Pulse
	hour   []peer.Minute
	nodes  []peer.NodeRecord
	err    error
}

// Cluster returns Of.
func (m *Member) Cluster() string { return m.Of }

// Apply applies commands to the member's value, at the positions that follow.
func (m *Member) Apply(commands ...cluster.Command) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range commands {
		m.value, _ = cluster.Apply(m.value, cluster.Entry{Position: m.value.Position() + 1, Command: c})
	}
}

// SetValue sets the member's value.
func (m *Member) SetValue(v cluster.Value) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.value = v
}

// SetPulses sets the pulses.
func (m *Member) SetPulses(pulses map[string]peer.Pulse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pulses = maps.Clone(pulses)
}

// SetHistory sets the minutes of the last hour.
func (m *Member) SetHistory(hour []peer.Minute) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hour = hour
}

// Fail has everything that asks the store or the cluster fail with err; nil ends that.
func (m *Member) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Ready returns the error of Fail.
func (m *Member) Ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// ID returns the name.
func (m *Member) ID() string { return m.Name }

// Value returns what Apply or SetValue has led to.
func (m *Member) Value() cluster.Value {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value
}

// Log returns Journal, and a peer.ErrNotReady when there is none.
func (m *Member) Log() (store.Log, error) {
	if m.Journal == nil {
		return nil, fmt.Errorf("%w: its store is not open yet", peer.ErrNotReady)
	}
	return m.Journal, nil
}

// Recent returns Recalled, as read now.
func (m *Member) Recent() (store.Batch, time.Time, error) {
	if m.Recalled.Checkpoint == nil && len(m.Recalled.Entries) == 0 {
		return store.Batch{}, time.Time{}, peer.ErrNotReady
	}
	return m.Recalled, time.Now(), nil
}

// Vitals returns those in the member's pulse.
func (m *Member) Vitals() peer.Vitals {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pulses[m.Name].Vitals
}

// Wall returns the time.
func (m *Member) Wall() time.Time { return time.Now() }

// Answered returns Wrote.
func (m *Member) Answered() time.Time { return m.Wrote }

// Pulses returns what SetPulses has set.
func (m *Member) Pulses(context.Context) (map[string]peer.Pulse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pulses, m.err
}

// PulseOf returns one of what SetPulses has set.
func (m *Member) PulseOf(_ context.Context, id string) (peer.Pulse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pulses[id], m.err
}

// History returns what SetHistory has set.
func (m *Member) History(context.Context) ([]peer.Minute, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hour, m.err
}

// SetNodes sets what is kept about nodes.
func (m *Member) SetNodes(nodes ...peer.NodeRecord) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes = nodes
}

// Nodes returns what SetNodes has set.
func (m *Member) Nodes(context.Context) ([]peer.NodeRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.nodes), m.err
}

// Forget removes one of them.
func (m *Member) Forget(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.nodes, func(r peer.NodeRecord) bool { return r.Name == name })
	switch {
	case m.err != nil:
		return m.err
	case i < 0:
		return peer.ErrNoNode
	}
	if _, alive := m.pulses[m.nodes[i].Member()]; alive {
		return peer.ErrAlive
	}
	m.nodes = slices.Delete(slices.Clone(m.nodes), i, i+1)
	return nil
}

// Owners returns Owned and OwnedErr.
func (m *Member) Owners(context.Context, string) ([]peer.Owner, error) {
	return m.Owned, m.OwnedErr
}

// Resume has nothing to end.
func (m *Member) Resume(context.Context) (until time.Time, err error) { return until, m.Ready() }

// Create pretends to create a sequencer.
func (m *Member) Create(context.Context, string, cluster.Definition, ...cluster.Quota) (bool, error) {
	return true, m.Ready()
}

// Destroy finds no sequencer to destroy.
func (m *Member) Destroy(_ context.Context, name string) error { return m.none(name) }

// StoppedAt is the position that Skip passes over; it refuses others.
const StoppedAt = 4711

// Skip passes over StoppedAt.
func (m *Member) Skip(_ context.Context, position int64) error {
	if position == StoppedAt {
		return m.Ready()
	}
	return &peer.SkipError{Position: position, Why: "this node can read the log; ask one that can't"}
}

// Expel applies the command to the value, like the methods below.
func (m *Member) Expel(_ context.Context, id string) error {
	return m.order(cluster.Expel{Member: id, By: m.Name})
}

// Drain drains a member.
func (m *Member) Drain(_ context.Context, sequencer, id string) error {
	return m.order(cluster.Drain{Sequencer: sequencer, Member: id})
}

// Undrain ends a Drain.
func (m *Member) Undrain(_ context.Context, sequencer, id string) error {
	return m.order(cluster.Undrain{Sequencer: sequencer, Member: id})
}

// Move moves a node ID.
func (m *Member) Move(_ context.Context, sequencer string, node int64, to string) error {
	return m.order(cluster.Move{Sequencer: sequencer, Node: node, To: to})
}

// Allocate changes an allocation.
func (m *Member) Allocate(ctx context.Context, sequencer string, a cluster.Allocation) error {
	if _, err := m.Lookup(ctx, sequencer); err != nil {
		return err
	}
	return m.order(cluster.Allocate{Sequencer: sequencer, Allocation: a})
}

// SetPolicy sets the policy.
func (m *Member) SetPolicy(_ context.Context, shares []cluster.Share) error {
	return m.order(cluster.SetPolicy{Shares: shares})
}

// order applies a command to the value, and returns a *peer.RefusedError when it is refused.
func (m *Member) order(c cluster.Command) error {
	if err := m.Ready(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, outcome := cluster.Apply(m.value, cluster.Entry{Position: m.value.Position() + 1, Command: c})
	if outcome.Result == cluster.Refused {
		return &peer.RefusedError{Command: c, Why: outcome.Why}
	}
	m.value = v
	return nil
}

// Attach never attaches.
func (m *Member) Attach(_ context.Context, name string) (*peer.Sequencer, error) {
	return nil, m.none(name)
}

// AttachOnDemand never attaches.
func (m *Member) AttachOnDemand(_ context.Context, name string) (*peer.Sequencer, error) {
	return nil, m.none(name)
}

// Sequencer finds nothing.
func (m *Member) Sequencer(string) (*peer.Sequencer, bool) { return nil, false }

// Lookup finds what is in the value.
func (m *Member) Lookup(_ context.Context, name string) (cluster.Sequencer, error) {
	if q, ok := m.Value().Sequencer(name); ok {
		return q, nil
	}
	return cluster.Sequencer{}, m.none(name)
}

func (m *Member) none(name string) error {
	if err := m.Ready(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %q", peer.ErrNoSequencer, name)
}

var _ calls.Member = (*Member)(nil)
