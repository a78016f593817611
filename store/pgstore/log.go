package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/answers"
	"github.com/firn-id/firn/store/internal/appends"
)

const (
	// retryAfter is how long to wait before another try of a failed call of the log.
	retryAfter = 200 * time.Millisecond

	// piece is how many entries a follower reads at once.
	piece = 1024
)

// Append adds an entry to the log, see store.Log.
func (s *Store) Append(ctx context.Context, id string, data []byte) (store.Position, error) {
	if err := store.ValidateEntry(id, data); err != nil {
		return 0, err
	}
	if s.tells() {
		return 0, fmt.Errorf("append %s: %w", id, store.ErrRolledBack)
	}
	ctx, cancel := context.WithTimeout(ctx, s.CallDeadline)
	defer cancel()
	return s.appender.Append(ctx, id, data)
}

// tells reports whether data was lost and nobody was told, and notes that somebody is.
func (s *Store) tells() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	untold := s.untold
	s.untold = false
	return untold
}

// tries implements appends.Log.
type tries struct{ *Store }

// Try is one transaction.
func (s tries) Try(ctx context.Context, id string, data []byte, checkpoint store.Version) (appends.Seen, error) {
	a := args{"checkpoint": int64(checkpoint), "id": id, "data": binary(data)}
	var found *struct{ Position int64 }
	w, err := s.write(ctx, "append "+id, verdict{
		fmt.Sprintf("CASE WHEN (SELECT version FROM checkpoint) <> @checkpoint OR EXISTS (SELECT FROM log WHERE id = "+
			"@id) THEN %d ELSE 0 END", conflict), a,
	}, func(m *message) {
		m.do("INSERT INTO log (position, id, data) SELECT revision, @id, @data::bytea FROM "+fromLatest+
			" WHERE verdict = 0", a)
		m.notify()
		maybe(m, &found, "SELECT position FROM log WHERE id = @id", a)
	})
	if err != nil {
		return appends.Seen{}, err
	}
	seen := w.checkpoint
	switch {
	case found == nil:
	case found.Position <= 0:
		return appends.Seen{}, fmt.Errorf("append %s: %w: the server says that its position is %d; want at least 1", id,
			store.ErrAmbiguous, found.Position)
	default:
		seen.Entry = store.Position(found.Position)
		s.reaches(seen.Entry)
	}
	return seen, nil
}

// Look reads where the checkpoint is.
func (s tries) Look(ctx context.Context) (appends.Seen, error) {
	var found struct{ Version, Position int64 }
	now, err := s.read(ctx, "look at the log", func(m *message) {
		one(m, &found, "SELECT version, position FROM checkpoint", nil)
	})
	if err != nil {
		return appends.Seen{}, err
	}
	return appends.Seen{
		Now: store.Position(now), Checkpoint: store.Version(found.Version),
		Trimmed: store.Position(found.Position),
	}, nil
}

// Read returns what comes after a position, see store.Log.
func (s *Store) Read(ctx context.Context, after store.Position) (store.Batch, error) {
	batch, _, err := s.readLog(ctx, after, mark{}, 0)
	return batch, err
}

// mark is where a reader of the log is: the last entry that it has read, or a checkpoint, which has no ID.
type mark struct {
	position store.Position
	id       string
}

// errDiverged says that the log is another than the one that was read: it was set back, and has grown since.
var errDiverged = errors.New("what was read last is no longer in the log")

// readLog reads what comes after a position, at most limit entries unless that is zero, and returns how far the batch
// goes. The error is errDiverged when the log neither has what was read last nor a checkpoint that stands for it.
func (s *Store) readLog(ctx context.Context, after store.Position, last mark, limit int) (store.Batch,
	store.Position, error,
) {
	call := fmt.Sprintf("read the log after %d", after)
	if after < 0 {
		return store.Batch{}, 0, fmt.Errorf("%s: %w: the position is negative; want 0 or more", call, store.ErrRefused)
	}
	a := args{"after": int64(after), "last": int64(last.position), "id": last.id, "most": nil}
	if limit > 0 {
		a["most"] = limit + 1
	}
	var checkpoint struct {
		Version, Position int64
		Value             []byte
		Continues         bool
	}
	var entries []struct {
		Position int64
		ID       string
		Data     []byte
	}
	now, err := s.read(ctx, call, func(m *message) {
		one(m, &checkpoint, `SELECT version, position, CASE WHEN position > @after THEN value END AS value,
			position >= @last OR EXISTS (SELECT FROM log WHERE position = @last AND id = @id) AS continues
				FROM checkpoint`, a)
		several(m, &entries, `SELECT position, id, data FROM log
			WHERE position > greatest(@after, (SELECT position FROM checkpoint)) ORDER BY position LIMIT @most`, a)
	})
	if err != nil {
		return store.Batch{}, 0, err
	}
	seen := appends.Seen{
		Now: store.Position(now), Checkpoint: store.Version(checkpoint.Version),
		Trimmed: store.Position(checkpoint.Position),
	}
	if after > seen.Now {
		return store.Batch{}, 0,
			fmt.Errorf("%s: %w: the store has reached position %d only", call, store.ErrRefused, seen.Now)
	}
	if !checkpoint.Continues {
		return store.Batch{}, 0, errDiverged
	}
	s.appender.Learn(seen)
	upTo := seen.Now
	var batch store.Batch
	if seen.Trimmed > after {
		batch.Checkpoint = &store.Checkpoint{Position: seen.Trimmed, Value: checkpoint.Value}
	}
	if batch.More = limit > 0 && len(entries) > limit; batch.More {
		entries = entries[:limit]
	}
	for _, e := range entries {
		if err := store.ValidateEntry(e.ID, nil); err != nil {
			return store.Batch{}, 0, callError(call, err)
		}
		batch.Entries = append(batch.Entries,
			store.LogEntry{Position: store.Position(e.Position), ID: e.ID, Data: e.Data})
	}
	if err := answers.Batch(after, batch); err != nil {
		return store.Batch{}, 0, callError(call, err)
	}
	if batch.More {
		upTo = batch.Entries[limit-1].Position
	}
	return batch, upTo, nil
}

