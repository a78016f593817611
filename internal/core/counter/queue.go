package counter

import (
	"context"
	"sync"

	"github.com/firn-id/firn"
)

// Queue gives numbers in strict order: those of a block to the callers that waited when its claim was sent, or
// the read by which the owner found that it had claimed it, and to nobody else. So a call that begins after another one
// had its number gets a greater one, whoever answers: at some moment of it, its block was the last. Its methods are
// safe for concurrent use. NewQueue makes one.
type Queue struct {
	wanted chan struct{}

	mu      sync.Mutex // guards what follows
	waiting []*waiter  // in order; they came later
	sent    []*waiter  // in order; they may get the next block
	given   int64
	failing error // why there was no block when one was wanted last; nil: there was
	stopped error // why there are no numbers; nil: there are
}

// waiter is a caller that waits for n consecutive numbers.
type waiter struct {
	n     int64
	first int64
	err   error
	gone  bool          // it does not wait any more; it keeps its place among those sent
	done  chan struct{} // closed when first or err is there
}

func (w *waiter) end(first int64, err error) {
	if !w.gone {
		w.first, w.err, w.gone = first, err, true
		close(w.done)
	}
}

// NewQueue returns a queue in which nobody waits.
func NewQueue() *Queue { return &Queue{wanted: make(chan struct{}, 1)} }

// Wanted receives when a block is wanted, see Demand.
func (q *Queue) Wanted() <-chan struct{} { return q.wanted }

func (q *Queue) want() {
	select {
	case q.wanted <- struct{}{}:
	default:
	}
}

// Next returns the next number. It waits for it until ctx ends, whose error it then returns, as it does those of Fail
// and Stop.
func (q *Queue) Next(ctx context.Context) (firn.ID, error) { return q.Take(ctx, 1) }

// Fill fills numbers with the next ones, which are consecutive. It waits and fails as Next does; on an error it zeroes
// numbers.
func (q *Queue) Fill(ctx context.Context, numbers []firn.ID) error {
	if len(numbers) == 0 {
		return nil
	}
	last, err := q.Take(ctx, int64(len(numbers)))
	for i := range numbers {
		if numbers[i] = 0; err == nil {
			numbers[i] = last - firn.ID(len(numbers)-1-i)
		}
	}
	return err
}

// Take takes n consecutive numbers, at least 1, and returns the last of them. It waits and fails as Next does.
func (q *Queue) Take(ctx context.Context, n int64) (last firn.ID, err error) {
	w := &waiter{n: n, done: make(chan struct{})}
	q.mu.Lock()
	if q.stopped != nil {
		defer q.mu.Unlock()
		return 0, q.stopped
	}
	q.waiting = append(q.waiting, w)
	q.mu.Unlock()
	q.want()
	select {
	case <-w.done:
	case <-ctx.Done():
		q.mu.Lock()
		w.end(0, ctx.Err()) // unless it has just got numbers
		q.mu.Unlock()
	}
	if w.err != nil {
		return 0, w.err
	}
	return firn.ID(w.first + n - 1), nil
}

// Ready returns the error that the next caller gets at once, or that the last callers got. It returns nil when there is
// no such error.
func (q *Queue) Ready() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped != nil {
		return q.stopped
	}
	return q.failing
}

// Given returns how many numbers callers got.
func (q *Queue) Given() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.given
}

// Demand returns how many numbers callers wait for, who may get those of the next block: who comes later does not. Who
// wants more than are left gets the error.
func (q *Queue) Demand(left int64, tooFew error) Demand {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := alive(append(q.sent, q.waiting...))
	q.sent, q.waiting = nil, nil
	var d Demand
	for _, w := range all {
		if w.n > left-d.Short {
			w.end(0, tooFew)
			continue
		}
		q.sent, d.Short = append(q.sent, w), d.Short+w.n
	}
	return d
}

func alive(all []*waiter) (waiting []*waiter) {
	for _, w := range all {
		if !w.gone {
			waiting = append(waiting, w)
		}
	}
	return waiting
}

// Add gives a block to those for whom it was claimed. The numbers of somebody who has gone are left out, and so is what
// is left of the block.
func (q *Queue) Add(block Block) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failing = nil
	first := block.From
	var rest []*waiter
	for _, w := range q.sent {
		if w.n > block.To-first+1 {
			rest = append(rest, w)
			continue
		}
		if !w.gone {
			q.given += w.n
		}
		w.end(first, nil)
		first += w.n
	}
	q.sent = nil
	if q.waiting = append(rest, q.waiting...); len(q.waiting) > 0 {
		q.want()
	}
}

// Fail says why there is no block: everybody who waits gets the error. Nil: there may be one again.
func (q *Queue) Fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failing = err; err != nil {
		q.endAll(err)
	}
}

func (q *Queue) endAll(err error) {
	for _, w := range append(q.sent, q.waiting...) {
		w.end(0, err)
	}
	q.waiting = nil
}

// Stop has everybody get the error who waits, and who comes until Start; nil: they go on to wait. What was claimed for
// them is not given any more. Nothing is left unused of a block.
func (q *Queue) Stop(why error) (unused [2]Block) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped = why; why != nil {
		q.endAll(why)
	}
	q.sent, q.waiting = nil, append(alive(q.sent), q.waiting...)
	return unused
}

// Start ends a Stop.
func (q *Queue) Start() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = nil
}
