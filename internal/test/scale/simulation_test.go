//go:build linux

package scale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store"
)

// simulation is all members of a cluster but one, as that one and the store see them: they write what members write,
// and read what members read while nothing happens. They follow the log together, so that many cost no more than the
// store.
type simulation struct {
	t       *testing.T
	stores  []store.Store
	window  time.Duration
	life    context.Context
	running sync.WaitGroup

	mu        sync.Mutex // guards what follows
	value     cluster.Value
	changed   chan struct{} // closed when there is another value
	anchor    cluster.Value // at the last position where a checkpoint was due
	coming    int           // that have begun, and are not among members yet
	members   map[string]*simulated
	fresh     map[string]bool // that join, and have not been refused
	line      []string        // that were refused, in their order
	pending   map[string]bool // whose join is
	attaching map[string]bool
	sent      map[cluster.Command]*sent
	leaves    map[string]cluster.Leave // that took members out
	refused   int                      // prepares
	renewals  int                      // how many were written
	late      int                      // how many came late by more than the time between two
}

// sent is a command that was sent to the log.
type sent struct {
	under    bool           // way
	position store.Position // of the latest
	tries    int
	after    time.Time // the earliest time to send it again
}

// backoff is that of members.
var backoff = retry.Backoff{First: 100 * time.Millisecond, Max: 5 * time.Second}

// simulate follows the log for all that begin later.
func simulate(t *testing.T, window time.Duration, stores []store.Store) *simulation {
	ctx, cancel := context.WithCancel(context.Background())
	s := &simulation{
		t: t, stores: stores, window: window, life: ctx, changed: make(chan struct{}),
		members: map[string]*simulated{}, fresh: map[string]bool{}, pending: map[string]bool{},
		attaching: map[string]bool{}, sent: map[cluster.Command]*sent{}, leaves: map[string]cluster.Leave{},
	}
	batches := make(chan store.Batch)
	s.running.Go(func() {
		for batch, err := range stores[0].Follow(ctx, 0) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("following the log: %v", err)
				}
				return
			}
			select {
			case batches <- batch:
			case <-ctx.Done():
				return
			}
			_ = retry.Sleep(ctx, s.rest())
		}
	})
	s.running.Go(func() {
		for tick := time.NewTicker(backoff.First); ; s.send() {
			select {
			case batch := <-batches:
				s.replay(batch)
			case <-tick.C:
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		s.running.Wait()
	})
	return s
}

// rest is for how long members leave the log alone after a batch.
func (s *simulation) rest() time.Duration {
	const fewMembers, perMember = 16, 40 * time.Microsecond
	s.mu.Lock()
	defer s.mu.Unlock()
	return perMember * time.Duration(max(0, s.value.Size()+len(s.line)-fewMembers))
}

func (s *simulation) replay(b store.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := cluster.NewReplay(s.value)
	if b.Checkpoint != nil && b.Checkpoint.Position > 0 {
		v, err := cluster.DecodeCheckpoint(b.Checkpoint.Value)
		if err != nil || len(s.members) > 0 {
			s.t.Errorf("the log was cut before it was read, error %v", err)
		}
		r = cluster.NewReplay(v)
	}
	for _, e := range b.Entries {
		entry, err := cluster.Decode(int64(e.Position), e.Data)
		if err != nil {
			s.t.Error(err)
			return
		}
		out := r.Apply(entry)
		s.saw(entry.Command, out, r)
		if r.Entries()%peer.DefaultCheckpointEvery == 0 {
			before, v := s.anchor, r.Value()
			s.anchor = v
			if before.Position() > 0 && s.members[v.Recorder()] != nil {
				s.running.Go(func() { s.checkpoint(before) })
			}
		}
	}
	s.value = r.Value()
	close(s.changed)
	s.changed = make(chan struct{})
}

// saw notes an entry that was replayed. The lock is held.
func (s *simulation) saw(c cluster.Command, out cluster.Outcome, r *cluster.Replay) {
	applied := out.Result == cluster.Applied
	switch c := c.(type) {
	case cluster.PrepareJoin:
		if s.members[c.Joiner] == nil {
			return
		}
		if applied {
			delete(s.fresh, c.Joiner)
			s.pending[c.Joiner] = true
			s.line = slices.DeleteFunc(s.line, func(id string) bool { return id == c.Joiner })
			s.joined(c.Joiner, r)
		} else if out.Result == cluster.Refused {
			s.refused++
			if s.fresh[c.Joiner] {
				delete(s.fresh, c.Joiner)
				s.line = append(s.line, c.Joiner)
			}
		}
	case cluster.AcceptJoin:
		s.joined(c.Joiner, r)
	case cluster.Attach:
		delete(s.attaching, c.Member)
		if m := s.members[c.Member]; m != nil && applied {
			all, _ := r.Value().Sequencer(sequencer)
			if node, has := all.Node(c.Member); has {
				s.running.Go(func() { m.claim(node) })
			} else {
				s.t.Errorf("%s got no node ID", c.Member)
			}
		}
	case cluster.Leave:
		if applied {
			s.leaves[c.Member] = c
			s.retry(r)
		}
	case cluster.AbortJoin:
		s.retry(r)
	case cluster.AskClocks:
		s.answer(cluster.Asked(r.Value(), r.Value().Position(), c.By), r)
	case cluster.PeerGC:
		s.answer(cluster.Called(r.Value(), c.By), r)
	}
}

// joined has one attach that has become a member.
func (s *simulation) joined(id string, r *cluster.Replay) {
	if s.pending[id] && r.Value().IsMember(id) {
		delete(s.pending, id)
		s.attaching[id] = true
	}
}

// retry has those join again whose target is gone.
func (s *simulation) retry(r *cluster.Replay) {
	v := r.Value()
	for id := range s.pending {
		if _, pending := v.Pending(id); !pending && !v.IsMember(id) {
			delete(s.pending, id)
			s.fresh[id] = true
		}
	}
}

// answer has some write their pulses at once.
func (s *simulation) answer(ids []string, r *cluster.Replay) {
	for _, id := range ids {
		if m := s.members[id]; m != nil {
			m.answers.Store(r.Value().Position())
			m.hurry()
		}
	}
}

// owed is what all owe the log now. The lock is held.
func (s *simulation) owed() (all []cluster.Command) {
	v := s.value
	for joiner, j := range v.Joins() {
		who := joiner
		if j.Accepted {
			who, _ = v.Acceptor(joiner)
		}
		if s.members[who] != nil {
			all = append(all, cluster.Duties(v, who)...)
		}
	}
	for id := range s.fresh {
		all = append(all, cluster.PrepareJoin{Joiner: id})
	}
	// as those in line do, see joining.owed of package peer
	for _, id := range s.line[:min(len(s.line), (v.Candidates()+2)/3)] {
		all = append(all, cluster.PrepareJoin{Joiner: id})
	}
	for id := range s.attaching {
		all = append(all, cluster.Attach{Sequencer: sequencer, Member: id})
	}
	return all
}

// send sends what is owed and not under way.
func (s *simulation) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.sent
	s.sent = map[cluster.Command]*sent{}
	for _, c := range s.owed() {
		e := known[c]
		if e == nil {
			e = new(sent)
		}
		s.sent[c] = e
		if e.under || int64(e.position) > s.value.Position() || time.Now().Before(e.after) {
			continue
		}
		e.under = true
		s.running.Go(func() {
			position, err := s.append(c)
			s.mu.Lock()
			defer s.mu.Unlock()
			if err == nil {
				e.position = position
			}
			e.under, e.after = false, time.Now().Add(backoff.After(e.tries))
			e.tries++
		})
	}
}

