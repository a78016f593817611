package firn

import "context"

// Local makes the IDs of a Generator for one goroutine: it takes a batch of places at once, and gives them without a
// write to memory that others read. Generator.Local makes a Local; the zero value does not work. It is not safe for
// concurrent use: each goroutine has its own. There is nothing to close.
//
// The IDs of a Local ascend, and no other caller gets them. An ID that another caller took before can exceed them, by
// less than a tick and the look-ahead. They exceed every ID that Advance was called for.
//
// A Local gives from a batch until the clock shows the end of its tick, also after a step back, and drops the rest: at
// most one place for 256 that it gives. It holds less than 256 places, and at most one of 512 in a tick.
type Local struct {
	g      *Generator
	next   uint64 // the place that comes next in the batch
	end    uint64 // the first place after the batch
	until  uint64 // when its tick ends, in Unix nanoseconds
	recent uint64 // how many places the last batches had; it halves when a rest is dropped
	_      [cacheLine - 40]byte
}

// A batch has a place for each batchShare places of the last batches, so that few are dropped.
const (
	batchShare = 512
	mostRecent = 255 * batchShare
)

// Local returns a Local of the generator, which holds no places yet.
func (g *Generator) Local() *Local { return &Local{g: g} }

// Next returns the next ID. It waits and fails as Generator.Next does.
func (l *Local) Next(ctx context.Context) (ID, error) {
	for !l.has(l.g.shown.Load()) {
		err := l.take()
		if err == nil {
			break
		}
		if err := l.g.wait(ctx, err); err != nil {
			return 0, err
		}
	}
	return l.give(), nil
}

// TryNext returns the next ID, and never waits. It fails as Generator.TryNext does.
func (l *Local) TryNext() (ID, error) {
	if !l.has(l.g.shown.Load()) {
		if err := l.take(); err != nil {
			return 0, err
		}
	}
	return l.give(), nil
}

// give gives the next place of the batch.
func (l *Local) give() ID {
	place := l.next
	l.next++
	return l.g.packing.id(place)
}

// has reports whether the next place of the batch may be given at a time. A clock that sleeps shows a negative time.
func (l *Local) has(now int64) bool {
	return l.next < l.end && uint64(now) < l.until && l.next >= l.g.least.Load()
}

// take takes another batch, unless a clock that does not tick leaves something of the last.
func (l *Local) take() error {
	if l.next < l.end {
		if l.has(l.g.clock.Now()) {
			return nil
		}
		l.next = l.end
		l.recent /= 2
	}
	place, count, err := l.g.reserve(1 + l.recent/batchShare)
	if err != nil {
		return err
	}
	l.next, l.end = place, place+count
	l.until = uint64(l.g.epoch) + (place/l.g.perTick+1)*l.g.tick
	l.recent = min(l.recent+count, l.g.perTick, mostRecent)
	return nil
}
