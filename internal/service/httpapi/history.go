package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// ValueAt is the value of the cluster at a position of the log.
type ValueAt struct {
	Position int64         `json:"position"`     // of the last entry
	At       *time.Time    `json:"at,omitempty"` // when that was sent, by its sender's clock; nil: unknown
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

// timeError is returned for a time from before the log.
type timeError struct {
	at    time.Time
	first cluster.Entry // the first that has a time; zero: none has
}

func (e *timeError) Error() string {
	if e.first.At.IsZero() {
		return "no entry of the log has a time; want a position"
	}
	return fmt.Sprintf("the log has no entry from %s or before; want %s (position %d) or later",
		e.at.UTC().Format(time.RFC3339Nano), e.first.At.UTC().Format(time.RFC3339Nano), e.first.Position)
}

// timed is entries of a log, with when each was written as far as that is known: never before the one before it, and
// zero if its time is unknown. See clocks.Order.
type timed struct {
	entries []store.LogEntry
	at      []time.Time
}

// neighbours is among how many entries before it the time of a new one is judged.
const neighbours = 256

// times are those in the latest entries of a log, as their senders told them. The zero value is that of no entry.
type times []time.Time

// next tells when entries that come after these were written.
func (t *times) next(entries []store.LogEntry, now time.Time) timed {
	before := len(*t)
	for _, e := range entries {
		*t = append(*t, sentAt(e))
	}
	at := clocks.Order(*t, now)[before:]
	*t = slices.Clone((*t)[max(0, len(*t)-neighbours):])
	return timed{entries, at}
}

func timesOf(entries []store.LogEntry, now time.Time) timed { return new(times).next(entries, now) }

// cut returns the entries with these indices.
func (t timed) cut(from, to int) timed { return timed{t.entries[from:to], t.at[from:to]} }

// since returns the entries from the first one on that is not before a time.
func (t timed) since(at time.Time) timed {
	for i, when := range t.at {
		if !when.Before(at) {
			return t.cut(i, len(t.at))
		}
	}
	return timed{}
}

// positionAt returns the position of the last entry that is not later than a time. A *timeError is returned when there
// is no such entry.
func (t timed) positionAt(at time.Time) (int64, error) {
	before := &timeError{at: at}
	for i, when := range slices.Backward(t.at) {
		if when.IsZero() {
			continue
		}
		position := int64(t.entries[i].Position)
		if !when.After(at) {
			return position, nil
		}
		before.first = cluster.Entry{Position: position, At: when}
	}
	return 0, before
}

// sentAt returns when an entry was sent; zero: unknown.
func sentAt(e store.LogEntry) time.Time {
	entry, err := cluster.Decode(int64(e.Position), e.Data)
	if err != nil {
		return time.Time{}
	}
	return entry.At
}

// valueAt replays a log, read from its beginning, up to a position. A *positionError is returned when the log does not
// have the position, and a *cluster.UnreadableError when it can't be read up to there.
func valueAt(log store.Batch, at int64, skipped func(position int64, entry string) bool) (ValueAt, error) {
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
	var sent *time.Time
	for _, e := range log.Entries {
		if int64(e.Position) > at {
			break
		}
		entry, err := decode(e, skipped)
		if err != nil {
			return ValueAt{}, fmt.Errorf("the entry at position %d: %w", e.Position, err)
		}
		v, _ = cluster.Apply(v, entry)
		if sent = nil; !entry.At.IsZero() {
			sent = &entry.At
		}
	}
	return ValueAt{v.Position(), sent, v}, nil
}

// unreadableEntry is an entry that this program can't read.
type unreadableEntry struct {
	Position   int64  `json:"position"`
	Unreadable string `json:"unreadable"` // why
}

// decode reads an entry of the log, unless it is passed over.
func decode(e store.LogEntry, skipped func(position int64, entry string) bool) (cluster.Entry, error) {
	if skipped(int64(e.Position), e.ID) {
		return cluster.Entry{Position: int64(e.Position), Command: cluster.Skipped{Entry: e.ID}}, nil
	}
	return cluster.Decode(int64(e.Position), e.Data)
}

// doubtful is an entry whose time its neighbours contradict.
type doubtful struct {
	cluster.Entry
	believed time.Time // what they let be closest to its time
}

// MarshalJSON writes the entry as cluster.ParseEntry reads it.
func (d doubtful) MarshalJSON() ([]byte, error) {
	entry, err := json.Marshal(d.Entry)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(entry[:len(entry)-1], `,"believed":%q}`, d.believed.UTC().Format("2006-01-02T15:04:05.000Z")),
		nil
}

// apart is how far the time of an entry may be from what its neighbours say.
const apart = time.Second

// entryLine is an entry as JSON shows it, with when it was written; zero: unknown.
func entryLine(e store.LogEntry, at time.Time, skipped func(position int64, entry string) bool) any {
	entry, err := decode(e, skipped)
	if unreadable, ok := errors.AsType[*cluster.UnreadableError](err); ok {
		err = unreadable.Err
	}
	if err != nil {
		return unreadableEntry{int64(e.Position), err.Error()}
	}
	if !entry.At.IsZero() && entry.At.Sub(at).Abs() > apart {
		return doubtful{entry, at}
	}
	return entry
}
