package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/attachment"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// lane is the way of a Sequencer to one node ID, with a goroutine of its own, which does what package attachment
// decides. What the others may know of a lane is in the Sequencer's status.
type lane struct {
	*Sequencer
	index int
	wake  chan struct{} // has its goroutine look again

	// The fields below belong to the goroutine.

	looked grant // the grant at the last look

	guard   store.Condition // the condition of claims; without a key while unknown
	from    time.Time       // the earliest instant that IDs may have
	guarded int64           // the member's losses when both were read
}

// early is by how much a generator is made before the floor of its node ID, for which it waits itself: callers then
// wait milliseconds, and none comes after the last IDs of a tenure and before the first of the next.
const early = 5 * time.Millisecond

// current returns what the status has of the lane.
func (l *lane) current() *laneStatus { return &l.status.Load().lanes[l.index] }

// update replaces the status with one in which the lane is what change makes of it.
func (l *lane) update(change func(*laneStatus)) {
	l.Sequencer.update(func(st *status) { change(&st.lanes[l.index]) })
}

// poke has the lane's goroutine look again.
func (l *lane) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// before returns the fence of the latest tenure, whose horizon does not count against this member's clock. It is
// nil when the store knows none.
func (l *lane) before() *fence.Fence {
	if t := l.current().latest(); !l.m.stale(t) {
		return t.fence
	}
	return nil
}

// run looks and acts, until ctx ends or the sequencer is destroyed.
func (l *lane) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		losses := l.m.losses.Load()
		action, err := l.look(ctx)
		if err == nil {
			err = l.do(ctx, action)
		}
		wait := l.untilNext(err)
		switch st := l.current(); {
		case st.state.Empty() && st.granted.kind == attachment.Destroyed:
			return
		case err != nil:
			l.failed(ctx, losses, err)
			wait = min(wait, backoff.After(failures), l.fences.Window/6)
			failures++
		case action.Kind != attachment.Wait:
			continue
		default:
			failures = 0
		}
		free, unwatch := l.whenFree(ctx, err)
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-free:
		case <-time.After(wait):
		}
		unwatch()
	}
	l.finish(context.Cause(ctx))
	for action, _ := l.look(ctx); action.Kind == attachment.Return; action, _ = l.look(ctx) {
		if err := l.giveBack(context.WithoutCancel(ctx), action.Slot); err != nil {
			l.m.log.Warn("can't give back a node ID; it is free when the session ends", "sequencer", l.name, "err", err)
			return
		}
	}
}

// look steps the state by what the member sees, and returns what to do next.
func (l *lane) look(ctx context.Context) (action attachment.Action, err error) {
	before := l.current().state
	l.update(func(st *laneStatus) {
		l.looked = st.granted
		if ctx.Err() != nil { // the member leaves
			l.looked = grant{kind: attachment.Unwanted}
		}
		action = st.step(l.sight(st))
		err = l.show(st, action)
	})
	st := l.current()
	if t := st.inUse(); action.Kind == attachment.Use && t.generator != nil {
		t.generator.SetBound(t.fence.Bound()) // which may have moved while the generator was made
	}
	for i, t := range st.state.Tenures {
		if t.Lost && !before.Tenures[i].Lost && !st.tenures[i].withdrawn && l.looked.kind == attachment.Granted {
			l.m.log.Warn("lost the node ID, asking for another", "sequencer", l.name, "node", t.Node, "usable_until",
				st.tenures[i].fence.Horizon())
		}
	}
	return action, err
}

// sight returns what the member sees.
func (l *lane) sight(st *laneStatus) attachment.Look {
	now := l.m.now()
	look := attachment.Look{Grant: l.looked.plain()}
	for i, t := range st.tenures {
		if t.fence != nil {
			look.Tenures[i] = attachment.Sight{
				Due:  !now.Add(early).Before(t.fence.Floor()),
				Over: !now.Before(t.fence.Horizon()) || t.withdrawn,
				Lost: t.fence.State().Phase != fence.Held || l.m.stale(t) || t.withdrawn,
			}
		}
	}
	return look
}

