package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/fence"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
)

// joining is the member that HTTP sees, with its sequencer: not ready while there is none yet.
type joining struct {
	layout firn.Layout
	atomic.Pointer[member.Member]
	sequencer atomic.Pointer[member.Sequencer]
	opened    atomic.Bool // the store is
}

var (
	errOpening = fmt.Errorf("%w: its store is not open yet", member.ErrNotReady)
	errJoining = fmt.Errorf("%w: it is joining the cluster", member.ErrNotReady)
)

// join joins the cluster and attaches to the default sequencer. Unless it is to wait, an error is also
// returned when there is no node ID for it.
func (n *node) join(ctx context.Context, s store.Store) error {
	n.member.opened.Store(true)
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

// leave has the member leave, once it is known whether there is one.
func (j *joining) leave(joined <-chan error) {
	if joined != nil {
		<-joined
	}
	if m := j.Load(); m != nil {
		m.Leave()
	}
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
	if j.opened.Load() {
		return errJoining
	}
	return errOpening
}

func (j *joining) Layout() firn.Layout { return j.layout }
