package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
)

// borrow reserves a node ID, makes IDs under it as a database would, and releases it. The IDs begin where the
// reservation says, and may be ahead of every clock.
func (v verb) borrow(ctx context.Context) error {
	w, m := v.world, v.process.member
	w.mu.Lock()
	w.borrowers++
	by := fmt.Sprint("borrower ", w.borrowers)
	w.mu.Unlock()
	r, from, err := m.Reserve(ctx, v.Sequencer, cluster.Reserving{For: by, Count: 1})
	if err != nil {
		return err
	}
	q, err := m.Lookup(ctx, v.Sequencer)
	if err != nil {
		return err
	}
	l := lane{by: by, sequencer: v.Sequencer, layout: q.Definition().IDLayout()}
	first, err := l.layout.TickAt(from)
	if err != nil {
		return err
	}
	if l.layout.TickStart(first).Before(from) {
		first++ // the tick of from may have been begun
	}
	last, lastTick, scattered := firn.ID(0), int64(0), q.Definition().Scattered
	for i := range max(v.Count, 1) {
		lastTick = first + i*i
		id, err := l.layout.Compose(firn.Parts{Tick: lastTick, Node: r.Nodes[0]})
		if err != nil {
			return err
		}
		given := id
		if scattered {
			given = firn.Scatter(id)
		}
		w.mu.Lock()
		if rule, text := w.seen.note(l, id, given); rule != "" {
			w.failLocked(rule, text)
		}
		w.mu.Unlock()
		last = id
	}
	if err := retry.Sleep(ctx, v.For); err != nil {
		return err // it is reserved for ever
	}
	for tries := 0; ; tries++ {
		if scattered {
			err = m.Release(ctx, v.Sequencer, by, l.layout.TickStart(lastTick+1))
		} else {
			err = m.ReleaseAfter(ctx, v.Sequencer, by, last)
		}
		if err == nil || retry.Sleep(ctx, time.Second) != nil {
			return err
		}
	}
}

// keep reserves node IDs for later, some of which borrowers may take meanwhile, and releases what is left: nobody has
// used that.
func (v verb) keep(ctx context.Context) error {
	m := v.process.member
	if _, _, err := m.Reserve(ctx, v.Sequencer, cluster.Reserving{For: cluster.Later, Count: v.Count}); err != nil {
		return err
	}
	if err := retry.Sleep(ctx, v.For); err != nil {
		return err
	}
	for {
		err := m.Release(ctx, v.Sequencer, cluster.Later, time.Time{})
		_, gone := errors.AsType[*peer.RefusedError](err)
		if err == nil || gone || retry.Sleep(ctx, time.Second) != nil {
			return err
		}
	}
}
