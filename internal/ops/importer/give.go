package importer

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/bigsort"
	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/ops/console"
)

// Give has the server give an ID to each row, and ends the job. After an error, the same import goes on where it was if
// it has a file of progress. Without one it has to start again, and rows get other IDs. An *EndError is returned when
// only the end of the job has failed.
func (i *Import) Give(ctx context.Context) error {
	p := i.progress
	want := head{i.Sequencer, i.Job, fresh.Text(), i.digest, i.rows.Count(), i.batch, i.Next}
	begun := p.head != (head{})
	if begun {
		if err := p.check(want); err != nil {
			return err
		}
	} else if err := p.begin(want); err != nil {
		return err
	}
	i.answers = bigsort.New("", i.memory)
	if p.ended || i.rows.Count() == 0 {
		return i.each(ctx)
	}
	if i.opened = p.given == p.head.Rows; !i.opened { // else the job may have ended
		if err := i.open(ctx, begun); err != nil {
			return err
		}
	}
	if err := i.each(ctx); err != nil {
		if i.Progress == "" {
			i.abandon(ctx)
		}
		return err
	}
	if err := i.end(ctx); err != nil {
		return &EndError{i.Job, err}
	}
	return p.append(nil)
}

// EndError is returned by Give when all rows have an ID, and the server has not ended the job.
type EndError struct {
	Job string
	err error
}

func (e *EndError) Error() string {
	return fmt.Sprintf("all rows have an ID, but the job %q has not ended, and keeps its node ID: %v", e.Job, e.err)
}

func (e *EndError) Unwrap() error { return e.err }

// open begins the job. It checks that no row is of a time that the job may not use, unless an earlier run has begun.
func (i *Import) open(ctx context.Context, begun bool) error {
	a, err := i.call(ctx, "", nil, false)
	if err != nil {
		return err
	}
	i.opened, i.node = true, a.Node
	reached, err := i.layout.TickAt(a.Reached)
	if err != nil || begun {
		return nil //nolint:nilerr // it is before all ticks, or what an earlier run has reached
	}
	before := int64(0)
	for p, err := range i.rows.All() {
		if err != nil {
			return err
		}
		if p.First >= reached {
			break
		}
		before++
	}
	if before == 0 {
		return nil
	}
	i.abandon(ctx)
	return fmt.Errorf("%s of times before %s, from which on the job %q gives IDs; no ID was made: want later times, "+
		"another sequencer, or another job", console.Plural(before, "row"), stamp(i.layout.TickStart(reached)), i.Job)
}

// end ends the job.
func (i *Import) end(ctx context.Context) error {
	_, err := i.call(ctx, i.progress.head.Token+"-end", nil, true)
	return err
}

// abandon tries to end a job with which nobody can go on, though ctx may have ended.
func (i *Import) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	i.Patience = 0
	_ = i.end(ctx) // the first error is what counts
}

// each brings the rows, in the order of their times, together with their IDs.
func (i *Import) each(ctx context.Context) error {
	i.resumed.Store(i.progress.given)
	i.phase.Store(int32(Giving))
	w := walk{Import: i, ctx: ctx, last: -1}
	if i.progress.given > 0 {
		w.before = i.progress.reader(i.progress.size)
	}
	for p, err := range i.rows.All() {
		if err == nil {
			err = w.row(p)
		}
		if err != nil {
			return err
		}
	}
	return w.ask()
}

// walk is a walk through the rows in the order of their times.
type walk struct {
	*Import
	ctx    context.Context
	before *reader   // the IDs that an earlier run has brought
	found  []firn.ID // of them, those that are next
	ticks  []int64   // of the rows that have no ID yet
	lines  []int64   // their numbers
	last   firn.ID   // as its generator made it
}

func (w *walk) row(p bigsort.Pair) (err error) {
	if w.given.Load() >= w.resumed.Load() { // all of these have theirs
		w.ticks, w.lines = append(w.ticks, p.First), append(w.lines, p.Second)
		if len(w.ticks) < w.batch {
			return nil
		}
		return w.ask()
	}
	if len(w.found) == 0 {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if w.found, err = w.before.next(); err != nil {
			return fmt.Errorf("%s: %w", w.Progress, err)
		}
	}
	id := w.found[0]
	w.found = w.found[1:]
	if err := w.check(p.First, id); err != nil {
		return err
	}
	return w.bring(p.Second, id)
}

// ask brings the IDs of the rows that have none.
func (w *walk) ask() error {
	if len(w.ticks) == 0 {
		return nil
	}
	key := w.progress.head.Token + "-" + strconv.FormatInt(w.progress.given, 10)
	a, err := w.call(w.ctx, key, w.ticks, false)
	if err != nil {
		return err
	}
	for n, id := range a.IDs {
		if err := w.check(w.ticks[n], id); err != nil {
			return err
		}
	}
	if err := w.progress.append(a.IDs); err != nil {
		return err
	}
	for n, id := range a.IDs {
		if err := w.bring(w.lines[n], id); err != nil {
			return err
		}
	}
	w.ticks, w.lines = w.ticks[:0], w.lines[:0]
	return nil
}

// check returns an error when an ID is not of the tick, or not above the last one.
func (w *walk) check(tick int64, id firn.ID) error {
	made := w.known.Made(id)
	parts, err := w.layout.Decompose(made)
	if err != nil {
		return fmt.Errorf("the server %s gives an ID that is none of the sequencer: %w", w.Client.Base, err)
	}
	moved := parts.Tick != tick
	if moved && !w.Next || parts.Tick < tick || made <= w.last {
		return fmt.Errorf("the server %s gives the ID %d, of %s, for %s; want one of that time, and greater than "+
			"those before it",
			w.Client.Base, id, stamp(w.layout.TickStart(parts.Tick)), stamp(w.layout.TickStart(tick)))
	}
	if w.last = made; moved {
		w.moved++
	}
	w.node = parts.Datacenter<<w.layout.NodeBits | parts.Node
	return nil
}

// bring gives a row its ID.
func (w *walk) bring(row int64, id firn.ID) error {
	w.given.Add(1)
	return w.answers.Add(bigsort.Pair{First: row, Second: int64(id)})
}
