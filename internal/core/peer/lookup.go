package peer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
)

// How often the log is read for names that turn out not to exist, however many they are.
const (
	vainEvery = time.Second // one read per vainEvery
	vainMost  = 10          // and so many at once after a pause
)

// Lookup returns the sequencer of a name as the cluster's value has it. If the value has none, the member first
// reads the log to its end, to find a sequencer that another member has just created. After ten such reads that
// found nothing there is at most one a second; in between the value alone decides, which may lag behind the log.
// ErrNoSequencer is returned when no sequencer has the name, a *cluster.NameError when the name is not allowed,
// and other errors when ctx or the member has ended.
func (m *Member) Lookup(ctx context.Context, name string) (cluster.Sequencer, error) {
	if q, ok := m.Value().Sequencer(name); ok {
		return q, nil
	}
	return m.find(ctx, name)
}

// find returns the sequencer that has a name now. Callers that ask for names that don't exist cost the store
// little.
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

// latest returns the sequencer that has a name now, after a read of the log.
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

// recent returns a value that had reached the end of the log at most vainEvery ago. Of several callers that need
// a read, one reads and the others wait.
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
	turn chan struct{}             // held by the caller that reads for all
	read atomic.Pointer[time.Time] // when the log was last known to be read to its end; nil: never

	mu   sync.Mutex
	paid time.Time // guarded by mu: until when the reads that found nothing use up the limit
}

func newLookups() lookups { return lookups{turn: make(chan struct{}, 1)} }

// begin reports whether the log may be read for this name. The read counts as one that found nothing until found
// is called.
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

// caughtUp notes that the member has reached the log's end as it was at a time.
func (l *lookups) caughtUp(at time.Time) { l.read.Store(&at) }

// forget has the next lookup read the log again, which may be another.
func (l *lookups) forget() { l.read.Store(nil) }

func (l *lookups) fresh() bool {
	at := l.read.Load()
	return at != nil && time.Since(*at) < vainEvery
}
