package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/attachment"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// early is by how much a generator is made before the floor of its node ID, for which it waits itself: callers then
// wait milliseconds, and none comes after the last IDs of a tenure and before the first of the next.
const early = 5 * time.Millisecond

// poke has the goroutine of run look again.
func (s *Sequencer) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// before returns the fence of the latest tenure, whose horizon does not count against this member's clock. It is
// nil when the store knows none.
func (s *Sequencer) before() *fence.Fence {
	if t := s.status.Load().latest(); !s.m.stale(t) {
		return t.fence
	}
	return nil
}

// run gets node IDs and gives them back, as package attachment decides: it looks and acts, until ctx ends or the
// sequencer is destroyed.
func (s *Sequencer) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		losses := s.m.losses.Load()
		action, err := s.look(ctx)
		if err == nil {
			err = s.do(ctx, action)
		}
		wait := s.untilNext(err)
		switch st := s.status.Load(); {
		case st.state.Empty() && st.granted.kind == attachment.Destroyed:
			return
		case err != nil:
			s.failed(ctx, losses, err)
			wait = min(wait, backoff.After(failures), s.fences.Window/6)
			failures++
		case action.Kind != attachment.Wait:
			continue
		default:
			failures = 0
		}
		free, unwatch := s.whenFree(ctx, err)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-free:
		case <-time.After(wait):
		}
		unwatch()
	}
	s.finish(context.Cause(ctx))
	for action, _ := s.look(ctx); action.Kind == attachment.Return; action, _ = s.look(ctx) {
		if err := s.giveBack(context.WithoutCancel(ctx), action.Slot); err != nil {
			s.m.log.Warn("can't give back a node ID; it is free when the session ends", "sequencer", s.name, "err", err)
			return
		}
	}
}

// look steps the state by what the member sees, and returns what to do next.
func (s *Sequencer) look(ctx context.Context) (action attachment.Action, err error) {
	before := s.status.Load().state
	s.update(func(st *status) {
		s.looked = st.granted
		if ctx.Err() != nil { // the member leaves
			s.looked = grant{kind: attachment.Unwanted}
		}
		action = st.step(s.sight(st))
		err = s.show(st, action)
	})
	st := s.status.Load()
	if t := st.inUse(); action.Kind == attachment.Use && t.generator != nil {
		t.generator.SetBound(t.fence.Bound()) // which may have moved while the generator was made
	}
	for i, t := range st.state.Tenures {
		if t.Lost && !before.Tenures[i].Lost && !st.tenures[i].withdrawn && s.looked.kind == attachment.Granted {
			s.m.log.Warn("lost the node ID, asking for another", "sequencer", s.name, "node", t.Node, "usable_until",
				st.tenures[i].fence.Horizon())
		}
	}
	return action, err
}

// sight returns what the member sees.
func (s *Sequencer) sight(st *status) attachment.Look {
	now := s.m.now()
	look := attachment.Look{Grant: s.looked.plain()}
	for i, t := range st.tenures {
		if t.fence != nil {
			look.Tenures[i] = attachment.Sight{
				Due:  !now.Add(early).Before(t.fence.Floor()),
				Over: !now.Before(t.fence.Horizon()) || t.withdrawn,
				Lost: t.fence.State().Phase != fence.Held || s.m.stale(t) || t.withdrawn,
			}
		}
	}
	return look
}

// step steps the state, and forgets tenures that are over.
func (st *status) step(e attachment.Event) (action attachment.Action) {
	st.state, action = attachment.Step(st.state, e)
	for i, t := range st.state.Tenures {
		if t.Phase == attachment.Free {
			st.tenures[i] = tenure{}
		}
	}
	return action
}

