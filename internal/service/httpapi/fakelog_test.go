package httpapi_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
)

// fakeLog is a log that was read to its end by the member that serves. What is not read or followed panics.
type fakeLog struct {
	unused
	servertest.Member
	silent bool  // it does not answer
	err    error // or with this

	mu         sync.Mutex // guards the rest
	checkpoint *store.Checkpoint
	entries    []store.LogEntry
	more       chan struct{} // closed when something has changed
	followers  sync.WaitGroup
}

// unused are the methods of a log that are not called.
type unused struct{ store.Log }

// Log returns the log itself.
func (f *fakeLog) Log() (store.Log, error) { return f, nil }

// newLog is a log with these commands at the positions 2, 4, 6 and so on.
func newLog(t testing.TB, commands ...cluster.Command) *fakeLog {
	f := &fakeLog{more: make(chan struct{})}
	f.Of = "fj4ltw4x"
	f.Name = "b"
	for _, c := range commands {
		f.append(t, c)
	}
	return f
}

// append appends a command of an unknown time.
func (f *fakeLog) append(t testing.TB, c cluster.Command) { f.appendAt(t, c, time.Time{}) }

// appendAt appends a command that was sent at a time.
func (f *fakeLog) appendAt(t testing.TB, c cluster.Command, at time.Time) {
	t.Helper()
	data, err := cluster.Encode(c, at)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.Value()
	position := v.Position() + 2
	f.entries = append(f.entries, store.LogEntry{Position: store.Position(position), Data: data})
	v, _ = cluster.Apply(v, cluster.Entry{Position: position, Command: c})
	f.SetValue(v)
	f.changed()
}

func (f *fakeLog) changed() {
	close(f.more)
	f.more = make(chan struct{})
}

// cut drops the first entries, in favour of a checkpoint.
func (f *fakeLog) cut(t testing.TB, entries int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var v cluster.Value
	var err error
	if f.checkpoint != nil {
		if v, err = cluster.DecodeCheckpoint(f.checkpoint.Value); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range f.entries[:entries] {
		entry, err := cluster.Decode(int64(e.Position), e.Data)
		if err != nil {
			t.Fatal(err)
		}
		v, _ = cluster.Apply(v, entry)
	}
	data, err := cluster.EncodeCheckpoint(v)
	if err != nil {
		t.Fatal(err)
	}
	f.checkpoint = &store.Checkpoint{Position: store.Position(v.Position()), Value: data}
	f.entries = f.entries[entries:]
	f.changed()
}

func (f *fakeLog) Read(ctx context.Context, after store.Position) (store.Batch, error) {
	b, _, err := f.read(after)
	if f.silent {
		<-ctx.Done()
		err = ctx.Err()
	}
	return b, err
}

func (f *fakeLog) read(after store.Position) (b store.Batch, more chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if after < 0 || int64(after) > f.Value().Position() {
		return b, nil, fmt.Errorf("%w: %d is no position of this log", store.ErrRefused, after)
	}
	if f.checkpoint != nil && after < f.checkpoint.Position {
		b.Checkpoint = f.checkpoint
	}
	for _, e := range f.entries {
		if e.Position > after {
			b.Entries = append(b.Entries, e)
		}
	}
	return b, f.more, f.err
}

func (f *fakeLog) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		f.followers.Add(1)
		defer f.followers.Done()
		for first := true; ; first = false {
			b, more, err := f.read(after)
			if f.silent {
				<-ctx.Done()
				err = ctx.Err()
			}
			if err != nil || first || b.Checkpoint != nil || len(b.Entries) > 0 {
				if !yield(b, err) || err != nil {
					return
				}
			}
			if n := len(b.Entries); n > 0 {
				after = b.Entries[n-1].Position
			} else if b.Checkpoint != nil {
				after = b.Checkpoint.Position
			}
			select {
			case <-more:
			case <-ctx.Done():
				yield(store.Batch{}, ctx.Err())
				return
			}
		}
	}
}
