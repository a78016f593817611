package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/appends"
)

// logbook is the log as the service has it. A position is the revision of the
// service at which its entry was appended.
type logbook struct {
	entries    []store.LogEntry          // in order, never changed in place: batches share them
	positions  map[string]store.Position // of the entries, by ID
	checkpoint store.Checkpoint
	version    store.Version  // of the checkpoint
	trimmed    store.Position // entries up to there are gone

	following map[*Client]int // how many of its Follows are running
}

// Append adds an entry to the log, see store.Log. It tries until its deadline of five
// seconds.
func (c *Client) Append(ctx context.Context, id string, data []byte) (store.Position, error) {
	if err := store.ValidateEntry(id, data); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	return c.appender.Append(ctx, id, slices.Clone(data))
}

// tries implements appends.Log.
type tries struct{ *Client }

// Try is one append.
func (c tries) Try(ctx context.Context, id string, data []byte, checkpoint store.Version) (appends.Seen, error) {
	return send(ctx, c.Client, Call{Op: Append, Key: id, Data: data}, func() (appends.Seen, error) {
		return c.svc.appendLocked(id, data, checkpoint), nil
	})
}

// Look is a read of nothing.
func (c tries) Look(ctx context.Context) (appends.Seen, error) {
	return send(ctx, c.Client, Call{Op: Read}, func() (appends.Seen, error) {
		return c.svc.seenLocked(""), nil
	})
}

func (s *Service) appendLocked(id string, data []byte, checkpoint store.Version) appends.Seen {
	if s.log.positions[id] == 0 && s.log.version == checkpoint {
		s.revision++
		position := store.Position(s.revision)
		s.log.entries = append(s.log.entries, store.LogEntry{Position: position, ID: id, Data: data})
		s.log.positions[id] = position
		for client := range s.log.following {
			client.tellOfEntryLocked(position)
		}
	}
	return s.seenLocked(id)
}

func (s *Service) seenLocked(id string) appends.Seen {
	return appends.Seen{
		Entry:      s.log.positions[id],
		Checkpoint: s.log.version,
		Trimmed:    s.log.checkpoint.Position,
		Now:        store.Position(s.revision),
	}
}

// Read returns what comes after a position, see store.Log.
func (c *Client) Read(ctx context.Context, after store.Position) (store.Batch, error) {
	batch, _, err := c.read(ctx, Read, after)
	return batch, err
}

// read also returns how far the batch goes.
func (c *Client) read(ctx context.Context, op Operation, after store.Position) (store.Batch, store.Position, error) {
	type page struct {
		batch store.Batch
		seen  appends.Seen
	}
	p, err := send(ctx, c, Call{Op: op, Position: after}, func() (page, error) {
		batch, err := c.svc.readLocked(after)
		return page{batch, c.svc.seenLocked("")}, err
	})
	if err == nil {
		c.appender.Learn(p.seen)
	}
	return p.batch, p.seen.Now, err
}

func (s *Service) readLocked(after store.Position) (store.Batch, error) {
	if after < 0 || after > store.Position(s.revision) {
		return store.Batch{}, fmt.Errorf("%w: the log ends at %d and can't be read after %d; want 0 to its end",
			store.ErrRefused, s.revision, after)
	}
	var batch store.Batch
	if after < s.log.checkpoint.Position {
		batch.Checkpoint = new(s.log.checkpoint)
		after = batch.Checkpoint.Position
	}
	batch.Entries = s.log.between(after, store.Position(s.revision))
	return batch, nil
}

// holds tells whether an entry is in the log, or a checkpoint stands for it; true for the
// zero entry.
func (l *logbook) holds(e store.LogEntry) bool {
	return e.Position <= l.checkpoint.Position || l.has(e)
}

// has tells whether an entry is in the log; true for the zero entry.
func (l *logbook) has(e store.LogEntry) bool { return l.positions[e.ID] == e.Position }

// between returns the entries after one position and up to another.
func (l *logbook) between(after, upTo store.Position) []store.LogEntry {
	from, to := l.index(after), l.index(upTo)
	return l.entries[from:to:to]
}

// index is how many entries are at or before a position.
func (l *logbook) index(position store.Position) int {
	i, _ := slices.BinarySearchFunc(l.entries, position+1, func(e store.LogEntry, p store.Position) int {
		return cmp.Compare(e.Position, p)
	})
	return i
}

// Checkpoint writes what the log led to, see store.Log.
func (c *Client) Checkpoint(ctx context.Context, checkpoint store.Checkpoint) error {
	if err := checkpoint.Validate(); err != nil {
		return err
	}
	checkpoint.Value = slices.Clone(checkpoint.Value)
	call := Call{Op: Checkpoint, Position: checkpoint.Position, Data: checkpoint.Value}
	_, err := send(ctx, c, call, func() (struct{}, error) {
		return struct{}{}, c.svc.checkpointLocked(checkpoint)
	})
	return err
}

func (s *Service) checkpointLocked(checkpoint store.Checkpoint) error {
	switch {
	case checkpoint.Position <= s.log.checkpoint.Position:
		return nil
	case checkpoint.Position > store.Position(s.revision):
		return fmt.Errorf("%w: a checkpoint at %d; the log ends at %d", store.ErrRefused,
			checkpoint.Position, s.revision)
	}
	s.revision++
	s.log.checkpoint, s.log.version = checkpoint, s.revision
	return nil
}

// Trim drops the entries that the checkpoint stands for, see store.Log.
func (c *Client) Trim(ctx context.Context) error {
	_, err := send(ctx, c, Call{Op: Trim}, func() (struct{}, error) {
		c.svc.trimLocked()
		return struct{}{}, nil
	})
	return err
}

func (s *Service) trimLocked() {
	n := s.log.index(s.log.checkpoint.Position)
	if n == 0 {
		return
	}
	s.revision++
	s.log.trimmed = s.log.checkpoint.Position
	for _, e := range s.log.entries[:n] {
		delete(s.log.positions, e.ID)
	}
	s.log.entries = slices.Clone(s.log.entries[n:])
}
