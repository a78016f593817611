package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/journal"
	"github.com/firn-id/firn/store"
)

// A store that was wiped or set back to a backup, see store.ErrRolledBack, no longer knows how far node IDs were
// used. A member that has seen more of it says from when on they may be used, see floor.go, and joins again.

// A member that finds no log may be faster than those that know there was one. So on a shared store, the first
// member of a cluster waits for a moment.

// foundAfter is how long it waits. Members notice within two seconds of the store's return, see etcdstore. As
// long as the store keeps what it commits, uniqueness does not depend on it.
const foundAfter = 3 * time.Second

// untilFounding returns how long a member that finds no log still waits; zero or less: no longer.
func (p *player) untilFounding() time.Duration {
	if !p.store.Traits().Shared || p.value.Position() > 0 {
		return 0
	}
	if p.founds.IsZero() {
		p.founds = time.Now().Add(foundAfter)
		p.log.Info("the store holds no cluster: founding one, unless another member knows an earlier one",
			"in", foundAfter)
	}
	return time.Until(p.founds)
}

// startOver has the member join again after the store has lost data, once it has written the floor. Its
// sequencers make IDs up to their horizons meanwhile, as after a lost session; see Sequencer.adopt.
func (p *player) startOver(ctx context.Context, why error) {
	p.losses.Add(1)
	p.journal.Write(journal.Line{Do: journal.Loss})
	p.log.Warn("the store has lost data; joining the cluster again, as the store is now", "err", why)
	for _, s := range p.Sequencers() {
		s.tell(grant{}, errLostData)
	}
	p.loseCounters()
	p.keepReservations()
	p.tellFloor(ctx, why)
	p.tellLoss(ctx)
	if _, err := p.clusterID(ctx); err != nil { // before newcomers put another
		p.troubles.note(ctx, "the store has lost data; can't write the cluster's ID at present, trying again", err)
	}
	p.watchOnly(nil)
	p.running.Wait()
	if p.incarnation != nil {
		p.closeSession(ctx, p.incarnation)
	}
	p.reading = newReading()
	p.judge.question.Store(nil)
	p.lookups.forget()
	p.rejoins.Add(1)
	p.miss()
	p.forget()
	select {
	case err := <-p.broken: // of the same loss
		p.log.Debug("the store has lost data", "err", err)
	default:
	}
	_ = retry.Sleep(ctx, backoff.First) // also if the store answers
}

// tellsWithin is how long the store may take to tell of a loss that a read has shown. A member that is told starts over
// once. If it starts over by itself, it may be told of the same loss afterwards, and does it again.
const tellsWithin = 2 * time.Second

// readOn reads the log from the entry on that led to the value. If that is neither there nor in a checkpoint, the error
// is store.ErrRolledBack. The store tells of that, too; but where nobody writes to the log any more, it may have no
// reason to. So a read that still shows it later has the member start over.
func (m *Member) readOn(ctx context.Context) (store.Batch, error) {
	m.mu.Lock()
	at, entry := store.Position(m.value.Position()), m.entry
	m.mu.Unlock()
	b, err := m.store.Read(ctx, max(at-1, 0))
	if errors.Is(err, store.ErrRefused) {
		b, err = m.store.Read(ctx, 0) // it may end before that
	}
	if err != nil || at == 0 || b.Checkpoint != nil && b.Checkpoint.Position >= at ||
		slices.ContainsFunc(b.Entries, func(e store.LogEntry) bool { return e.ID == entry }) {
		return b, err
	}
	err = fmt.Errorf("%w: the entry at %d is gone from the log", store.ErrRolledBack, at)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.value.Position() != int64(at) || m.entry != entry: // it has started over meanwhile
	case m.missed.IsZero():
		m.missed = time.Now()
	case time.Since(m.missed) > tellsWithin:
		m.breaks(m.losses.Load(), err)
	}
	return b, err
}

