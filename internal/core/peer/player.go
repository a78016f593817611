package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// A player plays the log: it follows it, applies each entry to the value and shows that to everybody, and does what the
// value asks of this member. Start begins its goroutine, and nobody else has it but those that this starts, which use
// only gone and rest: what it owns needs no lock.
type player struct {
	*Member
	reading
	skips  skips            // as read under the latest session
	ids    []string         // all member IDs that this process has had
	drains map[string]drain // of them, by the name of the sequencer

	running sync.WaitGroup // goroutines that it has started: following the log, watching pulses
	rest    atomic.Int64   // for how long the log is left alone after a batch, in nanoseconds
}

// newPlayer returns the player of a member.
func newPlayer(m *Member) *player {
	return &player{Member: m, reading: newReading(), drains: map[string]drain{}}
}

// idle is how long the player sleeps when it has nothing scheduled.
const idle = time.Hour

// run opens the store and plays the log until ctx ends, or it can't go on.
func (p *player) run(ctx context.Context, open func(context.Context) (store.Store, error)) {
	defer close(p.done)
	if err := p.openStore(ctx, open); err != nil {
		if ctx.Err() == nil {
			p.end(err)
		}
		return
	}
	err := p.playOn(ctx)
	switch {
	case ctx.Err() != nil:
		err = nil // it leaves
		p.leaveCluster(ctx)
	case errors.Is(err, ErrExpelled):
		p.log.Error("the member ends", "err", err)
		p.goAway(ctx, err)
	case err != nil:
		p.log.Error("the member can't go on", "err", err)
		for _, s := range p.Sequencers() {
			s.tell(grant{}, err)
			s.finish(err)
		}
		for _, c := range p.counters.list() {
			c.end(err)
		}
	}
	p.watchOnly(nil)
	p.running.Wait()
	if p.incarnation != nil {
		p.closeSession(ctx, p.incarnation)
	}
	p.end(err)
}

// playOn plays the log, and starts over when the store has lost data.
func (p *player) playOn(ctx context.Context) error {
	watching, stop := context.WithCancel(p.serving)
	defer stop()
	p.registry.serve(func() { p.watchResumes(watching) }) // also while it starts over
	for {
		playing, cancel := context.WithCancel(ctx)
		p.renew(playing, p.options.Window)
		p.running.Go(func() { p.recordHistory(playing) })
		p.running.Go(func() { p.watchClock(playing) })
		err := p.play(playing, p.follow(playing))
		cancel()
		if stop, ok := errors.AsType[*stopped](err); ok {
			err = p.stopAt(ctx, stop)
			if err == nil && ctx.Err() == nil {
				continue
			}
		}
		switch {
		case errors.Is(err, errSkips):
			p.replayAgain(err)
		case !errors.Is(err, store.ErrRolledBack):
			return err
		default:
			p.startOver(ctx, err)
		}
	}
}

// replayAgain has the member forget what it knows from the log, which it then reads again from its beginning.
func (p *player) replayAgain(why error) {
	p.log.Warn("replaying the log again", "err", why)
	for _, s := range p.Sequencers() {
		s.tell(grant{}, errRejoining)
	}
	p.watchOnly(nil)
	p.running.Wait()
	p.reading = newReading()
	p.publish(cluster.Value{}, "", p.incarnation)
	p.miss()
}

