//go:build linux

package scale

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store"
)

// simulated is one member of a simulation: its session, its pulse and its node ID.
type simulated struct {
	*simulation
	id, name string
	store    store.Store
	since    time.Time
	life     context.Context
	end      context.CancelFunc
	ended    chan struct{} // closed when it writes no more
	soon     chan struct{} // has it write at once
	answers  atomic.Int64
	fence    atomic.Pointer[fence.Fence]

	// These belong to its goroutine.
	session store.Session
	pulse   store.Version
	named   bool // it has a record, which it writes with its pulse
}

func newSimulated(s *simulation, name string) *simulated {
	m := &simulated{
		simulation: s, id: strings.ToLower(fresh.Text()[:13]), name: name, store: s.any(), since: time.Now(),
		ended: make(chan struct{}), soon: make(chan struct{}, 1),
	}
	m.life, m.end = context.WithCancel(s.life)
	return m
}

func (m *simulated) hurry() {
	select {
	case m.soon <- struct{}{}:
	default:
	}
}

// run joins, and renews until the end.
func (m *simulated) run() {
	defer close(m.ended)
	if !m.insist(m.openSession) {
		return
	}
	m.mu.Lock()
	m.members[m.id], m.fresh[m.id] = m, true
	m.coming--
	m.mu.Unlock()
	every := every(m.window)
	for due := time.Now(); ; {
		select {
		case <-time.After(time.Until(due)):
		case <-m.soon:
		case <-m.session.Done():
			m.t.Errorf("%s: its session has ended: this machine is too slow for so many", m.name)
			return
		case <-m.life.Done():
			return
		}
		if !m.insist(m.renew) {
			return
		}
		m.mu.Lock()
		m.renewals++
		if time.Since(due) > every {
			m.late++
		}
		m.mu.Unlock()
		due = time.Now().Add(every)
		if !m.insist(m.look) {
			return
		}
	}
}

// insist repeats what fails for a while. False: its life is over.
func (m *simulated) insist(try func(context.Context) error) bool {
	for tries := 0; m.life.Err() == nil; tries++ {
		err := try(m.life)
		if err == nil {
			return true
		}
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrAmbiguous) && m.life.Err() == nil {
			m.t.Errorf("%s: %v", m.name, err)
			return false
		}
		_ = retry.Sleep(m.life, backoff.After(tries))
	}
	return false
}

// openSession is that of package peer: a session, a pulse, and then the record of the name.
func (m *simulated) openSession(ctx context.Context) (err error) {
	if m.session == nil {
		if m.session, err = m.store.OpenSession(ctx, peer.DefaultTTL); err != nil {
			return err
		}
	}
	if err := m.renew(ctx); err != nil {
		return err
	}
	was, err := m.store.Get(ctx, nodeKey(m.name))
	if err == nil {
		_, err = m.store.Commit(ctx, store.Txn{
			If:   []store.Condition{{Key: was.Key, Version: was.Version}},
			Then: m.record(time.Time{}),
		})
	}
	m.named = err == nil || errors.Is(err, store.ErrConflict) // with an answer that was lost
	if m.named {
		return nil
	}
	return err
}

// The keys of members, as docs/reference.md has them.
func pulseKey(id string) string  { return "peers/" + id }
func nodeKey(name string) string { return "nodes/" + name }

const workers = "sequencers/" + sequencer + "/workers/"

// record is what puts the record of the member's name.
func (m *simulated) record(left time.Time) []store.Op {
	now := time.Now()
	value, err := json.Marshal(peer.NodeRecord{
		Name: m.name, Host: m.name, Place: m.name, Members: []string{m.id}, Since: m.since, Seen: now,
		Reserved: now.Add(m.window), Left: left,
	})
	if err != nil {
		m.t.Error(err)
	}
	return []store.Op{store.Put(nodeKey(m.name), value)}
}

// every is how often a member writes its pulse.
func every(window time.Duration) time.Duration { return min(window/3, 10*time.Second) }

