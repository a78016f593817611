package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn"
)

// refillRest is how long nothing is fetched after a fetch has failed, unless somebody waits.
const refillRest = time.Second

// stock is the IDs of one sequencer that are kept in memory.
type stock struct {
	s      *Sequencer
	count  int
	maxAge time.Duration

	mu       sync.Mutex // guards what follows
	batches  []batch    // those that were asked for first come first; none is empty
	left     int        // how many IDs they have
	waiting  []*waiter  // in the order in which they came; the first one wants more than are left
	fetching bool
	rest     time.Time // until then nothing is fetched unless somebody waits
	expired  int       // how many IDs were thrown away, and no hook was told of yet
}

// waiter is a call that waits for a fetch.
type waiter struct {
	n    int
	got  batch
	err  error
	done chan struct{} // closed when got or err is set
}

// take fills ids, 1 to count of them, and tells how old the oldest is.
func (k *stock) take(ctx context.Context, ids []firn.ID) (age time.Duration, err error) {
	began := time.Now()
	for {
		if ctx.Err() != nil {
			return 0, k.noAnswer(ctx, began)
		}
		w := k.wait(len(ids))
		select {
		case <-w.done:
		case <-ctx.Done():
			if k.leave(w) {
				return 0, k.noAnswer(ctx, began)
			}
		}
		if w.err != nil {
			return 0, w.err
		}
		if age := time.Since(w.got.asked); age <= k.maxAge {
			copy(ids, w.got.ids)
			return age, nil
		}
		k.mu.Lock()
		k.expired += len(ids) // on the way from there to here
		k.unlock(Batch{})
	}
}

// wait asks for n IDs. It is done at once when they are there.
func (k *stock) wait(n int) *waiter {
	k.mu.Lock()
	defer k.unlock(Batch{})
	w := &waiter{n: n, done: make(chan struct{})}
	k.waiting = append(k.waiting, w)
	k.serveLocked()
	return w
}

// leave takes w out of those who wait. It returns false when w is done.
func (k *stock) leave(w *waiter) bool {
	k.mu.Lock()
	defer k.unlock(Batch{})
	i := slices.Index(k.waiting, w)
	if i < 0 {
		return false
	}
	k.waiting = slices.Delete(k.waiting, i, i+1)
	k.serveLocked() // the next one may want less
	return true
}

// serveLocked throws away what is too old, gives to those who wait what there is, and has more fetched when little is
// left.
func (k *stock) serveLocked() {
	now := time.Now()
	for len(k.batches) > 0 && now.Sub(k.batches[0].asked) > k.maxAge {
		k.left -= len(k.batches[0].ids)
		k.expired += len(k.batches[0].ids)
		k.batches = k.batches[1:]
	}
	for len(k.waiting) > 0 && k.waiting[0].n <= k.left {
		w := k.waiting[0]
		k.waiting = k.waiting[1:]
		w.got = k.popLocked(w.n)
		close(w.done)
	}
	if !k.fetching && (len(k.waiting) > 0 || k.left <= k.count/2 && !now.Before(k.rest)) {
		k.fetching = true
		n := k.count - k.left
		for _, w := range k.waiting {
			n += w.n
		}
		n = min(n, maxCount)
		k.s.client.tasks.Go(func() { k.fetch(n) })
	}
}

// unlock gives k.mu back and tells the hook what happened.
func (k *stock) unlock(b Batch) {
	b.Sequencer, b.Expired, k.expired = k.s.name, k.expired, 0
	k.mu.Unlock()
	k.s.client.config.hooks.batch(b)
}

// popLocked takes n IDs out, which are there.
func (k *stock) popLocked(n int) batch {
	k.left -= n
	got := batch{asked: k.batches[0].asked}
	for n > 0 {
		b := &k.batches[0]
		m := min(n, len(b.ids))
		if got.ids == nil {
			got.ids = b.ids[:m:m]
		} else {
			got.ids = slices.Concat(got.ids, b.ids[:m])
			slices.Sort(got.ids) // they may be from several nodes
		}
		if b.ids = b.ids[m:]; len(b.ids) == 0 {
			k.batches = k.batches[1:]
		}
		n -= m
	}
	return got
}

// fetch adds n IDs. It is nobody's in particular, and goes on when those who wait give up.
func (k *stock) fetch(n int) {
	ctx, cancel := context.WithTimeout(k.s.client.life, DefaultTimeout)
	defer cancel()
	b, err := k.s.ask(ctx, n)
	k.mu.Lock()
	defer k.unlock(Batch{Fetched: len(b.ids), Err: err})
	k.fetching = false
	switch {
	case err == nil:
		k.batches = append(k.batches, b)
		k.left += n
	case isFinal(err):
		for _, w := range k.waiting {
			w.err = err
			close(w.done)
		}
		k.waiting = nil
		fallthrough
	default: // those who wait do so until their contexts end
		k.rest = time.Now().Add(max(refillRest, retryAfter(err)))
	}
	if k.s.client.life.Err() == nil {
		k.serveLocked()
	}
}

// noAnswer is the error of a call whose context ended while it waited for a fetch.
func (k *stock) noAnswer(ctx context.Context, began time.Time) error {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	e := &noAnswerError{after: time.Since(began), cause: ctx.Err()}
	for _, r := range k.s.routes {
		err := r.err
		if err == nil {
			err = &nodeError{r.node, errNoAnswer}
		}
		e.nodes = append(e.nodes, err)
	}
	return e
}

func (k *stock) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.batches, k.left = nil, 0
}
