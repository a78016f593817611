package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/quorum"
)

// runClusterCost counts what one member costs etcd while it keeps the node IDs of many sequencers.
func runClusterCost(ctx context.Context, s settings) ([]table, error) {
	t := table{
		Title: fmt.Sprintf("cluster-cost: transactions of one member that keeps its sequencers, window %v", s.window),
		Note: fmt.Sprintf("A round comes every third of a window, so that at the default window of %v there is one "+
			"in %v.\n"+
			"Bytes are those of keys and values, with the keys that are only compared.", fence.DefaultWindow,
			fence.DefaultWindow/3),
		columns: []column{
			{"rounds", "rounds", "%.0f"},
			{"transactions", "transactions", "%.0f"},
			{"per_round", "per round", "%.2f"},
			{"bytes_per_round", "bytes per round", "%.0f"},
			{"per_second_at_default", "per second at the default window", "%.2f"},
			{"bytes_per_second_at_default", "bytes per second there", "%.0f"},
		},
	}
	for _, sequencers := range []int{1, 10, 100} {
		s.tell("%s on one member", counted(sequencers, "sequencer"))
		rounds, commits, err := keep(ctx, s, sequencers)
		if err != nil {
			return nil, err
		}
		bytes := 0
		for _, c := range commits {
			bytes += c.bytes
		}
		perRound, bytesPerRound := float64(len(commits))/float64(rounds), float64(bytes)/float64(rounds)
		every := (fence.DefaultWindow / 3).Seconds()
		t.add(counted(sequencers, "sequencer"),
			float64(rounds), float64(len(commits)), perRound, bytesPerRound, perRound/every, bytesPerRound/every)
		t.Targets = append(t.Targets, atMost("transactions per round of "+counted(sequencers, "sequencer"), perRound,
			float64((sequencers+63)/64)))
	}
	return []table{t}, nil
}

// keep has a member keep so many sequencers, and returns what it sent to etcd in whole rounds.
func keep(ctx context.Context, s settings, sequencers int) (rounds int, sent []commit, err error) {
	q, end, err := startOne()
	if err != nil {
		return 0, nil, err
	}
	defer end()
	etcd, err := q.Open(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = etcd.Close() }()
	counter := &commitCounter{Store: etcd}
	m, err := peer.Join(ctx, counter, peer.Options{Window: s.window})
	if err != nil {
		return 0, nil, err
	}
	defer m.Leave()
	for i := range sequencers {
		q, err := m.EnsureSequencer(ctx, fmt.Sprintf("sequencer-%03d", i), cluster.Define(firn.Default))
		if err == nil {
			err = q.Ready()
		}
		if err != nil {
			return 0, nil, err
		}
	}
	third := s.window / 3
	if err := retry.Sleep(ctx, third); err != nil { // a round that began before all were there is over then
		return 0, nil, err
	}
	already := len(counter.all())
	for range 10 * s.keeps {
		if err := retry.Sleep(ctx, third); err != nil {
			return 0, nil, err
		}
		if rounds, sent = wholeRounds(counter.all()[already:], third/2); rounds >= s.keeps {
			return rounds, sent, nil
		}
	}
	return 0, nil, fmt.Errorf("a member of %s makes too few rounds: %d in %v", counted(sequencers, "sequencer"), rounds,
		10*time.Duration(s.keeps)*third)
}

// wholeRounds counts the rounds, which are so far apart at least, and leaves out the first and the last, of which
// some may be missing.
func wholeRounds(all []commit, gap time.Duration) (rounds int, whole []commit) {
	var begins []int
	for i := 1; i < len(all); i++ {
		if all[i].at.Sub(all[i-1].at) > gap {
			begins = append(begins, i)
		}
	}
	if len(begins) < 2 {
		return 0, nil
	}
	last := len(begins) - 1
	return last, all[begins[0]:begins[last]]
}

// startOne starts a quorum of one, with its data in a directory that end removes.
func startOne() (q *quorum.Quorum, end func(), err error) {
	dir, err := os.MkdirTemp("", "firn-bench-")
	if err != nil {
		return nil, nil, err
	}
	q, err = quorum.One(quorum.Config{Dir: filepath.Join(dir, "data")})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	end = func() {
		q.Close()
		_ = os.RemoveAll(dir) // what was measured is known by then
	}
	if err := q.Start(); err != nil {
		end()
		return nil, nil, err
	}
	return q, end, nil
}

// commitCounter is a store that counts the transactions that pass through it.
type commitCounter struct {
	store.Store

	mu      sync.Mutex // guards what follows
	commits []commit
}

type commit struct {
	at    time.Time
	bytes int // of keys and values, those of the conditions included
}

// Commit counts the transaction and passes it on.
func (c *commitCounter) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	sent := commit{at: time.Now()}
	for _, condition := range txn.If {
		sent.bytes += len(etcdstore.DefaultPrefix) + 1 + len(condition.Key)
	}
	for _, op := range txn.Then {
		sent.bytes += len(etcdstore.DefaultPrefix) + 1 + len(op.Key) + len(op.Value)
	}
	c.mu.Lock()
	c.commits = append(c.commits, sent)
	c.mu.Unlock()
	return c.Store.Commit(ctx, txn)
}

// all returns what was counted.
func (c *commitCounter) all() []commit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.commits)
}
