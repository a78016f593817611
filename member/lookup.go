package member

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/cluster"
)

// How often the log is read for names that turn out not to exist, whatever their number.
const (
	vainEvery = time.Second // one read in so long
	vainMost  = 10          // and as many at once, if there were none before
)

// Lookup returns the sequencer of a name as the cluster's value has it. If the value has none, the log is read to its end
// first, so that one is found that was created elsewhere a moment ago. That costs the store a read; after ten that found
// nothing it is read once a second, and in between the value alone decides, which is as far behind the log as the store's
// news takes. ErrNoSequencer is returned when there is none, a *cluster.NameError when there can't be, and other errors
// when ctx has ended, or the member has.
func (m *Member) Lookup(ctx context.Context, name string) (cluster.Sequencer, error) {
	if q, ok := m.Value().Sequencer(name); ok {
		return q, nil
	}
	return m.find(ctx, name)
}

// find is the sequencer that a name stands for now, however many callers ask for what does not exist: the store
// has little to do.
func (m *Member) find(ctx context.Context, name string) (cluster.Sequencer, error) {
	if cluster.CheckName(name) != nil || !m.lookups.begin() {
		return sequencerIn(name, func() (cluster.Value, error) { return m.recent(ctx) })
	}
	q, err := m.latest(ctx, name)
	if err == nil {
		m.lookups.found()
	}
	return q, err
}

// latest is the sequencer that a name stands for now, wherever it was created or destroyed.
func (m *Member) latest(ctx context.Context, name string) (cluster.Sequencer, error) {
	return sequencerIn(name, func() (cluster.Value, error) { return m.catchUp(ctx) })
}

func sequencerIn(name string, read func() (cluster.Value, error)) (cluster.Sequencer, error) {
	if err := cluster.CheckName(name); err != nil {
		return cluster.Sequencer{}, err
	}
	v, err := read()
	if err != nil {
		return cluster.Sequencer{}, err
	}
	q, ok := v.Sequencer(name)
	if !ok {
		return q, fmt.Errorf("%w: %q", ErrNoSequencer, name)
	}
	return q, nil
}

// recent is a value that had reached the end of the log at most vainEvery ago. A caller that needs the log read for that waits
// for one that reads it already.
func (m *Member) recent(ctx context.Context) (cluster.Value, error) {
	if m.lookups.fresh() {
		return m.Value(), nil
	}
	select {
	case m.lookups.turn <- struct{}{}:
		defer func() { <-m.lookups.turn }()
	case <-m.done:
		return cluster.Value{}, m.ended()
	case <-ctx.Done():
		return cluster.Value{}, m.troubles.because(ctx.Err())
	}
	if m.lookups.fresh() {
		return m.Value(), nil
	}
	return m.catchUp(ctx)
}

// lookups bounds the reads of the log for names that the value does not have. Make it with newLookups.
type lookups struct {
	turn chan struct{}             // held by the one who reads for all others
	read atomic.Pointer[time.Time] // since when the log is known to have been read to its end; nil: never

	mu   sync.Mutex
	paid time.Time // guarded by mu: when all reads that found nothing will have been made up for
}

func newLookups() lookups { return lookups{turn: make(chan struct{}, 1)} }

// begin tells whether the log may be read for one name alone. It counts as a read that found nothing until found is called.
func (l *lookups) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.paid.Before(now) {
		l.paid = now
	}
	if l.paid.Sub(now) > (vainMost-1)*vainEvery {
		return false
	}
	l.paid = l.paid.Add(vainEvery)
	return true
}

func (l *lookups) found() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paid = l.paid.Add(-vainEvery)
}

// caughtUp notes that the member has reached all that was in the log at a time.
func (l *lookups) caughtUp(at time.Time) { l.read.Store(&at) }

// forget has the log read again, which may be another.
func (l *lookups) forget() { l.read.Store(nil) }

func (l *lookups) fresh() bool {
	at := l.read.Load()
	return at != nil && time.Since(*at) < vainEvery
}
