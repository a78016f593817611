package main

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn"
)

// take takes IDs of the process that runs on a machine, and of those that have left: of each sequencer that ever had
// this name.
func (w *world) take(m *machine, sequencer string, count int64) {
	if m.process != nil {
		for _, h := range m.process.all(sequencer) {
			_ = w.takeOf(h, count) // or none, for a reason that others judge
		}
	}
	for _, h := range m.stale {
		if h.Name() == sequencer {
			_ = w.takeOf(h, 1)
		}
	}
}

// patience is how long a caller waits for an ID: for the clock, under saturation.
const patience = 5 * time.Millisecond

// locally is how many times as many IDs are taken of a Local at once, if more than that, so that it has some left.
const locally = 8

// takeOf takes so many IDs, or fewer if there are no more, and checks each. It takes them at once, or one after the
// other; every other time of a Local.
func (w *world) takeOf(h *handle, count int64) (err error) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	w.mu.Lock()
	over := h.over
	h.turns++
	local := h.turns%2 == 0
	w.mu.Unlock()
	if count%2 == 0 {
		ids := make([]firn.ID, count)
		if err := h.Fill(ctx, ids); err != nil {
			return err
		}
		w.note(h, h.lane, over, ids...)
		return nil
	}
	next, lane := h.Next, h.lane
	if local {
		next, lane.local = h.local.Next, true
	}
	if local && count > locally {
		count *= locally
	}
	for range count {
		id, err := next(ctx)
		if err != nil {
			return err
		}
		w.note(h, lane, over, id)
	}
	return nil
}

// note checks IDs that a handle gave.
func (w *world) note(h *handle, l lane, over string, ids ...firn.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if over != "" {
			w.failLocked("what is over stays over",
				fmt.Sprintf("%s gives %d of %s %s", h.process.name, id, h.Name(), over))
		}
		if rule, text := w.seen.note(l, h.gather(id), id); rule != "" {
			w.failLocked(rule, text)
		}
	}
}

func (h *handle) gather(id firn.ID) firn.ID {
	if h.Definition().Scattered {
		return firn.Gather(id)
	}
	return id
}
