package member

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/retry"
	"github.com/firn-id/firn/store"
)

// watchOnly watches these pulses and no others. It also reports those that are already gone, so it does not
// matter when a watch begins.
func (m *Member) watchOnly(ids []string) {
	for id, cancel := range m.watched {
		if !slices.Contains(ids, id) {
			cancel()
			delete(m.watched, id)
		}
	}
	for _, id := range ids {
		if m.watched[id] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		m.watched[id] = cancel
		m.running.Go(func() { m.watch(ctx, id) })
	}
}

// watch reports when a pulse is gone, unless ctx ends first.
func (m *Member) watch(ctx context.Context, id string) {
	for tries := 0; ctx.Err() == nil; tries++ {
		gone, err := m.store.Gone(ctx, pulseKey(id))
		if errors.Is(err, store.ErrRefused) {
			m.troubles.note(ctx, "can't watch a pulse", err)
		}
		if err != nil {
			_ = retry.Sleep(ctx, backoff.After(tries))
			continue
		}
		select {
		case <-gone:
			m.log.Info("a pulse is gone", "member", id)
			select {
			case m.gone <- id:
			case <-ctx.Done():
			}
			return
		case <-ctx.Done():
		}
	}
}

// collect finds all members and joiners without a pulse, once its own call for that was replayed. All that the
// value knows have put a pulse before, so those without one are dead. It returns when to try again.
func (m *Member) collect(ctx context.Context) time.Duration {
	if !m.joining.collect {
		return idle
	}
	alive, err := m.Pulses(ctx)
	if err != nil {
		m.troubles.note(ctx, "can't look for pulses at present, trying again", err)
		return retry.Jitter(backoff.Max)
	}
	m.joining.collect = false
	known := m.value.Members()
	for joiner := range m.value.Joins() {
		known = append(known, joiner)
	}
	for _, id := range known {
		if _, ok := alive[id]; !ok && m.dead[id] == "" {
			m.dead[id] = cluster.CauseFoundDead
		}
	}
	m.log.Info("looked for members without a pulse", "dead", len(m.dead), "alive", len(alive))
	return idle
}
