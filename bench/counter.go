package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store"
)

// A busy counter gives so many numbers each ms, by so many callers.
const (
	busyPerMS   = 10_000
	busyCallers = 2
)

// runCounterBusy measures how long callers wait for the numbers of a busy counter, one at a time. Its blocks last a
// tenth of the time that they do otherwise, so that a run sees several.
func runCounterBusy(ctx context.Context, s settings) ([]table, error) {
	t := table{
		Title: "counter-busy: Next, 10 million numbers a second in one process over a quorum of one",
		Note: fmt.Sprintf("By %d callers, each ms. Blocks last 1 to 6 s, a tenth of what they do otherwise. A time "+
			"includes\none look at the clock.", busyCallers),
		columns: []column{
			{"per_s", "numbers/s", "%.0f"},
			{"blocks", "blocks", "%.0f"},
			{"waited", "calls that waited", "%.0f"},
			{"p50_ns", "p50 ns", "%.0f"},
			{"p99_ns", "p99 ns", "%.0f"},
			{"p999_ns", "p99.9 ns", "%.0f"},
			{"max_us", "max µs", "%.0f"},
		},
	}
	q, end, err := startOne()
	if err != nil {
		return nil, err
	}
	defer end()
	one, err := q.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = one.Close() }()
	claims := &claimCounter{Store: one}
	m, err := peer.Join(ctx, claims, peer.Options{
		Pace: counter.Pace{Least: counter.DefaultLeast / 10, Most: counter.DefaultMost / 10},
	})
	if err != nil {
		return nil, err
	}
	defer m.Leave()
	d := cluster.Definition{Kind: cluster.Counter}
	if _, err := m.Create(ctx, claimed, d); err != nil {
		return nil, err
	}
	c, err := m.EnsureCounter(ctx, claimed, d)
	if err != nil {
		return nil, err
	}
	s.tell("counter: warming up")
	if _, err := askPaced(ctx, c, s.fresh); err != nil { // until the blocks are as large as they become
		return nil, err
	}
	s.tell("counter: %d numbers a second", busyPerMS*1000)
	before := claims.n.Load()
	got, err := askPaced(ctx, c, 5*s.fresh)
	if err != nil {
		return nil, err
	}
	t.add("firn, counter", got.perSecond, float64(claims.n.Load()-before), float64(got.waited), got.at(0.5),
		got.at(0.99), got.at(0.999), float64(got.longest)/1e3)
	t.Targets = append(t.Targets, atMost("calls that waited for a block", float64(got.waited), 0))
	return []table{t}, nil
}

// claimed is the counter whose claims a claimCounter counts.
const claimed = "busy"

type claimCounter struct {
	store.Store
	n atomic.Int64
}

func (c *claimCounter) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	if len(txn.Then) > 0 && txn.Then[0].Key == counter.Key(claimed) {
		c.n.Add(1)
	}
	return c.Store.Commit(ctx, txn)
}

// waits is how long calls took.
type waits struct {
	calls, waited int64
	perSecond     float64
	times         [1 << 16]int64 // how many took so many ns; the last: so many or more
	longest       time.Duration
}

// at is within how many ns a share of the calls ended.
func (w *waits) at(share float64) float64 {
	left := int64(math.Ceil(share * float64(w.calls)))
	for ns, n := range w.times {
		if left -= n; left <= 0 {
			return float64(ns)
		}
	}
	return float64(w.longest)
}

func (w *waits) add(other *waits) {
	w.calls, w.waited, w.longest = w.calls+other.calls, w.waited+other.waited, max(w.longest, other.longest)
	for ns, n := range other.times {
		w.times[ns] += n
	}
}

// askPaced asks for busyPerMS numbers each ms.
func askPaced(ctx context.Context, c *peer.Counter, d time.Duration) (*waits, error) {
	all, errs := make([]waits, busyCallers), make([]error, busyCallers)
	began := time.Now()
	var callers sync.WaitGroup
	for i := range all {
		callers.Go(func() { errs[i] = all[i].ask(ctx, c, began, d) })
	}
	callers.Wait()
	took := time.Since(began)
	for i := range all[1:] {
		all[0].add(&all[i+1])
	}
	all[0].perSecond = float64(all[0].calls) / took.Seconds()
	return &all[0], errors.Join(errs...)
}

// ask is one caller. Numbers that are there are given to one whose context has ended, too.
func (w *waits) ask(ctx context.Context, c *peer.Counter, began time.Time, d time.Duration) error {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for after := time.Duration(0); after < d; after += time.Millisecond {
		if err := retry.Sleep(ctx, time.Until(began.Add(after))); err != nil {
			return err
		}
		for at, n := time.Now(), 0; n < busyPerMS/busyCallers; n++ {
			if _, err := c.Next(gone); err != nil {
				w.waited++
				if _, err := c.Next(ctx); err != nil {
					return err
				}
			}
			now := time.Now()
			took := now.Sub(at)
			w.calls, w.longest, at = w.calls+1, max(w.longest, took), now
			w.times[min(int(took), len(w.times)-1)]++
		}
	}
	return nil
}
