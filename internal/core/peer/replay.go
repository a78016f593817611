package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// player is what only the goroutine that plays the log uses.
type player struct {
	started bool // the log was read up to its end at the start
	pending map[string]*pendingCommand
	joining joining
	watched map[string]context.CancelFunc // the pulses being watched
	gone    chan pulseGone                // pulses that disappear
	dead    map[string]death              // members and joiners without a pulse that the value still has
	anchor  cluster.Value                 // the value at the last position where a checkpoint was due: the next checkpoint
	founds  time.Time                     // when to found the cluster, if no other member has by then
	retry   time.Time                     // when to try a new incarnation again
	failed  int                           // how many attempts failed

	identified bool // this incarnation has read the cluster's ID
}

func newPlayer() player {
	return player{
		pending: map[string]*pendingCommand{}, watched: map[string]context.CancelFunc{},
		gone: make(chan pulseGone), dead: map[string]death{},
	}
}

// In a crowd entries come all the time, few of them concern this member, and waking up costs more than replaying one. So
// after a batch the log is left alone for perMember for each member and each joiner in line beyond the first fewMembers.
// An entry that comes later is replayed at once.
const (
	fewMembers = 16
	perMember  = 40 * time.Microsecond
)

// idle is how long the player sleeps when it has nothing scheduled.
const idle = time.Hour

// run opens the store and plays the log until ctx ends, or it can't go on.
func (m *Member) run(ctx context.Context, open func(context.Context) (store.Store, error)) {
	defer close(m.done)
	if err := m.openStore(ctx, open); err != nil {
		if ctx.Err() == nil {
			m.end(err)
		}
		return
	}
	err := m.playOn(ctx)
	switch {
	case ctx.Err() != nil:
		err = nil // it leaves
		m.leaveCluster(ctx)
	case errors.Is(err, ErrExpelled):
		m.log.Error("the member ends", "err", err)
		m.goAway(ctx, err)
	case err != nil:
		m.log.Error("the member can't go on", "err", err)
		for _, s := range m.Sequencers() {
			s.tell(grant{}, err)
			s.finish(err)
		}
	}
	m.watchOnly(nil)
	m.running.Wait()
	if m.incarnation != nil {
		m.closeSession(ctx, m.incarnation)
	}
	m.end(err)
}

// playOn plays the log, and starts over when the store has lost data.
func (m *Member) playOn(ctx context.Context) error {
	watching, stop := context.WithCancel(m.serving)
	defer stop()
	m.mu.Lock()
	if !m.leaving {
		m.holding.Go(func() { m.watchResumes(watching) }) // also while it starts over
	}
	m.mu.Unlock()
	for {
		playing, cancel := context.WithCancel(ctx)
		m.mu.Lock()
		m.renewLocked(playing, m.options.Window)
		m.mu.Unlock()
		m.running.Go(func() { m.recordHistory(playing) })
		m.running.Go(func() { m.watchClock(playing) })
		err := m.play(playing, m.follow(playing))
		cancel()
		if stop, ok := errors.AsType[*stopped](err); ok {
			err = m.stopAt(ctx, stop)
			if err == nil && ctx.Err() == nil {
				continue
			}
		}
		switch {
		case errors.Is(err, errSkips):
			m.replayAgain(err)
		case !errors.Is(err, store.ErrRolledBack):
			return err
		default:
			m.startOver(ctx, err)
		}
	}
}