func (s *simulation) append(c cluster.Command) (store.Position, error) {
	data, err := cluster.Encode(c, time.Now())
	if err != nil {
		s.t.Error(err)
		return 0, err
	}
	return s.any().Append(s.life, fresh.Text(), data)
}

func (s *simulation) any() store.Store { return s.stores[rand.N(len(s.stores))] }

// checkpoint cuts the log, as the member does whose turn it is.
func (s *simulation) checkpoint(v cluster.Value) {
	data, err := cluster.EncodeCheckpoint(v)
	if err == nil {
		err = s.any().Checkpoint(s.life, store.Checkpoint{Position: store.Position(v.Position()), Value: data})
	}
	if err == nil {
		err = s.any().Trim(s.life)
	}
	busy := errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrAmbiguous) // the next one cuts more
	if err != nil && !busy && s.life.Err() == nil {
		s.t.Errorf("cutting the log: %v", err)
	}
}

// await waits until there is a value that is as wanted.
func (s *simulation) await(what string, wanted func(cluster.Value) bool) cluster.Value {
	s.t.Helper()
	for deadline := time.After(patience); ; {
		s.mu.Lock()
		v, changed := s.value, s.changed
		s.mu.Unlock()
		if wanted(v) {
			return v
		}
		select {
		case <-changed:
		case <-time.After(100 * time.Millisecond): // not all that is wanted is in the value
		case <-deadline:
			s.mu.Lock()
			defer s.mu.Unlock()
			claiming := len(slices.DeleteFunc(s.living(), func(m *simulated) bool { return m.fence.Load() != nil }))
			s.t.Fatalf("%s: not after %v: %d members; %d open a session, %d are to join, %d joins are pending, %d are "+
				"in line, %d attach, %d have no node ID", what, patience, v.Size(), s.coming, len(s.fresh),
				len(s.pending), len(s.line), len(s.attaching), claiming)
		}
	}
}

// settled is a value in which all that live are members with a node ID, besides so many others.
func (s *simulation) settled(others int) cluster.Value {
	s.t.Helper()
	return s.await("all that live have joined, and have node IDs", func(v cluster.Value) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		all, _ := v.Sequencer(sequencer)
		return s.coming == 0 && v.Size() == len(s.members)+others && int(all.Taken()) == v.Size() &&
			!slices.ContainsFunc(s.living(), func(m *simulated) bool { return m.fence.Load() == nil })
	})
}

// living are the simulated members that have not left. The lock is held.
func (s *simulation) living() (all []*simulated) {
	for _, m := range s.members {
		all = append(all, m)
	}
	return all
}

// some are so many of those that live, by chance.
func (s *simulation) some(n int) []*simulated {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.living() // in no order
	return all[:min(n, len(all))]
}

// begin has members join, and returns at once.
func (s *simulation) begin(names ...string) {
	s.mu.Lock()
	s.coming += len(names)
	s.mu.Unlock()
	for _, name := range names {
		m := newSimulated(s, name)
		s.running.Go(m.run)
	}
}

func nameOf(i int) string { return fmt.Sprintf("node-%05d", i) }
