package client

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
)

// refillRest is how long the client fetches nothing after a failed fetch, unless a call waits.
const refillRest = time.Second

// stock is the IDs of one sequencer in memory. Callers of Next take them from the oldest batch, without a lock, while
// it is open. Whoever holds the lock seals it.
type stock struct {
	s       *Sequencer
	count   int
	maxAge  time.Duration
	elapsed *elapsed
	clock   *firn.CoarseClock // over elapsed; all times are by it

	open  atomic.Pointer[open] // nil: none
	quiet atomic.Int64         // before that, nobody who takes from the open batch looks whether to fetch more

	mu       sync.Mutex // guards what follows
	batches  []fetched  // besides the open one, the oldest first; none is empty
	left     int        // IDs in all of them
	waiting  []*waiter  // the oldest first, which wants more than are left
	fetching bool
	rest     int64 // until then the client fetches only for waiters
	expired  int   // IDs dropped since a hook was called
}

// fetched is IDs, and when they were asked for: before the request was sent.
type fetched struct {
	ids   []firn.ID
	asked int64
}

// open is a batch from which callers take IDs without a lock.
type open struct {
	fetched
	low int64 // from this ID on, few are left

	_    [cacheLine]byte
	next atomic.Int64 // index of the next ID; sealed: none is left
	_    [cacheLine]byte
}

const (
	// behind is more than a CoarseClock is where a CPU is free. Who is so near to the greatest age asks for the true
	// time.
	behind = 16 * time.Millisecond

	cacheLine = 128
	sealed    = math.MaxInt64 / 2 // callers add to it
)

func newStock(s *Sequencer, count int, maxAge time.Duration) *stock {
	k := &stock{s: s, count: count, maxAge: maxAge, elapsed: newElapsed()}
	k.clock = firn.NewCoarseClock(k.elapsed)
	return k
}

// next returns the next ID of the open batch, and false when no batch is open or its IDs are used up or too old.
func (k *stock) next() (firn.ID, bool) {
	o := k.open.Load()
	if o == nil {
		return 0, false
	}
	now := k.clock.Now()
	if now-o.asked > int64(k.maxAge-behind) {
		now = k.clock.Sync()
	}
	if now-o.asked > int64(k.maxAge) {
		return 0, false
	}
	i := o.next.Add(1) - 1
	if i >= int64(len(o.ids)) {
		return 0, false
	}
	if i >= o.low && now >= k.quiet.Load() && k.s.client.enter() == nil {
		k.mu.Lock()
		k.serveLocked()
		k.unlock(Batch{})
		k.s.client.leave()
	}
	return o.ids[i], true
}

// waiter is a call that waits for a fetch.
type waiter struct {
	n    int
	got  fetched
	err  error
	done chan struct{} // closed when got or err is set
}

// take fills ids, 1 to count of them, and returns the age of the oldest.
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
		if age := time.Duration(k.clock.Sync() - w.got.asked); age <= k.maxAge {
			copy(ids, w.got.ids)
			return age, nil
		}
		k.mu.Lock()
		k.expired += len(ids) // since they were taken out
		k.unlock(Batch{})
	}
}

// wait queues a call for n IDs. The waiter is done at once if they are there.
func (k *stock) wait(n int) *waiter {
	k.mu.Lock()
	defer k.unlock(Batch{})
	w := &waiter{n: n, done: make(chan struct{})}
	k.waiting = append(k.waiting, w)
	k.serveLocked()
	return w
}

// leave removes a waiter. It returns false when the waiter is done.
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

// serveLocked drops IDs that are too old, serves the waiters, fetches more IDs when few are left, and opens a batch.
func (k *stock) serveLocked() {
	k.sealLocked()
	defer k.openLocked()
	now := k.clock.Sync()
	for len(k.batches) > 0 && now-k.batches[0].asked > int64(k.maxAge) {
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
	if !k.fetching && (len(k.waiting) > 0 || k.left <= k.count/2 && now >= k.rest) {
		k.fetching = true
		n := k.count - k.left
		for _, w := range k.waiting {
			n += w.n
		}
		n = min(n, maxCount)
		k.s.client.tasks.Go(func() { k.fetch(n) })
	}
}

// sealLocked takes the IDs that are left of the open batch back.
func (k *stock) sealLocked() {
	o := k.open.Load()
	if o == nil {
		return
	}
	k.open.Store(nil)
	if i := o.next.Swap(sealed); i < int64(len(o.ids)) {
		rest := fetched{o.ids[i:], o.asked}
		k.batches = slices.Insert(k.batches, 0, rest)
		k.left += len(rest.ids)
	}
}

// openLocked opens the oldest batch, unless calls wait.
func (k *stock) openLocked() {
	if k.fetching {
		k.quiet.Store(math.MaxInt64)
	} else {
		k.quiet.Store(k.rest)
	}
	if len(k.waiting) > 0 || len(k.batches) == 0 {
		return
	}
	b := k.batches[0]
	k.batches, k.left = k.batches[1:], k.left-len(b.ids)
	k.open.Store(&open{fetched: b, low: int64(len(b.ids) + k.left - k.count/2 - 1)})
}

// unlock unlocks k.mu and calls the hook.
func (k *stock) unlock(b Batch) {
	b.Sequencer, b.Expired, k.expired = k.s.name, k.expired, 0
	k.mu.Unlock()
	k.s.client.config.hooks.batch(b)
}

// popLocked takes out n IDs, of at least as many.
func (k *stock) popLocked(n int) fetched {
	k.left -= n
	got := fetched{asked: k.batches[0].asked}
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

// fetch adds n IDs. It belongs to no call, and continues when the waiters give up.
func (k *stock) fetch(n int) {
	ctx, cancel := context.WithTimeout(k.s.client.life, DefaultTimeout)
	defer cancel()
	asked := k.clock.Sync()
	b, err := k.s.ask(ctx, query{n: n})
	k.mu.Lock()
	defer k.unlock(Batch{Fetched: len(b.ids), Err: err})
	k.fetching = false
	switch {
	case err == nil:
		k.batches = append(k.batches, fetched{b.ids, asked})
		k.left += n
	case isFinal(err):
		for _, w := range k.waiting {
			w.err = err
			close(w.done)
		}
		k.waiting = nil
		fallthrough
	default: // the waiters wait until their contexts end
		k.rest = k.clock.Sync() + int64(max(refillRest, retryAfter(err)))
	}
	if k.s.client.life.Err() == nil {
		k.serveLocked()
	}
}

// noAnswer is the error of a call whose context ended during a fetch.
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
	k.sealLocked()
	k.batches, k.left = nil, 0
}