// show stops and makes generators as the state says. A caller whose generator was stopped waits until the status is
// replaced, and finds the next generator in it.
func (s *Sequencer) show(st *status, action attachment.Action) (err error) {
	for i, t := range st.tenures {
		if t.generator != nil && st.state.Tenures[i].Phase == attachment.Stopped {
			st.used = later(st.used, t.generator.Stop())
		}
	}
	latest := st.latest()
	if action.Kind == attachment.Use {
		st.why = errAtHorizon
		if st.tenures[action.Slot].generator, err = s.generate(latest, st.used); err != nil {
			st.step(attachment.NotUsed{Slot: action.Slot})
		}
	} else if latest.fence != nil && latest.generator == nil {
		st.why = fmt.Errorf("node ID %d may not be used before %v; waiting for the clock to get there",
			latest.fence.Node(), latest.fence.Floor().UTC())
	}
	st.generator = nil
	if i := st.state.InUse(); i >= 0 && !st.tenures[i].withdrawn {
		st.generator = st.tenures[i].generator
		if st.state.Tenures[i].Lost && s.looked.kind == attachment.Granted {
			st.why = errLost
		}
	}
	switch s.looked.kind {
	case attachment.InLine, attachment.Destroyed:
		st.settled = true
	case attachment.Unwanted:
		st.settled = st.settled || s.looked.drained
	case attachment.Granted:
		i := st.state.Latest()
		st.settled = st.settled || i >= 0 && st.state.Tenures[i].Phase != attachment.Expiring
	}
	return err
}

// generate makes the generator of a tenure. It starts after the ticks that earlier generators have used.
func (s *Sequencer) generate(t tenure, used time.Time) (*firn.Generator, error) {
	options := []firn.Option{
		firn.WithClock(s.m.clock), firn.FailAtBound(),
		firn.WithFloor(later(t.fence.Floor(), used)), firn.WithBound(t.fence.Bound()),
		firn.WithWaits(&s.waits),
	}
	if s.definition.RandomStart {
		options = append(options, firn.WithRandomStart())
	}
	g, err := firn.NewGenerator(s.layout, t.fence.Node(), options...)
	if err == nil && used.After(s.m.now()) { // the one before was ahead of the clock: nobody waits now, either
		_ = g.Advance(0, MaxAhead) // else they wait until the clock is there
	}
	return g, err
}

// step steps the state by the outcome of an action.
func (s *Sequencer) step(e attachment.Event) (action attachment.Action) {
	s.update(func(st *status) { action = st.step(e) })
	return action
}

