package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/attachment"
	"github.com/firn-id/firn/internal/fence"
	"github.com/firn-id/firn/store"
)

// driver does what package attachment decides. It belongs to the goroutine of its sequencer.
type driver struct {
	state   attachment.State
	tenures [2]tenure // what is behind those of state
	looked  grant     // the grant that state knows
	noticed int       // how many of the notices that the layout's time runs out were given

	guard   store.Condition // under which node IDs can be claimed; without a key while that is not known
	from    time.Time       // no ID may be from before that
	guarded int64           // after how many losses of data they were read; they count for no other
}

// tenure is a node ID that was claimed.
type tenure struct {
	fence     *fence.Fence
	generator *firn.Generator // nil until IDs are made under it
	losses    int64           // how often the store had lost data before
}

// run looks how things stand and does what follows, until ctx ends or the sequencer is destroyed.
func (s *Sequencer) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		losses := s.m.losses.Load()
		action, err := s.look(ctx)
		if err == nil {
			err = s.do(ctx, action)
		}
		wait := s.untilNext()
		switch st := s.status.Load(); {
		case st.empty && st.granted.kind == attachment.Destroyed:
			return
		case err != nil:
			s.failed(ctx, losses, err)
			wait = min(wait, backoff.After(failures), s.m.options.Window/6)
			failures++
		case action.Kind != attachment.Wait:
			continue
		default:
			failures = 0
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-time.After(wait):
		}
	}
	s.finish(errLeft)
	for action, _ := s.look(ctx); action.Kind == attachment.Return; action, _ = s.look(ctx) {
		if err := s.giveBack(context.WithoutCancel(ctx), action.Slot); err != nil {
			s.m.log.Warn("a node ID was not given back; it is free once its session has ended", "sequencer", s.name, "err", err)
			return
		}
	}
}

// look has the state follow from how things stand, shows that to everybody, and returns what is to be done.
func (s *Sequencer) look(ctx context.Context) (action attachment.Action, err error) {
	before := s.state
	s.update(func(st *status) bool {
		s.looked = st.granted
		if ctx.Err() != nil {
			s.looked = grant{kind: attachment.Unwanted}
		}
		s.state, action = attachment.Step(s.state, s.sight(st))
		err = s.show(st, action)
		return true
	})
	for i, t := range s.state.Tenures {
		if t.Lost && !before.Tenures[i].Lost && s.looked.kind == attachment.Granted {
			s.m.log.Warn("lost the node ID, asking for another", "sequencer", s.name, "node", t.Node, "usable_until", s.tenures[i].fence.Horizon())
		}
	}
	return action, err
}

// sight is how things stand.
func (s *Sequencer) sight(st *status) attachment.Look {
	now := s.m.now()
	look := attachment.Look{Grant: s.looked.plain(), Era: s.m.era.Load(), Stepped: s.m.options.Clock.Ahead() != 0}
	for i, t := range s.tenures {
		if t.fence != nil {
			look.Tenures[i] = attachment.Sight{
				Due:  !now.Before(t.fence.Floor()),
				Over: !now.Before(t.fence.Horizon()) || t.generator != nil && t.generator == st.withdrawn,
				Lost: t.fence.State().Phase != fence.Held || s.m.stale(t),
			}
		}
	}
	return look
}

// show has the status follow from the state. Generators are exchanged here: callers whose generator was stopped wait for
// the status, and find the next one in it.
func (s *Sequencer) show(st *status, action attachment.Action) (err error) {
	for i, t := range s.tenures {
		if t.generator != nil && s.state.Tenures[i].Phase == attachment.Stopped {
			st.used = later(st.used, t.generator.Stop())
		}
	}
	if action.Kind == attachment.Use {
		if err = s.generate(&s.tenures[action.Slot], st.used); err != nil {
			s.step(attachment.NotUsed{Slot: action.Slot})
		} else {
			st.why = errAtHorizon
		}
	}
	st.inUse, st.extended, st.latest = tenure{}, false, tenure{}
	if i := s.state.InUse(); i >= 0 {
		st.inUse, st.extended = s.tenures[i], s.state.Tenures[i].Phase == attachment.Used
		if s.state.Tenures[i].Lost && s.looked.kind == attachment.Granted {
			st.why = errLost
		}
	}
	if i := s.state.Latest(); i >= 0 {
		st.latest = s.tenures[i]
		if s.state.Tenures[i].Phase == attachment.Claimed && err == nil {
			st.why = fmt.Errorf("node ID %d may not be used before %v; waiting for the clock to get there", st.latest.fence.Node(), st.latest.fence.Floor().UTC())
		}
	}
	switch s.looked.kind {
	case attachment.InLine, attachment.Destroyed:
		st.settled = true
	case attachment.Granted:
		st.settled = st.settled || st.extended || st.latest != st.inUse
	}
	if empty := s.state.Empty(); empty != st.empty {
		st.empty = empty
		s.m.poke()
	}
	return err
}

