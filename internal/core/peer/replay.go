package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// A player plays the log: it follows it, applies each entry to the value and shows that to everybody, and does what the
// value asks of this member. Start begins its goroutine, and nobody else has it: what it owns needs no lock.
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

// reading is what a player knows of the log that it reads. It forgets that where it begins again.
type reading struct {
	started bool // the log was read up to its end at the start
	pending map[string]*pendingCommand
	joining joining
	watched map[string]context.CancelFunc // the pulses being watched
	gone    chan pulseGone                // pulses that disappear
	dead    map[string]death              // members and joiners without a pulse that the value still has
	// the value at the last position where a checkpoint was due: the next checkpoint
	anchor cluster.Value
	founds time.Time // when to found the cluster, if no other member has by then
	retry  time.Time // when to try a new incarnation again
	failed int       // how many attempts failed

	identified bool // this incarnation has read the cluster's ID
}

func newReading() reading {
	return reading{
		pending: map[string]*pendingCommand{}, watched: map[string]context.CancelFunc{},
		gone: make(chan pulseGone), dead: map[string]death{},
	}
}

// In a crowd entries come all the time, few of them concern this member, and waking up costs more than replaying one.
// So after a batch the log is left alone for perMember for each member and each joiner in line beyond the first
// fewMembers. An entry that comes later is replayed at once.
const (
	fewMembers = 16
	perMember  = 40 * time.Microsecond
)

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

// delivery is a batch of the log, or the error that ended it.
type delivery struct {
	batch store.Batch
	err   error
}

// follow returns a channel of the log's batches. It is never closed; nothing arrives after the end of ctx.
func (p *player) follow(ctx context.Context) <-chan delivery {
	deliveries := make(chan delivery)
	p.running.Go(func() {
		for batch, err := range p.store.Follow(ctx, 0) {
			select {
			case deliveries <- delivery{batch, err}:
			case <-ctx.Done():
				return
			}
			_ = retry.Sleep(ctx, time.Duration(p.rest.Load())) // what comes meanwhile is one batch
		}
	})
	return deliveries
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

// replay applies a batch of the log.
func (p *player) replay(ctx context.Context, b store.Batch) error {
	r, last := cluster.NewReplay(p.value), p.entry
	var expelled error
	if b.Checkpoint != nil {
		v, err := p.restore(*b.Checkpoint)
		if err != nil {
			return err
		}
		if p.started {
			p.log.Warn("the log was cut before this member read it, going on from the checkpoint", "was_at",
				p.value.Position(), "checkpoint", b.Checkpoint.Position)
			p.miss()
		}
		p.anchor = v
		p.tail.restart(v)
		p.joining.line = line{}
		expelled = p.skipTo(v)
		r, last = cluster.NewReplay(v), ""
	}
	outcomes := map[string]outcome{}
	var stop error
	for _, e := range b.Entries {
		if expelled != nil {
			break
		}
		entry, err := p.decode(e)
		if err != nil {
			stop = err
			break
		}
		last = e.ID
		out, ends := p.apply(r, entry)
		expelled = ends
		if l := p.incarnation; l != nil && !l.joined && joinerOf(entry.Command) == l.id {
			if v := r.Value(); v.IsMember(l.id) {
				l.joined, p.joining = true, joining{}
				p.log.Info("joined the cluster", "member", l.id, "members", v.Size(), "position", e.Position)
			}
		}
		p.joining.saw(entry.Command, out, p.incarnation)
		p.mourn(entry.Command, out)
		if p.awaited(e.ID) {
			outcomes[e.ID] = outcome{Outcome: out, value: r.Value()}
		}
		if r.Entries()%p.options.CheckpointEvery == 0 {
			p.recordCheckpoint(ctx, r.Value())
		}
	}
	v := r.Value()
	if region, ok := v.Region(); ok && region != p.options.Region {
		return &RegionError{InForce: region, Wanted: p.options.Region}
	}
	p.started = p.started || !b.More
	p.rest.Store(int64(perMember * time.Duration(max(0, v.Size()+p.joining.line.len()-fewMembers))))
	p.tail.add(b.Entries, v)
	p.publish(v, last, p.incarnation)
	p.settle(outcomes)
	return cmp.Or(expelled, stop)
}

// restore returns the value of a checkpoint; an empty one stands for an empty log. The error is a *stopped.
func (p *player) restore(c store.Checkpoint) (cluster.Value, error) {
	if c.Position == 0 {
		return cluster.Value{}, nil
	}
	v, err := cluster.DecodeCheckpoint(c.Value)
	if err == nil {
		err = p.skips.fits(v)
	}
	if unreadable, ok := errors.AsType[*cluster.UnreadableError](err); ok {
		err = &stopped{at: int64(c.Position), unreadable: unreadable}
	}
	return v, err
}

// decode reads an entry of the log. The error is a *stopped.
func (p *player) decode(e store.LogEntry) (cluster.Entry, error) {
	at := int64(e.Position)
	if p.skips.has(at, e.ID) { // whether this program could read it or not
		return cluster.Entry{Position: at, Command: cluster.Skipped{Entry: e.ID}}, nil
	}
	entry, err := cluster.Decode(at, e.Data)
	if unreadable, ok := errors.AsType[*cluster.UnreadableError](err); ok {
		err = &stopped{at: at, entry: e.ID, unreadable: unreadable}
	}
	return entry, err
}

// publish shows the value, which an entry led to, and the incarnation to other goroutines.
func (p *player) publish(v cluster.Value, entry string, l *incarnation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.value, p.entry, p.incarnation = v, entry, l
	p.hasJoined = p.hasJoined || l != nil && v.IsMember(l.id)
	if v.Position() == 0 { // it begins to read, perhaps another log
		p.tail.restart(v)
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// awaited reports whether a caller waits for an entry.
func (p *player) awaited(entry string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outcomes[entry] != nil
}

// settle sends outcomes to the callers that wait for entries, once the published value has reached them.
func (p *player) settle(outcomes map[string]outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for entry, o := range outcomes {
		if came, ok := p.outcomes[entry]; ok {
			came <- o
			delete(p.outcomes, entry)
		}
	}
}

// miss tells all waiting callers that the member may have skipped their entries.
func (p *player) miss() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for entry, came := range p.outcomes {
		came <- outcome{missed: true}
		delete(p.outcomes, entry)
	}
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
