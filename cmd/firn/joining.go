package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/fence"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
)

// joining is the member that HTTP sees, with its sequencer: not ready while there is none yet.
type joining struct {
	layout firn.Layout
	atomic.Pointer[member.Member]
	sequencer atomic.Pointer[member.Sequencer]
	store     atomic.Pointer[store.Store] // nil until it is open
}

var (
	errOpening = fmt.Errorf("%w: its store is not open yet", member.ErrNotReady)
	errJoining = fmt.Errorf("%w: it is joining the cluster", member.ErrNotReady)
)

// join joins the cluster and attaches to the default sequencer. Unless it is to wait, an error is also
// returned when there is no node ID for it.
func (n *node) join(ctx context.Context, s store.Store) error {
	n.member.store.Store(&s)
	m, err := member.Join(ctx, s, n.memberOptions())
	if err != nil {
		return err
	}
	n.member.Store(m)
	sequencer, err := m.Sequencer(ctx, member.DefaultSequencer, n.definition())
	if err != nil {
		return err
	}
	n.member.sequencer.Store(sequencer)
	err = sequencer.Ready()
	var behind *fence.ClockBehindError
	if !n.wait && (errors.Is(err, member.ErrWaiting) || errors.As(err, &behind)) || errors.Is(err, firn.ErrLifetime) {
		return err
	}
	return nil
}

// leave has the member leave, once it is known whether there is one: joined brings why there is none, unless
// that is because it was told to stop. Nil: it is known already.
func (j *joining) leave(joined <-chan error) error {
	var err error
	if joined != nil {
		err = <-joined
	}
	if m := j.Load(); m != nil {
		m.Leave()
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

// Horizons tell about each node ID of a sequencer that was ever used.
func (j *joining) Horizons(ctx context.Context, name string) ([]member.Owner, error) {
	if m := j.Load(); m != nil {
		return m.Horizons(ctx, name)
	}
	return nil, errJoining
}

// Log is the log of the cluster; nil until the store is open.
func (j *joining) Log() store.Log {
	if s := j.store.Load(); s != nil {
		return *s
	}
	return nil
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
func (j *joining) Find(name string) (*member.Sequencer, bool) {
	if m := j.Load(); m != nil {
		return m.Find(name)
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