// step steps the state, and forgets tenures that are over.
func (st *laneStatus) step(e attachment.Event) (action attachment.Action) {
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
func (l *lane) show(st *laneStatus, action attachment.Action) (err error) {
	for i, t := range st.tenures {
		if t.generator != nil && st.state.Tenures[i].Phase == attachment.Stopped {
			st.used = later(st.used, t.generator.Stop())
		}
	}
	latest := st.latest()
	if action.Kind == attachment.Use {
		st.why = errAtHorizon
		if st.tenures[action.Slot].generator, err = l.generate(latest, st.used); err != nil {
			st.step(attachment.NotUsed{Slot: action.Slot})
		}
	} else if latest.fence != nil && latest.generator == nil {
		st.why = fmt.Errorf("node ID %d may not be used before %v; waiting for the clock to get there",
			latest.fence.Node(), latest.fence.Floor().UTC())
	}
	st.generator = nil
	if i := st.state.InUse(); i >= 0 && !st.tenures[i].withdrawn {
		st.generator = st.tenures[i].generator
		if st.state.Tenures[i].Lost && l.looked.kind == attachment.Granted {
			st.why = errLost
		}
	}
	switch l.looked.kind {
	case attachment.InLine, attachment.Destroyed:
		st.settled = true
	case attachment.Unwanted:
		st.settled = st.settled || l.looked.drained
	case attachment.Granted:
		i := st.state.Latest()
		st.settled = st.settled || i >= 0 && st.state.Tenures[i].Phase != attachment.Expiring
	}
	return err
}

// generate makes the generator of a tenure. It starts after the ticks that earlier generators have used.
func (l *lane) generate(t tenure, used time.Time) (*firn.Generator, error) {
	options := []firn.Option{
		firn.WithClock(l.m.clock), firn.FailAtBound(),
		firn.WithFloor(later(t.fence.Floor(), used)), firn.WithBound(t.fence.Bound()),
		firn.WithWaits(&l.waits),
	}
	if l.definition.RandomStart {
		options = append(options, firn.WithRandomStart())
	}
	g, err := firn.NewGenerator(l.layout, t.fence.Node(), options...)
	if err == nil && used.After(l.m.now()) { // the one before was ahead of the clock: nobody waits now, either
		_ = g.Advance(0, MaxAhead) // else they wait until the clock is there
	}
	return g, err
}

// step steps the state by the outcome of an action.
func (l *lane) step(e attachment.Event) (action attachment.Action) {
	l.update(func(st *laneStatus) { action = st.step(e) })
	return action
}

// do does an action that needs the store or the log.
func (l *lane) do(ctx context.Context, action attachment.Action) error {
	switch action.Kind {
	case attachment.Claim:
		return l.claim(ctx)
	case attachment.Decline:
		return l.decline(ctx)
	case attachment.Return:
		return l.giveBack(ctx, action.Slot)
	default:
		return nil
	}
}

// claim claims the granted node ID, under the session of the incarnation that was granted it.
func (l *lane) claim(ctx context.Context) error {
	if nodes, err := l.m.options.Region.Nodes(l.definition); err != nil || !nodes.Holds(l.looked.node) {
		return fmt.Errorf("%w: node ID %d is not one of the region %v", store.ErrRefused, l.looked.node,
			l.m.options.Region)
	}
	if l.looked.incarnation.copied.Load() {
		return ErrCopied // the grant is a copy's, and another one is to come
	}
	if err := l.m.checkClock(ctx, checkEvery); err != nil {
		return err
	}
	if err := l.checkOrder(ctx); err != nil {
		return err
	}
	if err := l.open(ctx); err != nil {
		return err
	}
	from, floored, err := l.m.floored(ctx)
	if err == nil {
		// also of other sequencers: a store that has lost that may have lost other owners' horizons
		err = l.m.checkKept(ctx)
	}
	if err != nil {
		return err
	}
	config := l.fences
	config.Guards, config.NotBefore = []store.Condition{l.guard, floored}, later(l.from, from)
	config.Before, config.Holder = l.before(), l.looked.incarnation.holder
	if err := l.m.beginClaim(1); err != nil {
		return err
	}
	f, err := fence.Claim(ctx, config, l.looked.incarnation.session, l.looked.node)
	l.m.endClaim(1)
	var held *fence.HeldError
	var behind *fence.ClockBehindError
	switch before := l.current().state; {
	case err == nil:
		l.update(func(st *laneStatus) {
			st.step(attachment.TookIt{})
			left := l.looked.incarnation.copied.Load()
			st.tenures[st.state.Latest()] = tenure{
				fence: f, losses: l.looked.incarnation.losses,
				withdrawn: left, left: left,
			}
		})
		l.m.log.Info("claimed a node ID", "sequencer", l.name, "node", f.Node(), "from", f.Floor(),
			"horizon", f.Horizon())
	case errors.Is(err, fence.ErrCopied):
		l.m.startAnew(l.looked.incarnation, err)
	case errors.Is(err, fence.ErrClosed):
		l.guard = store.Condition{} // the generation has ended, or another has begun
	case errors.As(err, &held):
		switch action := l.step(attachment.HeldByOther{Lasting: held.Lasting()}); {
		case action.Kind == attachment.Decline:
			return l.decline(ctx)
		case l.current().state != before:
			return nil // ended by this member
		}
	case errors.As(err, &behind) && behind.Reserved:
		return l.freeLeft(ctx, err)
	case errors.As(err, &behind):
		if l.step(attachment.ClockBehind{}).Kind == attachment.Decline {
			return l.decline(ctx)
		}
	}
	return err
}

// decline asks the log for another node ID.
func (l *lane) decline(ctx context.Context) error {
	if l.looked.incarnation.copied.Load() {
		return ErrCopied
	}
	o, err := l.m.do(ctx, func(string) cluster.Command {
		return cluster.Decline{Sequencer: l.name, Member: l.looked.incarnation.id, Node: l.looked.node}
	})
	if err == nil && o.missed {
		err = errMissed
	}
	if err != nil {
		return err
	}
	v, _ := l.in(o.value)
	same := slices.Contains(v.Held(l.looked.incarnation.id), l.looked.node)
	l.update(func(st *laneStatus) {
		st.step(attachment.Declined{Same: same})
		if !same && st.granted == l.looked {
			st.granted = grant{} // until the member learns of the other
		}
	})
	l.m.poke()
	return nil
}

// giveBack releases a node ID, unless the store has lost it, or a copy of this process may hold it.
func (l *lane) giveBack(ctx context.Context, slot int) error {
	if t := l.current().tenures[slot]; !l.m.stale(t) {
		ctx, cancel := l.m.registry.inTime(ctx, returnWithin)
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
	l.step(attachment.Returned{Slot: slot})
	return nil
}

// whenFree returns a channel that is closed when the node ID is free that a claim found held by another owner. It is
// nil after any other error, and while the store can't watch.
func (l *lane) whenFree(ctx context.Context, err error) (<-chan struct{}, context.CancelFunc) {
	var held *fence.HeldError
	if !errors.As(err, &held) {
		return nil, func() {}
	}
	ctx, unwatch := context.WithCancel(ctx)
	free, _ := l.m.store.Gone(ctx, held.Live)
	return free, unwatch
}

// failed reports an error, after which the goroutine tries again.
func (l *lane) failed(ctx context.Context, losses int64, err error) {
	var behind *fence.ClockBehindError
	var clock *ClockError
	var order *OrderError
	var early *EarlyError
	var floor *FloorError
	var kind *KindError
	final := errors.As(err, &behind) || errors.As(err, &clock) || errors.As(err, &order) || errors.As(err, &early) ||
		errors.As(err, &floor) || errors.As(err, &kind) || errors.Is(err, firn.ErrLifetime)
	l.update(func(st *laneStatus) {
		if (st.generator == nil || l.m.stale(st.inUse())) && st.granted.kind == attachment.Granted {
			st.why = err
		}
		st.settled = st.settled || final
	})
	l.m.breaks(losses, err)
	l.m.troubles.note(ctx, "can't claim or give back a node ID at present, trying again", err)
}

// untilNext returns how long to wait while nothing changes. It is at most a third of a window where the clock decides,
// since a timer may run at another rate.
func (l *lane) untilNext(err error) time.Duration {
	wait, now := idle, l.m.now()
	if l.looked.kind == attachment.Granted {
		wait = l.notice(now)
	}
	if floor, waits := errors.AsType[*FloorError](err); waits && floor.From.After(now) {
		wait = min(wait, max(floor.From.Sub(now), time.Millisecond))
	}
	st := l.current()
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
		wait = min(wait, max(at.Sub(now), time.Millisecond), l.fences.Window/3)
	}
	return wait
}
