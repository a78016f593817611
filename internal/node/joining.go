package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
)

// joining is the member that HTTP sees, with its sequencer: not ready while there is none yet.
type joining struct {
	layout firn.Layout
	atomic.Pointer[member.Member]
	sequencer atomic.Pointer[member.Sequencer]
	former    atomic.Pointer[member.Member] // whose sequencers are used up, after the store has lost data; else nil
	store     atomic.Pointer[store.Store]   // nil until it is open
}

var (
	errOpening = fmt.Errorf("%w: its store is not open yet", member.ErrNotReady)
	errJoining = fmt.Errorf("%w: it is joining the cluster", member.ErrNotReady)
)

// join joins the cluster and attaches to the default sequencer, again if the store loses data meanwhile. Unless it is to
// wait, an error is also returned when there is no node ID for a node that starts.
func (n *Node) join(ctx context.Context, s store.Store) error {
	n.member.store.Store(&s)
	starts := n.member.Load() == nil
	err := n.joinOnce(ctx, s)
	for errors.Is(err, store.ErrRolledBack) {
		err = n.joinOnce(ctx, s)
	}
	if NoNodeID(err) && (n.config.Wait || !starts) {
		return nil
	}
	return err
}

// joinOnce joins as a new member. The error is also why there is no node ID for it, if that does not pass by itself soon.
func (n *Node) joinOnce(ctx context.Context, s store.Store) error {
	m, err := member.Join(ctx, s, n.config.memberOptions())
	if err != nil {
		return err
	}
	if before := n.member.Swap(m); before != nil && !n.member.former.CompareAndSwap(nil, before) {
		before.Leave()
	}
	sequencer, err := m.EnsureSequencer(ctx, member.DefaultSequencer, n.config.definition())
	if err != nil {
		return err
	}
	n.member.succeed(ctx, sequencer)
	if err := sequencer.Ready(); NoNodeID(err) || errors.Is(err, firn.ErrLifetime) {
		return err
	}
	return nil
}

// succeed has a sequencer give the IDs. One of a former member, whose store has lost data, is used up before: it has
// time that it wrote down in the store as it was.
func (j *joining) succeed(ctx context.Context, s *member.Sequencer) {
	if former := j.sequencer.Load(); former != nil {
		ctx, cancel := context.WithTimeout(ctx, former.Stats().Left)
		defer cancel()
		for state := range s.Changes(ctx) {
			if state.Phase == member.Attached {
				break
			}
		}
	}
	j.sequencer.Store(s)
	if former := j.former.Swap(nil); former != nil {
		former.Leave()
	}
}

// leave has the member leave, once it is known whether there is one: joined brings why there is none, unless
// that is because it was told to stop. Nil: it is known already.
func (j *joining) leave(joined <-chan error) error {
	var err error
	if joined != nil {
		err = <-joined
	}
	for _, m := range []*member.Member{j.former.Load(), j.Load()} {
		if m != nil {
			m.Leave()
		}
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (j *joining) Next(ctx context.Context) (firn.ID, error) {
	if s := j.sequencer.Load(); s != nil {
		return s.Next(ctx)
	}
	return 0, j.notReady()
}

func (j *joining) Fill(ctx context.Context, ids []firn.ID) error {
	if s := j.sequencer.Load(); s != nil {
		return s.Fill(ctx, ids)
	}
	return j.notReady()
}

func (j *joining) Ready() error {
	if s := j.sequencer.Load(); s != nil {
		return s.Ready()
	}
	return j.notReady()
}

func (j *joining) notReady() error {
	if j.store.Load() != nil {
		return errJoining
	}
	return errOpening
}

func (j *joining) Layout() firn.Layout { return j.layout }

// ID is the member's own ID, and empty until it has joined.
func (j *joining) ID() string {
	if m := j.Load(); m != nil {
		return m.ID()
	}
	return ""
}

// Value is the value of the cluster that it has reached.
func (j *joining) Value() cluster.Value {
	if m := j.Load(); m != nil {
		return m.Value()
	}
	return cluster.Value{}
}

// Pulses are those of all that live.
func (j *joining) Pulses(ctx context.Context) (map[string]member.Pulse, error) {
	if m := j.Load(); m != nil {
		return m.Pulses(ctx)
	}
	return nil, errJoining
}

// Resume ends the wait that follows when the store has lost data.
func (j *joining) Resume(ctx context.Context) (until time.Time, err error) {
	if m := j.Load(); m != nil {
		return m.Resume(ctx)
	}
	return until, errJoining
}

// Horizons tell about each node ID of a sequencer that was ever used.
func (j *joining) Horizons(ctx context.Context, name string) ([]member.Owner, error) {
	if m := j.Load(); m != nil {
		return m.Horizons(ctx, name)
	}
	return nil, errJoining
}

// Log is the log of the cluster, once the store is open.
func (j *joining) Log() (store.Log, error) {
	if s := j.store.Load(); s != nil {
		return *s, nil
	}
	return nil, errOpening
}

// Lookup returns a sequencer of the cluster, once it has joined.
func (j *joining) Lookup(ctx context.Context, name string) (cluster.Sequencer, error) {
	if m := j.Load(); m != nil {
		return m.Lookup(ctx, name)
	}
	return cluster.Sequencer{}, j.notReady()
}

// Create creates a sequencer, once it has joined.
func (j *joining) Create(ctx context.Context, name string, d cluster.Definition) (created bool, err error) {
	if m := j.Load(); m != nil {
		return m.Create(ctx, name, d)
	}
	return false, j.notReady()
}

// Attach attaches to a sequencer, once it has joined.
func (j *joining) Attach(ctx context.Context, name string) (*member.Sequencer, error) {
	if m := j.Load(); m != nil {
		return m.Attach(ctx, name)
	}
	return nil, j.notReady()
}

// AttachOnDemand attaches to a sequencer because of a call for an ID, once it has joined.
func (j *joining) AttachOnDemand(ctx context.Context, name string) (*member.Sequencer, error) {
	if m := j.Load(); m != nil {
		return m.AttachOnDemand(ctx, name)
	}
	return nil, j.notReady()
}

// Find is the sequencer of a name, if it is attached to it.
func (j *joining) Sequencer(name string) (*member.Sequencer, bool) {
	for _, m := range []*member.Member{j.Load(), j.former.Load()} {
		if m == nil {
			continue
		}
		if s, ok := m.Sequencer(name); ok {
			return s, true
		}
	}
	return nil, false
}

// Destroy destroys a sequencer, once it has joined.
func (j *joining) Destroy(ctx context.Context, name string) error {
	if m := j.Load(); m != nil {
		return m.Destroy(ctx, name)
	}
	return j.notReady()
}
