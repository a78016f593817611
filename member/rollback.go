package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/attachment"
	"github.com/firn-id/firn/internal/fence"
	"github.com/firn-id/firn/internal/retry"
	"github.com/firn-id/firn/store"
)

// A store that was wiped or set back to a backup, see store.ErrRolledBack, does not know any more how far node IDs were
// used. Who has seen more of it does, within limits: no horizon of this cluster lies further ahead than a window and the
// skew that is accepted between clocks. So a member that finds its store rolled back writes that down,
//
//	floor
//
// and joins again. Node IDs are claimed only under the condition that this key is unchanged, and used from that instant on only,
// as if a former owner had got that far: by those who were there as by newcomers.

// Whoever finds no log at all may be early: before those who know that there was one. So on a store that others share, the
// first member of a cluster waits for a moment.

// foundAfter is how long. Members notice within two seconds of the store's return, see etcdstore. No ID is unique because of
// it as long as the store keeps what it commits.
const foundAfter = 3 * time.Second

// Shared is implemented by a store that other processes use, too, and that can lose data while they live.
type Shared interface{ Shared() bool }

// untilFounding is how long a member waits that finds no log; not positive: no longer.
func (m *Member) untilFounding() time.Duration {
	if s, ok := m.store.(Shared); !ok || !s.Shared() || m.value.Position() > 0 {
		return 0
	}
	if m.founds.IsZero() {
		m.founds = time.Now().Add(foundAfter)
		m.log.Info("there is no cluster in the store: founding one, unless somebody knows of one that was there", "in", foundAfter)
	}
	return time.Until(m.founds)
}

// floor is what the key holds.
type floor struct {
	From time.Time `json:"from"` // no node ID may be used before that; the zero time: no more than its own floor says
	By   string    `json:"by"`   // who put it: Options.Owner
	Why  string    `json:"why"`
}

const floorKey = "floor"

// FloorError is returned, within an ErrNotReady, while the clock has not come to the instant from which on IDs are given
// after the store has lost data. It passes by itself, or with Resume.
type FloorError struct {
	From time.Time
	By   string // the member that found the store rolled back
}

func (e *FloorError) Error() string {
	return fmt.Sprintf("the store has lost data, as %q found: no ID is given before %s, so that none comes twice; an operator who knows better can resume sooner",
		e.By, e.From.UTC().Format(time.RFC3339))
}

// readFloor reads the key; where there is none, the floor is zero.
func (m *Member) readFloor(ctx context.Context) (f floor, at store.Condition, err error) {
	at.Key = floorKey
	kv, err := m.store.Get(ctx, at.Key)
	if err != nil || kv.Version == 0 {
		return f, at, err
	}
	at.Version = kv.Version
	if err := json.Unmarshal(kv.Value, &f); err != nil {
		return f, at, fmt.Errorf("the key %q can't be read, so that no ID can be made: %w", at.Key, err)
	}
	return f, at, nil
}

// changeFloor has next say what the key is to hold, until it is content. A write in doubt needs no care: the next goes
// out under the same condition.
func (m *Member) changeFloor(ctx context.Context, next func(floor) (_ floor, content bool)) error {
	return m.insist(ctx, "can't write down from when on IDs may be given", func() error {
		f, at, err := m.readFloor(ctx)
		if err != nil {
			return err
		}
		f, content := next(f)
		if content {
			return nil
		}
		value, err := json.Marshal(f)
		if err != nil {
			return err
		}
		_, err = m.store.Commit(ctx, store.Txn{If: []store.Condition{at}, Then: []store.Op{store.Put(at.Key, value)}})
		if errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("%w: another was faster: %w", store.ErrUnavailable, err)
		}
		return err
	})
}

// floored returns the time from which on node IDs may be used, and the condition that it is so. A *FloorError is returned
// while the clock has not come to it.
func (m *Member) floored(ctx context.Context) (time.Time, store.Condition, error) {
	f, at, err := m.readFloor(ctx)
	if err == nil && m.now().Before(f.From) {
		err = &FloorError{From: f.From, By: f.By}
	}
	return f.From, at, err
}