// end notes why the member ends; nil: it leaves.
func (m *Member) end(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// play does the member's work whenever something happens, until ctx ends.
func (p *player) play(ctx context.Context, deliveries <-chan delivery) error {
	var come <-chan delivery
	for {
		wait := p.tend(ctx)
		select {
		case err := <-p.broken: // nothing more is applied to a value that is to go
			return err
		default:
		}
		timer := time.NewTimer(wait)
		if p.incarnation != nil { // it knows which entries are passed over
			come = deliveries
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case d := <-come:
			if d.err != nil {
				timer.Stop()
				return fmt.Errorf("following the log: %w", d.err)
			}
			if err := p.replay(ctx, d.batch); err != nil {
				timer.Stop()
				return err
			}
		case g := <-p.gone:
			p.dead[g.id] = death{cluster.CauseSessionEnded, g.node}
		case err := <-p.broken:
			timer.Stop()
			return err
		case <-p.sessionDone():
		case <-p.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// sessionDone returns a channel that reports the end of the session once.
func (m *Member) sessionDone() <-chan struct{} {
	if m.incarnation == nil || m.incarnation.over() {
		return nil
	}
	return m.incarnation.session.Done()
}

// tend does the work that is due, and returns after how long to look again at the latest.
func (p *player) tend(ctx context.Context) time.Duration {
	if wait, ok := p.live(ctx); !ok {
		return wait
	}
	if !p.started {
		return idle
	}
	if wait := p.untilFounding(); wait > 0 {
		return wait
	}
	if wait, ok := p.identify(ctx); !ok {
		return wait
	}
	p.watchOnly(cluster.Watches(p.value, p.incarnation.id))
	p.followPolicy(ctx)
	wait := min(p.collect(ctx), p.sayAwaited(ctx))
	wait = min(wait, p.send(ctx, p.owed()))
	p.grant(ctx)
	p.tellCounters()
	return wait
}

// live makes sure that the member has an incarnation, a new one if need be. False: not yet; look again later.
func (p *player) live(ctx context.Context) (time.Duration, bool) {
	old := p.incarnation
	if old != nil && !old.over() && (!old.joined || p.value.IsMember(old.id)) {
		return 0, true
	}
	if wait := time.Until(p.retry); wait > 0 {
		return wait, false
	}
	var l *incarnation
	var err error
	if old != nil {
		err = p.mayBeCopied(ctx, old)
	}
	if err == nil {
		l, err = p.reopenSession(ctx)
	}
	again := false
	if err == nil {
		if err = p.learnSkips(ctx); errors.Is(err, errSkips) {
			again, err = true, nil
		} else if err != nil {
			p.closeSession(ctx, l)
		}
	}
	if err != nil {
		p.troubles.note(ctx, "can't begin a session at present, trying again", err)
		wait := backoff.After(p.failed)
		p.failed++
		p.retry = time.Now().Add(wait)
		return wait, false
	}
	p.failed = 0
	if old != nil {
		p.leaveBehind(ctx, old, l)
	}
	p.joining, p.identified = joining{}, false
	clear(p.pending)
	p.ids = append(p.ids, l.id)
	p.publish(p.value, p.entry, l)
	if again {
		select {
		case p.broken <- errSkips:
		default: // another error is there, after which it replays the log again, too
		}
		return idle, false
	}
	return 0, true
}

// leaveBehind ends an incarnation, upon which another one follows.
func (p *player) leaveBehind(ctx context.Context, old, l *incarnation) {
	p.rejoins.Add(1)
	p.log.Warn("no longer a member, joining again", "was", old.id, "session_ended", old.over(), "copied",
		old.copied.Load(), "member", l.id)
	if old.copied.Load() { // what is said to its former members is said to a copy of this process
		p.ids = nil
		clear(p.drains)
		return
	}
	p.closeSession(ctx, old)
	p.dead[old.id] = death{cluster.CauseSessionEnded, p.Name()} // the first member to notice takes it out
}

// leaveCluster tells the others that the member leaves; ctx has ended.
func (p *player) leaveCluster(ctx context.Context) {
	if p.incarnation == nil || p.incarnation.copied.Load() {
		return
	}
	_, pending := p.value.Pending(p.incarnation.id)
	if !pending && !p.value.IsMember(p.incarnation.id) && len(p.pending) == 0 {
		return
	}
	ctx, cancel := p.registry.inTime(context.WithoutCancel(ctx), announceWithin)
	defer cancel()
	data, err := cluster.Encode(cluster.Leave{Member: p.incarnation.id, Why: cluster.CauseLeft, By: p.incarnation.id},
		p.Wall())
	if err == nil {
		_, err = p.store.Append(ctx, newID(), data)
	}
	if err == nil {
		err = p.leaveName(ctx, p.incarnation)
	}
	if err != nil {
		p.log.Warn("can't announce the leave; other members notice when the session ends", "ttl",
			p.options.TTL, "err", err)
	}
}
