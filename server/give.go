package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/server/door"
)

// Next gives an ID of a sequencer.
func (s *Service) Next(ctx context.Context, who *door.Caller, name string) (id firn.ID, err error) {
	ctx, end, err := s.begin(ctx, who, door.Issue, name, 1)
	if err != nil {
		return 0, err
	}
	defer end()
	err = s.from(ctx, name, func(m Member) (err error) {
		id, err = m.Next(ctx)
		return err
	})
	if err == nil {
		s.given.add(name, 1)
	}
	return id, err
}

// Many gives count IDs of a sequencer, in ascending order, to deliver, whose error it returns. They are valid until that
// returns. Many can be asked for at a time all over the server; whoever comes later waits.
func (s *Service) Many(ctx context.Context, who *door.Caller, name string, count int, deliver func([]firn.ID) error) error {
	if count < 1 || count > MaxCount {
		return Input(fmt.Errorf("count is %d; want a number from 1 to %d", count, MaxCount))
	}
	within, end, err := s.begin(ctx, who, door.Issue, name, count)
	if err != nil {
		return err
	}
	defer end()
	ids, release, err := s.hold(ctx, within, count)
	if err != nil {
		return err
	}
	defer release()
	if err := s.from(within, name, func(m Member) error { return m.Fill(within, ids) }); err != nil {
		return err
	}
	s.given.add(name, count)
	return deliver(ids)
}

// hold makes room for so many IDs until release is called. It waits for others to release theirs until within ends,
// which is within ctx.
func (s *Service) hold(ctx, within context.Context, count int) (ids []firn.ID, release func(), err error) {
	if !s.held.TryAcquire(int64(count)) {
		if err := s.held.Acquire(within, int64(count)); err != nil {
			if ctx.Err() == nil {
				err = ErrCrowded
			}
			return nil, nil, err
		}
	}
	return make([]firn.ID, count), func() { s.held.Release(int64(count)) }, nil
}

// from has a sequencer give something, and the member attach to it before if it must.
func (s *Service) from(ctx context.Context, name string, give func(Member) error) error {
	m := s.find(name)
	err := give(m)
	if errors.Is(err, member.ErrNotReady) {
		if m, err = s.attached(ctx, name, err); err != nil {
			return err
		}
		err = give(m)
	}
	if errors.Is(err, firn.ErrLifetime) || errors.Is(err, context.DeadlineExceeded) {
		if why := m.Ready(); errors.Is(why, firn.ErrLifetime) { // it says when that was, or will be
			return why
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, member.ErrNotReady) {
		return &busyError{s.patience, m.Layout().Rate()}
	}
	return err
}

// busyError is returned when a node did not come to give as many IDs as were asked for.
type busyError struct {
	within time.Duration
	rate   float64 // IDs per second
}

func (e *busyError) Error() string {
	return fmt.Sprintf("no answer within %v: a node of this layout makes at most %.0f IDs a second; ask for fewer, or more servers", e.within, e.rate)
}

// Decode takes an ID of a sequencer apart. Any member can.
func (s *Service) Decode(ctx context.Context, who *door.Caller, name string, id firn.ID) (Parts, error) {
	ctx, end, err := s.begin(ctx, who, door.All, name, 1)
	if err != nil {
		return Parts{}, err
	}
	defer end()
	layout := s.member.Layout()
	if name != member.DefaultSequencer {
		q, err := s.lookup(ctx, name)
		if err != nil {
			return Parts{}, err
		}
		layout = q.Definition().IDLayout()
	}
	parts, err := Decode(layout, id)
	if err != nil {
		return Parts{}, Input(err)
	}
	return parts, nil
}
