package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/sequencer"
)

// runAttach measures how long members take to attach to a sequencer, to detach from it, and to take over.
func runAttach(ctx context.Context, s settings) ([]table, error) {
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
	here, err := member.Join(ctx, one, member.Options{})
	if err != nil {
		return nil, err
	}
	defer here.Leave()
	other, err := q.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = other.Close() }()
	there, err := member.Join(ctx, other, member.Options{})
	if err != nil {
		return nil, err
	}
	defer there.Leave()

	s.tell("attaching and detaching %d times", s.attaches)
	attach, detach, err := comeAndGo(ctx, here, s.attaches)
	if err != nil {
		return nil, err
	}
	s.tell("taking over %d times", s.attaches)
	over, err := takeTurns(ctx, here, there, s.attaches)
	if err != nil {
		return nil, err
	}
	return []table{{
		Title: "attach: how long it takes over a quorum of one, with its data in the directory for temporary files",
		Note: "There are two members, in one process. Taking over is from the call of Detach on one to the first ID " +
			"of the other, which stood in line.",
		columns: []column{
			{"times", "times", "%.0f"},
			{"p50_ms", "p50 ms", "%.2f"},
			{"p99_ms", "p99 ms", "%.2f"},
			{"max_ms", "max ms", "%.2f"},
		},
		rows: []row{latencies("attach", attach), latencies("detach", detach), latencies("take over", over)},
	}}, nil
}

// comeAndGo attaches to a sequencer and detaches from it, again and again.
func comeAndGo(ctx context.Context, m *member.Member, times int) (attach, detach []time.Duration, err error) {
	q, err := m.EnsureSequencer(ctx, "alone", sequencer.Define(firn.Default))
	if err != nil {
		return nil, nil, err
	}
	for range times {
		began := time.Now()
		if err := q.Detach(ctx); err != nil {
			return nil, nil, err
		}
		detached := time.Now()
		if err := q.Attach(ctx); err != nil && !errors.Is(err, member.ErrNotReady) {
			return nil, nil, err
		}
		if _, err := firstID(ctx, q); err != nil {
			return nil, nil, err
		}
		detach, attach = append(detach, detached.Sub(began)), append(attach, time.Since(detached))
	}
	return attach, detach, q.Detach(ctx)
}

// takeTurns has two members stand in line, in turn, for the only node ID of a sequencer.
func takeTurns(ctx context.Context, a, b *member.Member, times int) (took []time.Duration, err error) {
	one := sequencer.Define(firn.Default)
	one.Nodes = 1
	first, err := a.EnsureSequencer(ctx, "shared", one)
	if err != nil {
		return nil, err
	}
	next, err := b.EnsureSequencer(ctx, "shared", one)
	if err != nil {
		return nil, err
	}
	for range times {
		last, err := firstID(ctx, first)
		if err != nil {
			return nil, err
		}
		if phase := next.State().Phase; phase != member.Waiting {
			return nil, fmt.Errorf("the member that should stand in line is %v", phase)
		}
		began := time.Now()
		let := make(chan error, 1)
		go func() { let <- first.Detach(ctx) }()
		id, err := firstID(ctx, next)
		took = append(took, time.Since(began))
		switch err := errors.Join(err, <-let); {
		case err != nil:
			return nil, err
		case id <= last:
			return nil, fmt.Errorf("the ID %d came after %d", id, last)
		}
		if err := first.Attach(ctx); !errors.Is(err, member.ErrWaiting) {
			return nil, fmt.Errorf("attached behind the other: got %w, want a place in line", err)
		}
		first, next = next, first
	}
	return took, nil
}

// firstID waits until a sequencer is attached, and takes an ID.
func firstID(ctx context.Context, q *member.Sequencer) (firn.ID, error) {
	for state := range q.Changes(ctx) {
		if state.Phase == member.Attached {
			return q.Next(ctx)
		}
	}
	return 0, fmt.Errorf("no ID: %w", errors.Join(q.Ready(), ctx.Err()))
}

func latencies(name string, all []time.Duration) row {
	slices.Sort(all)
	milliseconds := func(i int) float64 { return all[i].Seconds() * 1000 }
	last := len(all) - 1
	return row{
		name,
		[]float64{float64(len(all)), milliseconds(last / 2), milliseconds(last * 99 / 100), milliseconds(last)},
	}
}
