package httpapi

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/store"
)

// ValueAt is the value of the cluster at a position of the log.
type ValueAt struct {
	Position int64         `json:"position"` // of the last entry
	Value    cluster.Value `json:"value"`
}

// positionError is returned for a position that the log does not have.
type positionError struct{ at, first, last int64 }

func (e *positionError) Error() string {
	if e.at > e.last {
		return fmt.Sprintf("the log does not have position %d yet; want %d to %d", e.at, e.first, e.last)
	}
	return fmt.Sprintf("the log no longer has position %d; want %d to %d", e.at, e.first, e.last)
}

// valueAt replays a log, read from its beginning, up to a position. A *positionError is returned when the log does not have
// the position, and a *cluster.UnreadableError when it can't be read up to there.
func valueAt(log store.Batch, at int64) (ValueAt, error) {
	var v cluster.Value
	if log.Checkpoint != nil && log.Checkpoint.Position > 0 {
		var err error
		if v, err = cluster.DecodeCheckpoint(log.Checkpoint.Value); err != nil {
			return ValueAt{}, fmt.Errorf("the checkpoint at position %d: %w", log.Checkpoint.Position, err)
		}
	}
	first, last := v.Position(), v.Position()
	if n := len(log.Entries); n > 0 {
		last = int64(log.Entries[n-1].Position)
	}
	if at < first || at > last {
		return ValueAt{}, &positionError{at, first, last}
	}
	for _, e := range log.Entries {
		if int64(e.Position) > at {
			break
		}
		entry, err := cluster.Decode(int64(e.Position), e.Data)
		if err != nil {
			return ValueAt{}, fmt.Errorf("the entry at position %d: %w", e.Position, err)
		}
		v, _ = cluster.Apply(v, entry)
	}
	return ValueAt{v.Position(), v}, nil
}

// unreadableEntry is an entry that this program can't read.
type unreadableEntry struct {
	Position   int64  `json:"position"`
	Unreadable string `json:"unreadable"` // why
}

// entryLine is an entry as JSON shows it.
func entryLine(e store.LogEntry) any {
	entry, err := cluster.Decode(int64(e.Position), e.Data)
	if unreadable, ok := errors.AsType[*cluster.UnreadableError](err); ok {
		err = unreadable.Err
	}
	if err != nil {
		return unreadableEntry{int64(e.Position), err.Error()}
	}
	return entry
}