// Checkpoint writes what the log led to, see store.Log.
func (s *Store) Checkpoint(ctx context.Context, c store.Checkpoint) error {
	if err := c.Validate(); err != nil {
		return err
	}
	call, a := fmt.Sprintf("checkpoint at %d", c.Position), args{"at": int64(c.Position), "value": binary(c.Value)}
	w, err := s.write(ctx, call, verdict{
		fmt.Sprintf("CASE WHEN @at <= (SELECT position FROM checkpoint) THEN %d WHEN @at > revision THEN %d ELSE 0 END",
			done, beyond), a,
	}, func(m *message) {
		m.do("UPDATE checkpoint SET position = @at, version = latest.revision, value = @value FROM "+fromLatest+
			" WHERE verdict = 0", a)
		m.notify()
	})
	if err == nil && w.verdict == beyond {
		return fmt.Errorf("%s: %w: the store has reached position %d only", call, store.ErrRefused, w.revision-1)
	}
	return err
}

// Trim drops the entries that the checkpoint stands for, see store.Log.
func (s *Store) Trim(ctx context.Context) error {
	_, err := s.write(ctx, "trim", always, func(m *message) {
		m.do("DELETE FROM log USING "+fromLatest+
			" WHERE verdict = 0 AND position > 0 AND position <= (SELECT position FROM checkpoint)", nil)
	})
	return err
}

// reaches notes how far the log goes, and wakes the followers if that is news.
func (s *Store) reaches(position store.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if position > s.known.log {
		s.known.log = position
		s.wakeLocked()
	}
}

// wakeLocked wakes every Follow.
func (s *Store) wakeLocked() {
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

// Follow yields what comes after a position and goes on, see store.Log. Each follower reads for itself when a poll has
// found that the log has grown.
func (s *Store) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		f := follower{store: s, upTo: after, more: true, piece: piece}
		for {
			batch, err := f.next(ctx)
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// follower is one running Follow. It is used by one goroutine.
type follower struct {
	store *Store
	upTo  store.Position // it has yielded everything up to there
	last  mark           // of that
	begun bool           // it has read
	epoch int            // since then
	more  bool           // there is more to read
	piece int            // how many entries it reads at once
}

// next is the next batch to yield, once there is one.
func (f *follower) next(ctx context.Context) (store.Batch, error) {
	s := f.store
	for {
		s.mu.Lock()
		now, closed := s.known, s.closed
		if s.news == nil {
			s.news = make(chan struct{})
		}
		news := s.news
		s.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return store.Batch{}, ctx.Err()
		case closed:
			return store.Batch{}, errClosed
		case f.begun && now.epoch != f.epoch:
			return f.lost()
		case f.more || now.log > f.upTo:
			batch, err := f.read(ctx, now.epoch)
			if err != nil || batch.Checkpoint != nil || len(batch.Entries) > 0 || !f.begun {
				f.begun = err == nil
				return batch, err
			}
			continue
		}
		select {
		case <-news:
		case <-ctx.Done():
		case <-s.life.Done():
		}
	}
}

// read reads until it succeeds. epoch is that of a moment ago.
func (f *follower) read(ctx context.Context, epoch int) (store.Batch, error) {
	s := f.store
	for {
		batch, upTo, err := s.readLog(ctx, f.upTo, f.last, f.piece)
		s.mu.Lock()
		now := s.known.epoch
		s.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return store.Batch{}, ctx.Err()
		case f.begun && now != f.epoch, errors.Is(err, errDiverged):
			return f.lost()
		case errors.Is(err, errTooMuch) && f.piece > 1:
			f.piece /= 2
			continue
		case err == nil && now == epoch:
			f.upTo, f.more, f.epoch = max(f.upTo, upTo), batch.More, epoch
			if n := len(batch.Entries); n > 0 {
				f.last = mark{batch.Entries[n-1].Position, batch.Entries[n-1].ID}
			} else if batch.Checkpoint != nil {
				f.last = mark{position: batch.Checkpoint.Position}
			}
			return batch, nil
		case errors.Is(err, store.ErrRefused) && (!f.begun || s.isClosed()):
			return store.Batch{}, err
		}
		if epoch = now; err != nil {
			_ = retry.Sleep(ctx, retryAfter)
		}
	}
}

// lost tells that the log is not the one that was followed.
func (f *follower) lost() (store.Batch, error) {
	f.store.tells()
	return store.Batch{}, fmt.Errorf("follow the log: %w", store.ErrRolledBack)
}
