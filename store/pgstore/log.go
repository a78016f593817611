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
	verdict := fmt.Sprintf("CASE WHEN (SELECT version FROM checkpoint) <> %s OR EXISTS (SELECT FROM log WHERE id = "+
		"'%s') THEN %d ELSE 0 END",
		number(checkpoint), id, conflict)
	w, err := s.write(ctx, "append "+id, verdict,
		do("INSERT INTO log (position, id, data) SELECT revision, '"+id+"', "+bytesOf(data)+" FROM "+fromLatest+
			" WHERE verdict = 0"),
		notify,
		maybe("SELECT position FROM log WHERE id = '"+id+"'", "p"))
	if err != nil {
		return appends.Seen{}, err
	}
	seen := w.checkpoint
	if found := w.then[2]; len(found) > 0 {
		seen.Entry = store.Position(found.int(0, 0))
		s.reaches(seen.Entry)
	}
	return seen, nil
}

// Look reads where the checkpoint is.
func (s tries) Look(ctx context.Context) (appends.Seen, error) {
	found, err := s.read(ctx, "look at the log", one("SELECT version, position FROM checkpoint", "ii"))
	if err != nil {
		return appends.Seen{}, err
	}
	return seenIn(found), nil
}

// seenIn is what a read tells whose second rows begin with the checkpoint's version and position.
func seenIn(found []rows) appends.Seen {
	seen := appends.Seen{Now: store.Position(found[0].int(0, 0))}
	seen.Checkpoint, seen.Trimmed = store.Version(found[1].int(0, 0)), store.Position(found[1].int(0, 1))
	return seen
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
	most := "ALL"
	if limit > 0 {
		most = fmt.Sprint(limit + 1)
	}
	at := number(after)
	found, err := s.read(ctx, call,
		one("SELECT version, position, CASE WHEN position > "+at+" THEN value END, position >= "+number(last.position)+
			" OR EXISTS (SELECT FROM log WHERE position = "+number(last.position)+" AND id = '"+last.id+
			"') FROM checkpoint", "iiXb"),
		several("SELECT position, id, data FROM log WHERE position > greatest("+at+
			", (SELECT position FROM checkpoint)) ORDER BY position LIMIT "+most, "pex"))
	if err != nil {
		return store.Batch{}, 0, err
	}
	seen, entries := seenIn(found), found[2]
	if after > seen.Now {
		return store.Batch{}, 0,
			fmt.Errorf("%s: %w: the store has reached position %d only", call, store.ErrRefused, seen.Now)
	}
	if !found[1].is(0, 3) {
		return store.Batch{}, 0, errDiverged
	}
	s.appender.Learn(seen)
	upTo := seen.Now
	var batch store.Batch
	if seen.Trimmed > after {
		batch.Checkpoint = &store.Checkpoint{Position: seen.Trimmed, Value: found[1].bytes(0, 2)}
	}
	if batch.More = limit > 0 && len(entries) > limit; batch.More {
		entries = entries[:limit]
	}
	for i := range entries {
		batch.Entries = append(batch.Entries, store.LogEntry{
			Position: store.Position(entries.int(i, 0)), ID: entries.text(i, 1), Data: entries.bytes(i, 2),
		})
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
	call, at := fmt.Sprintf("checkpoint at %d", c.Position), number(c.Position)
	verdict := fmt.Sprintf("CASE WHEN %s <= (SELECT position FROM checkpoint) THEN %d WHEN %s > revision THEN %d "+
		"ELSE 0 END", at, done, at, beyond)
	w, err := s.write(ctx, call, verdict,
		do("UPDATE checkpoint SET position = "+at+", version = latest.revision, value = "+bytesOf(c.Value)+" FROM "+
			fromLatest+" WHERE verdict = 0"), notify)
	if err == nil && w.verdict == beyond {
		return fmt.Errorf("%s: %w: the store has reached position %d only", call, store.ErrRefused, w.revision-1)
	}
	return err
}

// Trim drops the entries that the checkpoint stands for, see store.Log.
func (s *Store) Trim(ctx context.Context) error {
	_, err := s.write(ctx, "trim", "0",
		do("DELETE FROM log USING "+fromLatest+
			" WHERE verdict = 0 AND position > 0 AND position <= (SELECT position FROM checkpoint)"))
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
