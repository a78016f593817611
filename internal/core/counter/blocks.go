package counter

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn"
)

// Blocks gives the numbers of an owner's blocks in ascending order, each once. It asks for the next block when a
// quarter of the present one is used. Its methods are safe for concurrent use.
type Blocks struct {
	current atomic.Pointer[run]
	wanted  chan struct{}
	expiry  func(number int64) int64 // until when it may be given, in Unix nanoseconds; nil: for ever
	clock   func() int64

	mu      sync.Mutex    // guards what follows
	next    []Block       // in ascending order
	given   int64         // of the runs before current
	short   int64         // how many numbers a caller waits for, that there are not; 0: nobody waits
	most    int64         // the most that one of those who wait wants
	demands int           // how often Demand was called
	left    int64         // how many numbers nobody had reserved then
	tooFew  error         // for who wants more
	failing error         // why there is no next block yet; nil: it is to come
	stopped error         // why there are no numbers; nil: there are
	changed chan struct{} // closed when one of these changes
}

// run is a block in use.
type run struct {
	block Block
	size  int64
	ask   int64        // how many are used when the next block is asked for
	until int64        // when its numbers expire, in Unix nanoseconds; 0: never
	used  atomic.Int64 // may be greater than size
}

func (b *Blocks) newRun(block Block) *run {
	r := &run{block: block, size: block.Size(), ask: (block.Size() + 3) / 4}
	if b.expiry != nil && r.size > 0 {
		r.until = b.expiry(block.To)
	}
	return r
}

// expired reports whether the numbers of a run may not be given any more.
func (b *Blocks) expired(r *run) bool { return r.until != 0 && b.clock() >= r.until }

// take takes n numbers, and returns how many were used before; false: there are fewer.
func (r *run) take(n int64) (before int64, ok bool) {
	for {
		before = r.used.Load()
		if before > r.size-n {
			return 0, false
		}
		if r.used.CompareAndSwap(before, before+n) {
			return before, true
		}
	}
}

// end ends its use, and returns how many were used, and the others.
func (r *run) end() (used int64, rest Block) {
	used = min(r.used.Swap(math.MaxInt64/2), r.size)
	if used < r.size {
		rest = Block{r.block.From + used, r.block.To}
	}
	return used, rest
}

// newBlocks returns what has no block yet. Without an expiry its numbers may be given for ever, and it needs no clock.
func newBlocks(expiry func(number int64) int64, clock func() int64) *Blocks {
	b := &Blocks{wanted: make(chan struct{}, 1), changed: make(chan struct{}), expiry: expiry, clock: clock}
	b.current.Store(b.newRun(Block{}))
	return b
}

// Wanted receives when another block is wanted, see Demand.
func (b *Blocks) Wanted() <-chan struct{} { return b.wanted }

func (b *Blocks) want() {
	select {
	case b.wanted <- struct{}{}:
	default:
	}
}

// Next returns the next number. It waits for a block until ctx ends, whose error it then returns. Errors of Fail and
// Stop are returned at once.
func (b *Blocks) Next(ctx context.Context) (firn.ID, error) {
	for {
		r := b.current.Load()
		if b.expired(r) {
			b.drop()
		}
		n := r.used.Add(1)
		if n == r.ask {
			b.want()
		}
		if n <= r.size {
			return firn.ID(r.block.From + n - 1), nil
		}
		if err := b.advance(ctx, r); err != nil {
			return 0, err
		}
	}
}

// Fill fills numbers with the next ones, in ascending order: consecutive ones if the present block has as many, or the
// next one begins where it ends. It waits and fails as Next does; on an error it zeroes numbers. It waits until there
// are as many before it takes any; what it has taken when others were faster and it then fails is not given any more.
func (b *Blocks) Fill(ctx context.Context, numbers []firn.ID) error {
	err := b.await(ctx, int64(len(numbers)))
	for rest := numbers; err == nil && len(rest) > 0; {
		r := b.current.Load()
		if b.expired(r) {
			b.drop()
		}
		end := r.used.Add(int64(len(rest)))
		first := end - int64(len(rest)) // how many were used before
		b.asks(r, first, end)
		taken := 0
		for n := first; n < min(end, r.size); n++ {
			rest[taken] = firn.ID(r.block.From + n)
			taken++
		}
		if rest = rest[taken:]; len(rest) > 0 {
			err = b.advance(ctx, r)
		}
	}
	if err != nil {
		clear(numbers)
	}
	return err
}

// asks asks for the next block if so many used numbers, before and after a caller, say so.
func (b *Blocks) asks(r *run, before, after int64) {
	if before < r.ask && r.ask <= after {
		b.want()
	}
}

// Take takes n consecutive numbers, at least 1, and returns the last of them. Where the numbers after a block are
// another owner's, it may have to skip what is left of that block: nobody gets that any more. It waits and fails as
// Next does; on an error it takes and skips none.
func (b *Blocks) Take(ctx context.Context, n int64) (last firn.ID, err error) {
	r := b.current.Load()
	if b.expired(r) {
		b.drop()
	}
	before, ok := r.take(n)
	if !ok {
		before = 0
		err = b.until(ctx, n, func() (short int64) {
			r, short = b.renew(n)
			return short
		})
	}
	if err != nil {
		return 0, err
	}
	b.asks(r, before, before+n)
	return firn.ID(r.block.From + before + n - 1), nil
}

