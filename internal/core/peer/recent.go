package peer

import (
	"sync"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// recentEntries is how many of the last entries of the log a member remembers at least, as far as it has read so many.
const recentEntries = 512

// tail is the end of the log as the member has read it, for people while the store does not answer. It has the entries
// after two values: once there are enough after the second, those before it are forgotten.
type tail struct {
	mu      sync.Mutex // guards what follows
	first   cluster.Value
	second  cluster.Value
	former  []store.LogEntry // between first and second
	entries []store.LogEntry // after second
	read    time.Time        // when the last one came
}

// restart remembers nothing but a value.
func (r *tail) restart(v cluster.Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first, r.second, r.former, r.entries, r.read = v, v, nil, nil, time.Now()
}

// add remembers entries, which have led to a value; those beyond it were not read.
func (r *tail) add(entries []store.LogEntry, v cluster.Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = time.Now()
	for _, e := range entries {
		if int64(e.Position) <= v.Position() {
			r.entries = append(r.entries, e)
		}
	}
	if len(r.entries) >= recentEntries {
		r.first, r.former = r.second, r.entries
		r.second, r.entries = v, nil
	}
}

// Recent returns the last entries of the log that the member has read, after a checkpoint, and when the last one came,
// with a monotonic clock reading. It asks nobody: it is for people while the store does not answer. An ErrNotReady is
// returned when nothing was read.
func (m *Member) Recent() (store.Batch, time.Time, error) {
	r := &m.tail
	r.mu.Lock()
	first, read := r.first, r.read
	entries := append(r.former[:len(r.former):len(r.former)], r.entries...)
	r.mu.Unlock()
	if first.Position() == 0 && len(entries) == 0 {
		return store.Batch{}, time.Time{}, errNotRead
	}
	batch := store.Batch{Entries: entries}
	if first.Position() > 0 {
		data, err := cluster.EncodeCheckpoint(first)
		if err != nil {
			return store.Batch{}, time.Time{}, err
		}
		batch.Checkpoint = &store.Checkpoint{Position: store.Position(first.Position()), Value: data}
	}
	return batch, read, nil
}