// generate makes the generator of a tenure, which goes on after what those before it have used.
func (s *Sequencer) generate(t *tenure, used time.Time) (err error) {
	options := []firn.Option{
		firn.WithClock(s.m.options.Clock), firn.FailAtBound(),
		firn.WithFloor(later(t.fence.Floor(), used)), firn.WithBound(t.fence.Horizon()),
		firn.WithWaits(&s.waits),
	}
	if s.m.options.RandomStart {
		options = append(options, firn.WithRandomStart())
	}
	t.generator, err = firn.NewGenerator(s.layout, t.fence.Node(), options...)
	return err
}

func (s *Sequencer) step(e attachment.Event) (action attachment.Action) {
	s.state, action = attachment.Step(s.state, e)
	return action
}

// do does what needs the store or the log.
func (s *Sequencer) do(ctx context.Context, action attachment.Action) error {
	switch action.Kind {
	case attachment.Believe:
		return s.m.believe(ctx, s)
	case attachment.Claim:
		return s.claim(ctx)
	case attachment.Decline:
		return s.decline(ctx)
	case attachment.Return:
		return s.giveBack(ctx, action.Slot)
	default:
		return nil
	}
}

// claim claims the node ID that was granted, under the session of the same incarnation.
func (s *Sequencer) claim(ctx context.Context) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	from, floored, err := s.m.floored(ctx)
	if err != nil {
		return err
	}
	config := s.fences
	config.Guards, config.NotBefore = []store.Condition{s.guard, floored}, later(s.from, from)
	config.Before = s.before()
	f, err := fence.Claim(ctx, config, s.looked.incarnation.session, s.looked.node)
	var held *fence.HeldError
	var behind *fence.ClockBehindError
	switch before := s.state; {
	case err == nil:
		s.step(attachment.TookIt{})
		s.tenures[s.state.Latest()] = tenure{fence: f, losses: s.looked.incarnation.losses}
		s.m.log.Info("claimed a node ID", "sequencer", s.name, "node", f.Node(), "from", f.Floor(), "horizon", f.Horizon())
	case errors.Is(err, fence.ErrClosed):
		s.guard = store.Condition{} // somebody has ended the generation, or begun another
	case errors.As(err, &held):
		if s.step(attachment.HeldByOther{}); s.state != before {
			return nil
		}
	case errors.As(err, &behind):
		if s.step(attachment.ClockBehind{}).Kind == attachment.Decline {
			return s.decline(ctx)
		}
	}
	return err
}

// decline asks the log for another node ID.
func (s *Sequencer) decline(ctx context.Context) error {
	o, err := s.m.do(ctx, func(string) cluster.Command {
		return cluster.Decline{Sequencer: s.name, Member: s.looked.incarnation.id, Node: s.looked.node}
	})
	if err == nil && o.missed {
		err = errMissed
	}
	if err != nil {
		return err
	}
	s.m.grant() // by the value that has the decline
	s.step(attachment.Declined{Same: s.grant() == s.looked})
	return nil
}

// giveBack gives a node ID back, unless the store does not know of it any more.
func (s *Sequencer) giveBack(ctx context.Context, slot int) error {
	if t := s.tenures[slot]; !s.m.stale(t) {
		ctx, cancel := context.WithTimeout(ctx, leaveWithin)
		defer cancel()
		err := t.fence.Release(ctx, func() time.Time {
			if t.generator == nil {
				return time.Time{}
			}
			return t.generator.Stop()
		})
		if err != nil {
			return fmt.Errorf("giving back node ID %d: %w", t.fence.Node(), err)
		}
	}
	s.step(attachment.Returned{Slot: slot})
	s.tenures[slot] = tenure{}
	return nil
}

// failed tells of an error that may pass.
func (s *Sequencer) failed(ctx context.Context, losses int64, err error) {
	var behind *fence.ClockBehindError
	var aheadOf *fence.ClockAheadError
	var early *EarlyError
	var floor *FloorError
	final := errors.As(err, &behind) || errors.As(err, &aheadOf) || errors.As(err, &early) || errors.As(err, &floor) || errors.Is(err, firn.ErrLifetime)
	s.update(func(st *status) bool {
		if (st.inUse.generator == nil || s.m.stale(st.inUse)) && st.granted.kind == attachment.Granted {
			st.why = err
		}
		st.settled = st.settled || final
		return true
	})
	s.m.breaks(losses, err)
	s.m.nags.nag(ctx, "can't hold or give back a node ID at present, trying again", err)
}

// untilNext is how long there is nothing to do if nothing changes. The time of IDs may differ from that of timers.
func (s *Sequencer) untilNext() time.Duration {
	wait, now := idle, s.m.now()
	if s.looked.kind == attachment.Granted {
		wait = s.notice(now)
	}
	for i, t := range s.state.Tenures {
		var until time.Duration
		switch t.Phase {
		case attachment.Claimed:
			until = s.tenures[i].fence.Floor().Sub(now)
		case attachment.Expiring:
			until = s.tenures[i].fence.Horizon().Sub(now)
		}
		if until > 0 {
			wait = min(wait, max(until, time.Millisecond), s.m.options.Window/3)
		}
	}
	return wait
}
