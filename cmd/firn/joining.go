package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
)

// joining is the member that HTTP sees: not ready while there is none yet.
type joining struct {
	layout firn.Layout
	atomic.Pointer[member.Member]
}

var errStarting = fmt.Errorf("%w: its store is not open yet", member.ErrNotReady)

func (j *joining) Next(ctx context.Context) (firn.ID, error) {
	if m := j.Load(); m != nil {
		return m.Next(ctx)
	}
	return 0, errStarting
}

func (j *joining) Fill(ctx context.Context, ids []firn.ID) error {
	if m := j.Load(); m != nil {
		return m.Fill(ctx, ids)
	}
	return errStarting
}

func (j *joining) Ready() error {
	if m := j.Load(); m != nil {
		return m.Ready()
	}
	return errStarting
}

func (j *joining) Layout() firn.Layout { return j.layout }