// renew writes the pulse, and the horizon with it, in one transaction.
func (m *simulated) renew(ctx context.Context) error {
	now := time.Now()
	value, err := json.Marshal(peer.Pulse{
		Mark: m.id, Stamp: fresh.Text()[:13], Owner: m.name, Since: m.since, Clock: now, Every: every(m.window),
		Reserved: now.Add(m.window), Answers: m.answers.Load(), Vitals: vitals(),
	})
	if err != nil {
		return err
	}
	txn := store.Txn{
		If:   []store.Condition{{Key: pulseKey(m.id), Version: m.pulse}},
		Then: []store.Op{store.PutEphemeral(pulseKey(m.id), value, m.session)},
	}
	if m.named {
		txn.Then = append(txn.Then, m.record(time.Time{})...)
	}
	var version store.Version
	if f := m.fence.Load(); f != nil {
		var errs []error
		version, errs = fence.Round{Fences: []*fence.Fence{f}, More: txn}.Commit(ctx)
		err = errs[0]
	} else {
		version, err = m.store.Commit(ctx, txn)
	}
	if err == nil && version != 0 {
		m.pulse = version
		return nil
	}
	if err == nil || errors.Is(err, store.ErrConflict) { // an earlier write in doubt was applied
		var kv store.KV
		if kv, err = m.store.Get(ctx, pulseKey(m.id)); err == nil {
			m.pulse = kv.Version
		}
	}
	return err
}

// look reads what a member reads between two pulses: the floor, the pulses of five others, and what tells a
// client of the store that no news of the log, or of the pulse watched, was lost.
func (m *simulated) look(ctx context.Context) error {
	m.mu.Lock()
	v := m.value
	m.mu.Unlock()
	if !v.IsMember(m.id) {
		return nil
	}
	keys := []string{floor.Key, "log-last"}
	for _, id := range cluster.Asked(v, rand.Int64(), m.id) {
		keys = append(keys, pulseKey(id))
	}
	if watched, ok := v.Watched(m.id); ok {
		keys = append(keys, pulseKey(watched))
	}
	for _, key := range keys {
		if _, err := m.store.Get(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// claim claims a node ID, as a member that is not one of the first.
func (m *simulated) claim(node int64) {
	m.insist(func(ctx context.Context) error {
		f, err := fence.Claim(ctx, fence.Config{
			Store: m.store, Prefix: workers, Owner: m.name, Holder: fence.NewHolder(m.id), Clock: time.Now,
			Window: m.window, NotBefore: time.Now(),
		}, m.session, node)
		if err == nil {
			m.fence.Store(f)
		}
		return err
	})
}

// stop ends its writes, and takes it out of the simulation.
func (m *simulated) stop() {
	m.end()
	<-m.ended
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.members, m.id)
}

// leave gives its node ID back, and says in the log that it leaves.
func (m *simulated) leave(ctx context.Context) (err error) {
	m.stop()
	if f := m.fence.Load(); f != nil {
		err = f.Release(ctx, time.Now)
	}
	_, failed := m.append(cluster.Leave{Member: m.id, Why: cluster.CauseLeft, By: m.id})
	_, forgotten := m.store.Commit(ctx, store.Txn{
		If:   []store.Condition{{Key: pulseKey(m.id), Version: m.pulse}},
		Then: m.record(time.Now()),
	})
	return errors.Join(err, failed, forgotten, m.session.Close(ctx))
}

// die ends its session. Who watches it, if it is simulated, takes it out.
func (m *simulated) die(ctx context.Context, watcher string) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	m.mu.Lock()
	simulated := m.members[watcher] != nil
	m.mu.Unlock()
	m.stop()
	if !simulated {
		return m.session.Close(ctx)
	}
	gone, err := m.store.Gone(ctx, pulseKey(m.id))
	if err != nil {
		return err
	}
	watching.Go(func() {
		<-gone
		_, err := m.append(cluster.Leave{Member: m.id, Why: cluster.CauseSessionEnded, By: watcher})
		if err != nil {
			m.t.Error(err)
		}
	})
	return m.session.Close(ctx)
}