// checkKept returns store.ErrRolledBack, and has the member start over, when the store has lost the latest horizon that
// the member wrote. A store that was set back lost its latest writes, which need not be those of the log. It costs one
// read.
func (m *Member) checkKept(ctx context.Context) error {
	losses := m.losses.Load()
	var latest *fence.Fence
	for _, s := range m.Sequencers() {
		for _, t := range s.status.Load().tenures {
			if t.fence != nil && !m.stale(t) && (latest == nil || t.fence.State().Reported > latest.State().Reported) {
				latest = t.fence
			}
		}
	}
	if latest == nil {
		return nil
	}
	err := latest.Kept(ctx)
	m.breaks(losses, err)
	return err
}

// keepsAll returns an error when the store has lost data since there were so many losses, also if nothing has told the
// member yet. A store that has lost the pulses of those who refuse this member's clock does not show them.
func (m *Member) keepsAll(ctx context.Context, losses int64) error {
	_, err := m.readOn(ctx)
	if err == nil {
		_, _, err = m.readFloor(ctx)
	}
	if err == nil {
		err = m.checkKept(ctx)
	}
	if err == nil && m.losses.Load() != losses {
		err = errLostData
	}
	return err
}

// forget clears what the member knows about the cluster. It must find its sequencers in the log again.
func (p *player) forget() {
	p.publish(cluster.Value{}, "", nil)
	p.mu.Lock()
	p.hasJoined, p.missed = false, time.Time{}
	p.mu.Unlock()
	for name, d := range p.drains {
		p.drains[name] = drain{as: d.as}
	}
	p.forgetCounters()
	for _, s := range p.registry.all() {
		st := s.status.Load()
		if st.destroyed() {
			continue
		}
		s.update(func(st *status) { st.created = 0 })
		if st.wanted && st.ensured {
			p.registry.serve(func() { s.createAgain(p.serving) })
		}
	}
}

// stale reports whether a node ID was claimed before the store lost data, or is left to a copy of this process: it can
// be neither renewed nor released.
func (m *Member) stale(t tenure) bool { return t.left || t.losses != m.losses.Load() }

// adopt ties the handle to a sequencer of the log after a loss. It returns false when their definitions differ,
// or the handle is already tied to one.
func (s *Sequencer) adopt(v cluster.Sequencer) (adopted bool) {
	s.updateIf(func(st *status) bool {
		if adopted = st.created == 0 && s.definition.Equal(v.Definition()); adopted {
			st.created = v.Created()
		}
		return adopted
	})
	return adopted
}

// awaitsLog reports whether the handle is, after a loss, not yet tied to a sequencer of the log.
func (s *Sequencer) awaitsLog(v cluster.Value) bool {
	st := s.status.Load()
	if st.created > 0 {
		return false
	}
	q, there := v.Sequencer(s.name)
	if there {
		if s.adopt(q) {
			s.m.poke()
		}
		return false
	}
	return st.wanted && st.ensured
}

// createAgain creates a sequencer after a loss, until its handle is tied to one again or has ended. It reports whether
// the handle was tied here.
func (m *Member) createAgain(ctx context.Context, name string, d cluster.Definition, done func() bool,
	adopt func(cluster.Sequencer) bool,
) bool {
	for tries := 0; m.Wait(ctx) == nil && !done(); tries++ {
		q, _, err := m.create(ctx, name, d, false, 0)
		if err == nil && adopt(q) {
			return true
		}
		if err != nil {
			m.troubles.note(ctx, "can't create a sequencer again that the store has lost, trying again", err)
		}
		if retry.Sleep(ctx, backoff.After(tries)) != nil {
			return false
		}
	}
	return false
}

func (s *Sequencer) createAgain(ctx context.Context) {
	done := func() bool {
		st := s.status.Load()
		return st.created > 0 || st.destroyed()
	}
	if s.m.createAgain(ctx, s.name, s.definition, done, s.adopt) {
		s.m.poke()
	}
}
