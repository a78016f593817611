package main

import (
	"context"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
)

// giveLate gives IDs to instants of the past, for a job of which all machines know. Where another call of it is
// further, it is refused, and ends the job.
func (v verb) giveLate(ctx context.Context) error {
	w, m := v.world, v.process.member
	q, err := m.Lookup(ctx, v.Sequencer)
	if err != nil {
		return err
	}
	d := q.Definition()
	l := lane{by: "imports", sequencer: v.Sequencer, layout: d.IDLayout(), jumps: true}
	l.layout.Epoch = l.layout.Epoch.UTC()
	job := peer.Past{Job: "rows", Move: v.Count%2 == 0, End: v.Count%5 == 0}
	for i := range v.Count { // several of one instant
		job.Times = append(job.Times, l.layout.Epoch.Add(v.For+time.Duration(i/3)*time.Millisecond))
	}
	given, err := m.GivePast(ctx, v.Sequencer, job)
	if err != nil {
		_, endErr := m.GivePast(ctx, v.Sequencer, peer.Past{Job: job.Job, End: true})
		if endErr != nil {
			return endErr
		}
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range given.IDs {
		made := id
		if d.Scattered {
			made = firn.Gather(id)
		}
		if rule, text := w.seen.note(l, made, id); rule != "" {
			w.failLocked(rule, text)
		}
	}
	return nil
}