// replayAgain has the member forget what it knows from the log, which it then reads again from its beginning.
func (m *Member) replayAgain(why error) {
	m.log.Warn("replaying the log again", "err", why)
	for _, s := range m.Sequencers() {
		s.tell(grant{}, errRejoining)
	}
	m.watchOnly(nil)
	m.running.Wait()
	m.player = newPlayer()
	m.publish(cluster.Value{}, "", m.incarnation)
	m.miss()
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
func (m *Member) follow(ctx context.Context) <-chan delivery {
	deliveries := make(chan delivery)
	m.running.Go(func() {
		for batch, err := range m.store.Follow(ctx, 0) {
			select {
			case deliveries <- delivery{batch, err}:
			case <-ctx.Done():
				return
			}
			_ = retry.Sleep(ctx, time.Duration(m.rest.Load())) // what comes meanwhile is one batch
		}
	})
	return deliveries
}

// play does the member's work whenever something happens, until ctx ends.
func (m *Member) play(ctx context.Context, deliveries <-chan delivery) error {
	var come <-chan delivery
	for {
		wait := m.tend(ctx)
		select {
		case err := <-m.broken: // nothing more is applied to a value that is to go
			return err
		default:
		}
		timer := time.NewTimer(wait)
		if m.incarnation != nil { // it knows which entries are passed over
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
			if err := m.replay(ctx, d.batch); err != nil {
				timer.Stop()
				return err
			}
		case g := <-m.gone:
			m.dead[g.id] = death{cluster.CauseSessionEnded, g.node}
		case err := <-m.broken:
			timer.Stop()
			return err
		case <-m.sessionDone():
		case <-m.wake:
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
func (m *Member) tend(ctx context.Context) time.Duration {
	if wait, ok := m.live(ctx); !ok {
		return wait
	}
	if !m.started {
		return idle
	}
	if wait := m.untilFounding(); wait > 0 {
		return wait
	}
	if wait, ok := m.identify(ctx); !ok {
		return wait
	}
	m.watchOnly(cluster.Watches(m.value, m.incarnation.id))
	m.followPolicy(ctx)
	wait := min(m.collect(ctx), m.sayAwaited(ctx))
	wait = min(wait, m.send(ctx, m.owed()))
	m.grant(ctx)
	return wait
}

// live makes sure that the member has an incarnation, a new one if need be. False: not yet; look again later.
func (m *Member) live(ctx context.Context) (time.Duration, bool) {
	old := m.incarnation
	if old != nil && !old.over() && (!old.joined || m.value.IsMember(old.id)) {
		return 0, true
	}
	if wait := time.Until(m.retry); wait > 0 {
		return wait, false
	}
	var l *incarnation
	var err error
	if old != nil {
		err = m.mayBeCopied(ctx, old)
	}
	if err == nil {
		l, err = m.reopenSession(ctx)
	}
	again := false
	if err == nil {
		if err = m.learnSkips(ctx); errors.Is(err, errSkips) {
			again, err = true, nil
		} else if err != nil {
			m.closeSession(ctx, l)
		}
	}
	if err != nil {
		m.troubles.note(ctx, "can't begin a session at present, trying again", err)
		wait := backoff.After(m.failed)
		m.failed++
		m.retry = time.Now().Add(wait)
		return wait, false
	}
	m.failed = 0
	if old != nil {
		m.leaveBehind(ctx, old, l)
	}
	m.joining, m.identified = joining{}, false
	clear(m.pending)
	m.ids = append(m.ids, l.id)
	m.publish(m.value, m.entry, l)
	if again {
		select {
		case m.broken <- errSkips:
		default: // another error is there, after which it replays the log again, too
		}
		return idle, false
	}
	return 0, true
}

// leaveBehind ends an incarnation, upon which another one follows.
func (m *Member) leaveBehind(ctx context.Context, old, l *incarnation) {
	m.rejoins.Add(1)
	m.log.Warn("no longer a member, joining again", "was", old.id, "session_ended", old.over(), "copied", old.copied.Load(), "member", l.id)
	if old.copied.Load() { // what is said to its former members is said to a copy of this process
		m.ids = nil
		m.mu.Lock()
		clear(m.drains)
		m.mu.Unlock()
		return
	}
	m.closeSession(ctx, old)
	m.dead[old.id] = death{cluster.CauseSessionEnded, m.Name()} // the first member to notice takes it out
}

// replay applies a batch of the log.
func (m *Member) replay(ctx context.Context, b store.Batch) error {
	r, last := cluster.NewReplay(m.value), m.entry
	var expelled error
	if b.Checkpoint != nil {
		v, err := m.restore(*b.Checkpoint)
		if err != nil {
			return err
		}
		if m.started {
			m.log.Warn("the log was cut before this member read it, going on from the checkpoint", "was_at", m.value.Position(), "checkpoint", b.Checkpoint.Position)
			m.miss()
		}
		m.anchor = v
		m.tail.restart(v)
		m.joining.line = line{}
		expelled = m.skipTo(v)
		r, last = cluster.NewReplay(v), ""
	}
	outcomes := map[string]outcome{}
	var stop error
	for _, e := range b.Entries {
		if expelled != nil {
			break
		}
		entry, err := m.decode(e)
		if err != nil {
			stop = err
			break
		}
		last = e.ID
		out, ends := m.apply(r, entry)
		expelled = ends
		if l := m.incarnation; l != nil && !l.joined && joinerOf(entry.Command) == l.id {
			if v := r.Value(); v.IsMember(l.id) {
				l.joined, m.joining = true, joining{}
				m.log.Info("joined the cluster", "member", l.id, "members", v.Size(), "position", e.Position)
			}
		}
		m.joining.saw(entry.Command, out, m.incarnation)
		m.mourn(entry.Command, out)
		if m.awaited(e.ID) {
			outcomes[e.ID] = outcome{Outcome: out, value: r.Value()}
		}
		if r.Entries()%m.options.CheckpointEvery == 0 {
			m.recordCheckpoint(ctx, r.Value())
		}
	}
	v := r.Value()
	if region, ok := v.Region(); ok && region != m.options.Region {
		return &RegionError{InForce: region, Wanted: m.options.Region}
	}
	m.started = m.started || !b.More
	m.rest.Store(int64(perMember * time.Duration(max(0, v.Size()+m.joining.line.len()-fewMembers))))
	m.tail.add(b.Entries, v)
	m.publish(v, last, m.incarnation)
	m.settle(outcomes)
	return cmp.Or(expelled, stop)
}

// restore returns the value of a checkpoint; an empty one stands for an empty log. The error is a *stopped.
func (m *Member) restore(c store.Checkpoint) (cluster.Value, error) {
	if c.Position == 0 {
		return cluster.Value{}, nil
	}
	v, err := cluster.DecodeCheckpoint(c.Value)
	if err == nil {
		err = m.skips.fits(v)
	}
	if unreadable, ok := errors.AsType[*cluster.UnreadableError](err); ok {
		err = &stopped{at: int64(c.Position), unreadable: unreadable}
	}
	return v, err
}

// decode reads an entry of the log. The error is a *stopped.
func (m *Member) decode(e store.LogEntry) (cluster.Entry, error) {
	at := int64(e.Position)
	if m.skips.has(at, e.ID) { // whether this program could read it or not
		return cluster.Entry{Position: at, Command: cluster.Skipped{Entry: e.ID}}, nil
	}
	entry, err := cluster.Decode(at, e.Data)
	if unreadable, ok := errors.AsType[*cluster.UnreadableError](err); ok {
		err = &stopped{at: at, entry: e.ID, unreadable: unreadable}
	}
	return entry, err
}

// publish shows the value, which an entry led to, and the incarnation to other goroutines.
func (m *Member) publish(v cluster.Value, entry string, l *incarnation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.value, m.entry, m.incarnation = v, entry, l
	m.hasJoined = m.hasJoined || l != nil && v.IsMember(l.id)
	if v.Position() == 0 { // it begins to read, perhaps another log
		m.tail.restart(v)
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// awaited reports whether a caller waits for an entry.
func (m *Member) awaited(entry string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.outcomes[entry] != nil
}

// settle sends outcomes to the callers that wait for entries, once the published value has reached them.
func (m *Member) settle(outcomes map[string]outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for entry, o := range outcomes {
		if came, ok := m.outcomes[entry]; ok {
			came <- o
			delete(m.outcomes, entry)
		}
	}
}

// miss tells all waiting callers that the member may have skipped their entries.
func (m *Member) miss() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for entry, came := range m.outcomes {
		came <- outcome{missed: true}
		delete(m.outcomes, entry)
	}
}

// leaveCluster tells the others that the member leaves; ctx has ended.
func (m *Member) leaveCluster(ctx context.Context) {
	if m.incarnation == nil || m.incarnation.copied.Load() {
		return
	}
	_, pending := m.value.Pending(m.incarnation.id)
	if !pending && !m.value.IsMember(m.incarnation.id) && len(m.pending) == 0 {
		return
	}
	ctx, cancel := m.inTime(context.WithoutCancel(ctx), announceWithin)
	defer cancel()
	data, err := cluster.Encode(cluster.Leave{Member: m.incarnation.id, Why: cluster.CauseLeft, By: m.incarnation.id}, m.Wall())
	if err == nil {
		_, err = m.store.Append(ctx, newID(), data)
	}
	if err == nil {
		err = m.leaveName(ctx, m.incarnation)
	}
	if err != nil {
		m.log.Warn("can't announce the leave; other members notice when the session ends", "ttl", m.options.TTL, "err", err)
	}
}
