package store

import (
	"context"
	"fmt"
	"iter"
)

// Log is the append-only list of entries that all clients of a store see in one order. Its
// beginning is cut off now and then: a checkpoint stands for the entries up to its position.
// All methods are safe for concurrent use, also by different clients. They end with their context,
// and, but for Follow and a Trim that gets on, sooner by a deadline of the store's own. Keys that
// begin with "log/" or "checkpoint/" are the log's, not to be written by anything else.
type Log interface {
	// Append adds an entry at the end of the log and returns its position. The ID names the entry
	// and is used for no other one: while an entry of that ID is in the log or may come to be,
	// another is not added, and the position is that of the one that is there. So an append in doubt
	// is repeated, by the store itself until its deadline, and after ErrAmbiguous by the caller,
	// through the same client: the entry is added once or not at all. A client remembers the
	// MaxInDoubt IDs that it left in doubt last; of an older one it knows nothing any more, and a
	// repeat may add it again if it was trimmed meanwhile.
	//
	// ErrRefused or ErrUnavailable is returned when this call added nothing, nor did one with this ID
	// that was left in doubt, and nothing will come of them; ErrAmbiguous when nobody can tell. That
	// stays so when a checkpoint lies beyond what the client had seen of the log before the first try,
	// as the entry may have been trimmed: repeating then gives ErrAmbiguous, unless it is still there.
	// ErrRolledBack is returned when the store turns out to be behind what the client had seen of it; the entry
	// may have been added to what is there now.
	Append(ctx context.Context, id string, data []byte) (Position, error)

	// Read returns everything after a position as it was at one moment. Where entries after it
	// may have been trimmed the answer begins anew, with the checkpoint.
	// ErrUnavailable is returned when it can't be read, and ErrRefused too, for one when the position
	// is negative or lies beyond all that the store has written, so that it is none of this log.
	Read(ctx context.Context, after Position) (Batch, error)

	// Follow yields everything after a position, and goes on with what is appended from then on:
	// in order, with no gap and no repeat, until ctx ends. Where it has fallen behind what was
	// trimmed it begins anew, with the checkpoint. Broken connections it rides out in silence.
	// The first batch comes as soon as the log is read, though it may be empty; no later one is. All
	// that was there when Follow was called has come with the first that does not say More.
	//
	// An error is the last that it yields: that of ctx when ctx has ended, ErrRefused as from Read
	// or because the store is closed, or ErrRolledBack when the last entry that it has yielded is not in the log
	// any more and no checkpoint stands for it.
	Follow(ctx context.Context, after Position) iter.Seq2[Batch, error]

	// Checkpoint writes down the value that the entries up to a position led to. It only moves
	// forward: one at or before that which is written already changes nothing and is no error.
	// ErrRefused or ErrUnavailable is returned when it was not written, for one because it is too large or
	// its position lies beyond all that the store has written, and ErrAmbiguous when nobody can tell;
	// writing it again is safe.
	Checkpoint(ctx context.Context, c Checkpoint) error

	// Trim drops the entries up to the checkpoint's position. It is safe to do at any time, by
	// several clients at once, and again. Any error means that some may be left, and is
	// one of ErrUnavailable, ErrRefused and ErrAmbiguous.
	Trim(ctx context.Context) error
}

// Position is the place of an entry in the log. Later entries have greater positions, with gaps
// between them. Every position is positive; zero is before the first entry.
type Position int64

// LogEntry is an entry of the log.
type LogEntry struct {
	Position Position
	ID       string // as given to Append
	Data     []byte
}

// Checkpoint is what the entries up to a position led to. The zero value is that of a log that was never
// cut.
type Checkpoint struct {
	Position Position
	Value    []byte
}

// Batch is a piece of the log. It may share its memory with other batches: what it holds is to be
// read only.
type Batch struct {
	// Anew, when it is not nil, is where to begin again: what was known from before is to be
	// dropped, and the entries follow this checkpoint.
	Anew *Checkpoint

	Entries []LogEntry

	// More is set by Follow when the log is known to go on after these entries: a long one comes in
	// pieces, so that no more than one of them is in memory.
	More bool
}

// MaxEntry is how many bytes an entry holds at the most, MaxCheckpoint a checkpoint, and MaxID an ID.
const (
	MaxEntry      = 64 << 10
	MaxCheckpoint = 1 << 20
	MaxID         = 64
)

// MaxInDoubt is how many IDs a client remembers whose appends ended with ErrAmbiguous and were not
// repeated with success.
const MaxInDoubt = 4096

// ValidateEntry checks what every store demands of an entry before it is sent. ErrRefused is returned
// when the ID is empty, too long or not of the characters A-Z, a-z, 0-9 and -, or the data is too long.
func ValidateEntry(id string, data []byte) error {
	if id == "" || len(id) > MaxID {
		return fmt.Errorf("%w: the entry's ID %.80q has %d bytes; want 1 to %d", ErrRefused, id, len(id), MaxID)
	}
	for _, c := range []byte(id) {
		if ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-'; !ok {
			return fmt.Errorf("%w: the entry's ID %q; want only A-Z, a-z, 0-9 and -", ErrRefused, id)
		}
	}
	if len(data) > MaxEntry {
		return fmt.Errorf("%w: an entry of %d bytes; at most %d are allowed", ErrRefused, len(data), MaxEntry)
	}
	return nil
}
