package store

import (
	"context"
	"fmt"
	"iter"
)

// Log is the append-only list of entries that all clients of a store see in one
// order. A checkpoint stands for the entries up to its position, which can then be
// trimmed. All methods are safe for concurrent use, also by different clients. They
// end with their context and, except for Follow and a Trim that makes progress,
// sooner by a deadline of the store's own. Keys that begin with "log/" or
// "checkpoint/", and the key "log-last", are the log's: nothing else may write them.
type Log interface {
	// Append adds an entry at the end of the log and returns its position. The ID
	// names this entry and no other: while an entry of that ID is in the log or may
	// still be added, Append adds no other and returns the position of that one. So
	// an append in doubt can be repeated, by the store until its deadline and after
	// ErrAmbiguous by the caller, through the same client: the entry is added once
	// or not at all. A client remembers the MaxInDoubt IDs that it left in doubt
	// last; repeating an older one may add it again if it was trimmed meanwhile.
	//
	// After ErrRefused and ErrUnavailable no call with this ID has added an entry or
	// will. After ErrAmbiguous nobody can tell. That stays so when a checkpoint lies
	// beyond what the client knew of the log before the first try, as the entry may
	// have been trimmed: a repeat returns ErrAmbiguous, unless the entry is still
	// there. ErrRolledBack means that the store is behind what the client knew; the
	// entry may have been added to the log as it is now.
	Append(ctx context.Context, id string, data []byte) (Position, error)

	// Read returns everything after a position as it was at one moment. Where
	// entries after it may have been trimmed the batch begins with the checkpoint.
	// Errors: ErrUnavailable, and ErrRefused, for example when the position is
	// negative or lies beyond all that the store has written.
	Read(ctx context.Context, after Position) (Batch, error)

	// Follow yields everything after a position, and goes on with what is appended
	// later: in order, with no gap and no repeat, until ctx ends. Where it has fallen
	// behind a trim it goes on from the checkpoint. It survives broken connections.
	// It yields the first batch as soon as it has read the log, even an empty one,
	// and no empty batch later. Everything that was there when Follow was called has
	// come with the first batch that does not say More.
	//
	// It yields an error last: that of ctx when ctx has ended; ErrRefused as Read
	// does, or because the store is closed; or ErrRolledBack when the last entry that
	// it has yielded is not in the log any more and no checkpoint stands for it.
	Follow(ctx context.Context, after Position) iter.Seq2[Batch, error]

	// Checkpoint writes the value that the entries up to a position led to. It only
	// moves forward: a checkpoint at or before the current one changes nothing and is
	// no error. After ErrRefused and ErrUnavailable it was not written, for example
	// because it is too large or lies beyond all that the store has written; after
	// ErrAmbiguous nobody can tell. Writing it again is safe.
	Checkpoint(ctx context.Context, c Checkpoint) error

	// Trim drops the entries up to the checkpoint's position. It is safe at any time,
	// by several clients at once, and again. After an error, ErrUnavailable,
	// ErrRefused or ErrAmbiguous, some entries may be left.
	Trim(ctx context.Context) error
}

// Position is the place of an entry in the log. Later entries have greater
// positions, with gaps between them. Every position is positive; zero is before the
// first entry.
type Position int64

// LogEntry is an entry of the log.
type LogEntry struct {
	Position Position
	ID       string // as given to Append
	Data     []byte
}

// Checkpoint is what the entries up to a position led to. The zero value is that of
// a log without a checkpoint.
type Checkpoint struct {
	Position Position
	Value    []byte
}

// Batch is a piece of the log. It may share its memory with other batches: do not
// change its contents.
type Batch struct {
	// Checkpoint, when not nil, replaces all that the reader knew before. The entries
	// follow it.
	Checkpoint *Checkpoint

	Entries []LogEntry

	// More is set by Follow when the log is known to go on after these entries: a
	// long log comes in pieces, so that only one piece is in memory at a time.
	More bool
}

// MaxEntry is how many bytes an entry may have, MaxCheckpoint a checkpoint, and
// MaxID an ID.
const (
	MaxEntry      = 64 << 10
	MaxCheckpoint = 1 << 20
	MaxID         = 64
)

// MaxInDoubt is how many IDs a client remembers whose appends ended with
// ErrAmbiguous and were not repeated with success.
const MaxInDoubt = 4096

// ValidateEntry checks what every store demands of an entry before it sends it. It
// returns ErrRefused when the ID is empty, too long or has characters other than
// A-Z, a-z, 0-9 and -, or when the data is too long.
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
		return fmt.Errorf("%w: an entry of %d bytes; want at most %d", ErrRefused, len(data), MaxEntry)
	}
	return nil
}

// Validate checks what every store demands of a checkpoint before it sends it. It
// returns ErrRefused when the value is larger than MaxCheckpoint.
func (c Checkpoint) Validate() error {
	if len(c.Value) > MaxCheckpoint {
		return fmt.Errorf("%w: a checkpoint of %d bytes; want at most %d", ErrRefused, len(c.Value), MaxCheckpoint)
	}
	return nil
}