// renew replaces the present run by one of n consecutive numbers or more, of which the caller gets the first n. It
// skips no number that it need not. If there is none, it returns how many numbers the blocks after the present one must
// have.
func (b *Blocks) renew(n int64) (r *run, short int64) {
	used, rest := b.current.Load().end()
	b.given += used
	numbers, skips := rest, 0
	for ; numbers.Size() < n && skips < len(b.next); skips++ {
		numbers = join(numbers, b.next[skips])
	}
	if numbers.Size() < n {
		b.current.Store(b.newRun(rest))
		return nil, n + b.nextSize() // or those that there are might seem enough
	}
	r = b.newRun(numbers)
	r.used.Store(n)
	b.current.Store(r)
	b.next = b.next[skips:]
	return r, 0
}

func (b *Blocks) nextSize() (n int64) {
	for _, next := range b.next {
		n += next.Size()
	}
	return n
}

// advance replaces a run that is used up, unless that has been done.
func (b *Blocks) advance(ctx context.Context, r *run) error {
	return b.until(ctx, 1, func() (short int64) {
		switch {
		case b.current.Load() != r:
			return 0
		case len(b.next) == 0:
			return 1
		}
		b.given += r.size
		b.current.Store(b.newRun(b.next[0]))
		b.next = b.next[1:]
		return 0
	})
}

// drop ends the use of all numbers that have expired.
func (b *Blocks) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropLocked()
}

func (b *Blocks) dropLocked() {
	for b.expired(b.current.Load()) {
		used, _ := b.current.Load().end()
		b.given += used
		next := Block{}
		if len(b.next) > 0 {
			next, b.next = b.next[0], b.next[1:]
		}
		b.current.Store(b.newRun(next))
	}
	for len(b.next) > 0 && b.expired(b.newRun(b.next[0])) {
		b.next = b.next[1:]
	}
}

// await waits until there are so many numbers.
func (b *Blocks) await(ctx context.Context, n int64) error {
	return b.until(ctx, n, func() (short int64) {
		if b.own() >= n {
			return 0
		}
		return n
	})
}

// own returns how many numbers are left of the blocks. mu is held.
func (b *Blocks) own() int64 {
	r := b.current.Load()
	return r.size - min(r.used.Load(), r.size) + b.nextSize()
}

// until waits until lacks, which is called with mu held, returns zero, and asks for a block of so many numbers
// meanwhile, for a caller who wants n. If there are not as many it returns an error, before any are reserved for that.
func (b *Blocks) until(ctx context.Context, n int64, lacks func() (short int64)) error {
	asked := -1
	for {
		b.mu.Lock()
		if b.stopped != nil {
			defer b.mu.Unlock()
			return b.stopped
		}
		b.dropLocked()
		short := lacks()
		if short == 0 {
			b.mu.Unlock()
			return nil
		}
		if asked >= 0 && b.demands > asked && n > b.left+b.own() {
			defer b.mu.Unlock()
			return b.tooFew
		}
		if asked < 0 {
			asked = b.demands
		}
		b.short, b.most = max(b.short, short), max(b.most, n)
		failing, changed := b.failing, b.changed
		b.mu.Unlock()
		b.want()
		if failing != nil {
			return failing
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Ready returns the error that a caller would get at once, or nil.
func (b *Blocks) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropLocked()
	r := b.current.Load()
	switch {
	case b.stopped != nil:
		return b.stopped
	case r.used.Load() < r.size || len(b.next) > 0:
		return nil
	default:
		return b.failing
	}
}

// Given returns how many numbers callers got.
func (b *Blocks) Given() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.current.Load()
	return b.given + min(r.used.Load(), r.size)
}

// Demand is what the size of the next block follows.
type Demand struct {
	Short int64 // how many a caller waits for; 0: nobody waits
	Next  int64 // how many the blocks after the present one have
}

// Demand returns the present one. Who wants more numbers than are left gets the error.
func (b *Blocks) Demand(left int64, tooFew error) Demand {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropLocked()
	b.demands, b.left, b.tooFew = b.demands+1, left, tooFew
	if left+b.own() <= 0 {
		b.failing = tooFew // for Ready, as soon as a caller may get it
	}
	if b.most > left+b.own() {
		b.short, b.most = 0, 0
		b.wakeLocked()
	}
	return Demand{Short: b.short, Next: b.nextSize()}
}

// Add adds a block, whose numbers are greater than those of all blocks before, and ends what Fail said.
func (b *Blocks) Add(block Block) {
	b.change(func() {
		if b.stopped == nil {
			b.next = append(b.next, block)
			b.failing, b.short, b.most = nil, 0, 0
		}
	})
}

// Fail says why there is no next block yet: callers that would wait for one get the error, until Add.
func (b *Blocks) Fail(err error) { b.change(func() { b.failing, b.short, b.most = err, 0, 0 }) }

// Stop stops the use: nobody gets a number any more, but the error. It returns those that nobody got, as Stopped wants
// them. Start begins again, with new blocks; after nil there is no need for that.
func (b *Blocks) Stop(why error) (unused [2]Block) {
	b.change(func() {
		b.stopped = why
		used, rest := b.current.Load().end()
		b.given += used
		unused[1] = rest
		for _, next := range b.next {
			unused = [2]Block{join(unused[0], unused[1]), next}
		}
		b.current.Store(b.newRun(Block{}))
		b.next, b.short, b.most, b.failing = nil, 0, 0, nil
	})
	return unused
}

// Start ends a Stop.
func (b *Blocks) Start() { b.change(func() { b.stopped = nil }) }

func (b *Blocks) change(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	b.wakeLocked()
}

func (b *Blocks) wakeLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}