// startOver has the member join again after the store has lost data, once the store was told from when on IDs may be given.
// Its sequencers use up what they have, and go on with it as members that lost their session do; see Sequencer.adopt.
func (m *Member) startOver(ctx context.Context, why error) {
	m.losses.Add(1)
	m.log.Warn("the store has lost data; joining the cluster again, as the store is now", "err", why)
	for _, s := range m.Sequencers() {
		s.tell(grant{}, errLostData)
	}
	m.tellFloor(ctx, why)
	m.watchOnly(nil)
	m.running.Wait()
	if m.incarnation != nil {
		m.closeSession(ctx, m.incarnation)
	}
	select {
	case err := <-m.broken: // of the same loss
		m.log.Debug("the store has lost data", "err", err)
	default:
	}
	m.player = newPlayer()
	m.lookups.forget()
	m.rejoins.Add(1)
	m.miss()
	m.forget()
	_ = retry.Sleep(ctx, backoff.First) // whatever the store says
}

// forget has the member know nothing of the cluster. Its sequencers are to be found in the log again.
func (m *Member) forget() {
	m.publish(cluster.Value{}, nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hasJoined = false
	for _, s := range m.sequencers {
		st := s.status.Load()
		if st.granted.kind == attachment.Destroyed {
			continue
		}
		s.update(func(st *status) { st.created = 0 })
		if st.wanted && st.ensured && !m.leaving {
			m.holding.Go(func() { s.createAgain(m.serving) })
		}
	}
}

// stale tells whether a node ID was claimed before the store lost data: it can be used up, but neither extended nor given
// back.
func (m *Member) stale(t tenure) bool { return t.losses != m.losses.Load() }

// adopt has the handle stand for a sequencer of the log after a loss, if it has the same definition. It returns false when
// it has another, or the handle stands for one already.
func (s *Sequencer) adopt(v cluster.Sequencer) (adopted bool) {
	s.updateIf(func(st *status) bool {
		if adopted = st.created == 0 && s.definition.Equal(v.Definition()); adopted {
			st.created = v.Created()
		}
		return adopted
	})
	return adopted
}

// awaitsLog tells whether it is not known yet which sequencer of the log the handle stands for after a loss.
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

// createAgain creates the sequencer after a loss, until the handle stands for one again or is destroyed.
func (s *Sequencer) createAgain(ctx context.Context) {
	for tries := 0; s.m.Wait(ctx) == nil; tries++ {
		if st := s.status.Load(); st.created > 0 || st.granted.kind == attachment.Destroyed {
			return
		}
		q, _, err := s.m.create(ctx, s.name, s.definition)
		if err == nil && s.adopt(q) {
			s.m.poke()
			return
		}
		if err != nil {
			s.m.troubles.note(ctx, "can't create a sequencer again that the store has lost, trying again", err)
		}
		_ = retry.Sleep(ctx, backoff.After(tries))
	}
}

// tellFloor tells the store, which has lost data, from when on IDs may be given again, however long that takes, and stops
// the use of the node IDs that somebody has claimed before he could know. The others are used up to their horizons, all of
// which lie before that.
func (m *Member) tellFloor(ctx context.Context, why error) {
	var own time.Time // up to where it may have made IDs itself
	inUse := map[*Sequencer]tenure{}
	for _, s := range m.Sequencers() {
		st := s.status.Load()
		own = later(own, st.used)
		if t := st.inUse(); t.fence != nil {
			inUse[s] = t
			own = later(own, t.fence.Horizon())
		}
	}
	from := later(own, m.now().Add(m.options.Window)).Add(fence.DefaultMaxSkew)
	for tries := 0; ; tries++ {
		err := m.changeFloor(ctx, func(f floor) (floor, bool) {
			if told := !own.IsZero() && f.From.After(later(own, m.now())); told { // by another, of the same loss
				from = f.From
				return f, true
			}
			return floor{From: later(from, f.From), By: m.options.Owner, Why: why.Error()}, false
		})
		if err == nil {
			break
		}
		m.log.Error("the store, which has lost data, was not told from when on IDs may be given", "from", from, "err", err)
		if retry.Sleep(ctx, backoff.After(tries)) != nil {
			return
		}
	}
	m.log.Warn("the store was told from when on IDs may be given", "from", from)
	for s, t := range inUse {
		if taken, err := t.fence.TakenOver(ctx); taken || err != nil {
			s.withdraw(t)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Resume ends the wait that follows when the store has lost data, and returns until when it would have lasted; the zero
// time when there is none. It is for an operator who knows that whoever made IDs before has stopped, and that no clock is
// behind those by which they were made. The error is one of the store, or that of ctx.
func (m *Member) Resume(ctx context.Context) (until time.Time, err error) {
	if _, err := m.opened(); err != nil {
		return until, err
	}
	err = m.changeFloor(ctx, func(f floor) (floor, bool) {
		if !m.now().Before(f.From) {
			return f, true
		}
		until = f.From
		return floor{By: m.options.Owner, Why: "resumed by an operator"}, false
	})
	return until, err
}