// do does an action that needs the store or the log.
func (s *Sequencer) do(ctx context.Context, action attachment.Action) error {
	switch action.Kind {
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

// claim claims the granted node ID, under the session of the incarnation that was granted it.
func (s *Sequencer) claim(ctx context.Context) error {
	if nodes, err := s.m.options.Region.Nodes(s.definition); err != nil || !nodes.Holds(s.looked.node) {
		return fmt.Errorf("%w: node ID %d is not one of the region %v", store.ErrRefused, s.looked.node,
			s.m.options.Region)
	}
	if s.looked.incarnation.copied.Load() {
		return ErrCopied // the grant is a copy's, and another one is to come
	}
	if err := s.m.checkClock(ctx, checkEvery); err != nil {
		return err
	}
	if err := s.checkOrder(ctx); err != nil {
		return err
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	from, floored, err := s.m.floored(ctx)
	if err == nil {
		// also of other sequencers: a store that has lost that may have lost other owners' horizons
		err = s.m.checkKept(ctx)
	}
	if err != nil {
		return err
	}
	config := s.fences
	config.Guards, config.NotBefore = []store.Condition{s.guard, floored}, later(s.from, from)
	config.Before, config.Holder = s.before(), s.looked.incarnation.holder
	if err := s.m.beginClaim(1); err != nil {
		return err
	}
	f, err := fence.Claim(ctx, config, s.looked.incarnation.session, s.looked.node)
	s.m.endClaim(1)
	var held *fence.HeldError
	var behind *fence.ClockBehindError
	switch before := s.status.Load().state; {
	case err == nil:
		s.update(func(st *status) {
			st.step(attachment.TookIt{})
			left := s.looked.incarnation.copied.Load()
			st.tenures[st.state.Latest()] = tenure{
				fence: f, losses: s.looked.incarnation.losses,
				withdrawn: left, left: left,
			}
		})
		s.m.log.Info("claimed a node ID", "sequencer", s.name, "node", f.Node(), "from", f.Floor(),
			"horizon", f.Horizon())
	case errors.Is(err, fence.ErrCopied):
		s.m.startAnew(s.looked.incarnation, err)
	case errors.Is(err, fence.ErrClosed):
		s.guard = store.Condition{} // the generation has ended, or another has begun
	case errors.As(err, &held):
		switch action := s.step(attachment.HeldByOther{Lasting: held.Lasting()}); {
		case action.Kind == attachment.Decline:
			return s.decline(ctx)
		case s.status.Load().state != before:
			return nil // ended by this member
		}
	case errors.As(err, &behind) && behind.Reserved:
		return s.freeLeft(ctx, err)
	case errors.As(err, &behind):
		if s.step(attachment.ClockBehind{}).Kind == attachment.Decline {
			return s.decline(ctx)
		}
	}
	return err
}

// decline asks the log for another node ID.
func (s *Sequencer) decline(ctx context.Context) error {
	if s.looked.incarnation.copied.Load() {
		return ErrCopied
	}
	o, err := s.m.do(ctx, func(string) cluster.Command {
		return cluster.Decline{Sequencer: s.name, Member: s.looked.incarnation.id, Node: s.looked.node}
	})
	if err == nil && o.missed {
		err = errMissed
	}
	if err != nil {
		return err
	}
	v, _ := s.in(o.value)
	same := holds(v, s.looked.incarnation.id, s.looked.node)
	s.update(func(st *status) {
		st.step(attachment.Declined{Same: same})
		if !same && st.granted == s.looked {
			st.granted = grant{} // until the member learns of the other
		}
	})
	s.m.poke()
	return nil
}

// giveBack releases a node ID, unless the store has lost it, or a copy of this process may hold it.
func (s *Sequencer) giveBack(ctx context.Context, slot int) error {
	if t := s.status.Load().tenures[slot]; !s.m.stale(t) {
		ctx, cancel := s.m.registry.inTime(ctx, returnWithin)
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
	return nil
}

// whenFree returns a channel that is closed when the node ID is free that a claim found held by another owner. It is
// nil after any other error, and while the store can't watch.
func (s *Sequencer) whenFree(ctx context.Context, err error) (<-chan struct{}, context.CancelFunc) {
	var held *fence.HeldError
	if !errors.As(err, &held) {
		return nil, func() {}
	}
	ctx, unwatch := context.WithCancel(ctx)
	free, _ := s.m.store.Gone(ctx, held.Live)
	return free, unwatch
}

// failed reports an error, after which the goroutine tries again.
func (s *Sequencer) failed(ctx context.Context, losses int64, err error) {
	var behind *fence.ClockBehindError
	var clock *ClockError
	var order *OrderError
	var early *EarlyError
	var floor *FloorError
	var kind *KindError
	final := errors.As(err, &behind) || errors.As(err, &clock) || errors.As(err, &order) || errors.As(err, &early) ||
		errors.As(err, &floor) || errors.As(err, &kind) || errors.Is(err, firn.ErrLifetime)
	s.update(func(st *status) {
		if (st.generator == nil || s.m.stale(st.inUse())) && st.granted.kind == attachment.Granted {
			st.why = err
		}
		st.settled = st.settled || final
	})
	s.m.breaks(losses, err)
	s.m.troubles.note(ctx, "can't claim or give back a node ID at present, trying again", err)
}

// untilNext returns how long to wait while nothing changes. It is at most a third of a window where the clock decides,
// since a timer may run at another rate.
func (s *Sequencer) untilNext(err error) time.Duration {
	wait, now := idle, s.m.now()
	if s.looked.kind == attachment.Granted {
		wait = s.notice(now)
	}
	if floor, waits := errors.AsType[*FloorError](err); waits && floor.From.After(now) {
		wait = min(wait, max(floor.From.Sub(now), time.Millisecond))
	}
	st := s.status.Load()
	for i, t := range st.state.Tenures {
		var at time.Time
		switch t.Phase {
		case attachment.Claimed:
			at = st.tenures[i].fence.Floor().Add(-early)
		case attachment.Expiring:
			at = st.tenures[i].fence.Horizon()
		default:
			continue
		}
		if err != nil && !at.After(now) {
			continue // after a pause
		}
		// The clock may have reached it since the look, which did not see that.
		wait = min(wait, max(at.Sub(now), time.Millisecond), s.fences.Window/3)
	}
	return wait
}
