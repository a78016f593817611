package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// defaultPiece is how many entries a follower reads at once.
const defaultPiece = 4096

// A tail holds at most this many entries, and this many bytes of their data. A follower
// that is too slow for that reads from the servers.
const (
	tailEntries = 4096
	tailBytes   = 8 << 20
)

// tail is the end of the log as one watch delivers it, for all followers of one Store:
// each reads it at its own pace.
type tail struct {
	followers int                // guarded by Store.mu
	stop      context.CancelFunc // ends the watch

	mu         sync.Mutex      // guards what follows
	newer      <-chan struct{} // closed when a connection was made since the log was last read
	from       store.Position
	known      mark
	entries    []store.LogEntry  // all that were appended after from, up to what is known; never changed in place
	bytes      int               // of their data
	checkpoint *store.Checkpoint // at from; nil: entries come before from
	err        error             // why it has ended; nil: it goes on
	changed    chan struct{}     // closed at the next change
}

// Follow yields what comes after a position and goes on, see store.Log.
//
// Each follower begins with a read of its own. After that it reads what one watch
// delivers, which all followers of this Store share.
func (s *Store) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		f := follower{store: s, known: mark{upTo: after}}
		defer f.leave()
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
	known mark  // it has yielded everything up to there
	tail  *tail // nil: it must read, as it begins, is in a long log, or has fallen behind
}

// next is the next batch to yield, once there is one.
func (f *follower) next(ctx context.Context) (store.Batch, error) {
	for {
		switch {
		case ctx.Err() != nil:
			return store.Batch{}, ctx.Err()
		case f.store.isClosed():
			return store.Batch{}, errClosed
		case f.tail == nil:
			return f.read(ctx)
		}
		batch, upTo, changed, err := f.tail.after(f.known.upTo)
		switch {
		case err != nil:
			return store.Batch{}, err
		case upTo > f.known.upTo:
			f.known = f.known.after(batch, upTo)
			return batch, nil
		case changed == nil:
			f.leave()
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-f.store.life.Done():
		}
	}
}

// read reads until it succeeds, and joins the tail.
func (f *follower) read(ctx context.Context) (store.Batch, error) {
	for {
		newer := f.store.connections.next()
		batch, upTo, err := f.store.readLog(ctx, f.known, f.store.piece)
		switch {
		case ctx.Err() != nil:
			return store.Batch{}, ctx.Err()
		case err == nil:
			f.known = f.known.after(batch, upTo)
			if !batch.More {
				f.tail, err = f.store.joinTail(f.known, newer)
			}
			return batch, err
		case final(err):
			return store.Batch{}, err
		}
		_ = retry.Sleep(ctx, retryAfter)
	}
}

// final tells whether an error ends the reading of a log.
func final(err error) bool {
	return errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrRolledBack)
}

func (f *follower) leave() {
	if f.tail != nil {
		f.store.leaveTail(f.tail)
		f.tail = nil
	}
}

// joinTail returns the current tail, if its log was read over the same connections, or starts one that begins here.
func (s *Store) joinTail(known mark, newer <-chan struct{}) (*tail, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.tail == nil || !s.tail.readOver(newer) {
		ctx, stop := context.WithCancel(s.life)
		t := &tail{stop: stop, newer: newer, from: known.upTo, known: known, changed: make(chan struct{})}
		s.tail = t
		s.running.Go(func() { s.keepTail(ctx, t) })
	}
	s.tail.followers++
	return s.tail, nil
}

// leaveTail ends a tail when its last follower leaves.
func (s *Store) leaveTail(t *tail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.followers--
	if t.followers > 0 {
		return
	}
	t.stop()
	if s.tail == t {
		s.tail = nil
	}
}

// keepTail watches the log, and reads it whenever a watch ends: so the next watch begins
// right after what is known, whatever was compacted meanwhile.
func (s *Store) keepTail(ctx context.Context, t *tail) {
	defer t.stop()
	for read := true; ; {
		if !read || !s.watchTail(ctx, t) {
			if retry.Sleep(ctx, retryAfter) != nil {
				return
			}
		}
		newer := s.connections.next()
		_, err := s.rereadTail(ctx, t)
		if ctx.Err() == nil && final(err) {
			t.fail(err)
			return
		}
		if read = err == nil; read {
			t.setNewer(newer)
		}
	}
}

// watchTail adds what a watch delivers, until the watch breaks or misses something, or a connection is made; it returns
// whether that was why. The servers behind a new connection may have been set back and have grown since, and a watch
// goes on there by itself: what it delivers would be the end of another log than the one that was read. A server can't
// be set back without a restart, and a restart ends its connections. So a connection that lasts leads to the log that
// was read.
//
// A watch's silence proves nothing, so watchTail also looks every recheck whether anything has come, and reads that.
func (s *Store) watchTail(ctx context.Context, t *tail) bool {
	conn := s.conn.Load() // the log was read over it
	// Without a leader the watch ends, instead of going silent.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	begins := time.AfterFunc(s.deadline, cancel) // Watch blocks until a server has begun it
	responses := conn.Watch(ctx, s.prefix+logPrefix, clientv3.WithPrefix(), clientv3.WithFilterDelete(),
		clientv3.WithRev(int64(t.known.upTo)+1)) // nobody else changes it
	begins.Stop()
	again := time.NewTicker(s.recheck)
	defer again.Stop()
	for {
		select {
		case <-t.newer:
			return true
		case resp, ok := <-responses:
			switch {
			case isClosed(t.newer):
				return true
			case !ok || resp.Err() != nil:
				return false
			}
			entries := make([]store.LogEntry, 0, len(resp.Events))
			for _, event := range resp.Events {
				if event.IsCreate() { // not a stranger's overwrite
					entries = append(entries, s.entry(event.Kv))
				}
			}
			t.add(store.Batch{Entries: entries}, 0)
		case <-again.C:
			if upTo, ok := s.quiet(ctx, t.known); ok {
				t.add(store.Batch{}, upTo) // else it would not show that the store is set back to before now
				continue
			}
			if missed, err := s.rereadTail(ctx, t); missed || err != nil {
				return false
			}
		}
	}
}

// rereadTail adds what a read finds, and tells whether that was something new.
func (s *Store) rereadTail(ctx context.Context, t *tail) (bool, error) {
	batch, upTo, err := s.readLog(ctx, t.known, s.piece) // nobody else changes it
	if err != nil {
		return false, err
	}
	return t.add(batch, upTo), nil
}

// add appends what is new in a batch, and tells whether anything is. The batch is complete
// up to a position, or with zero up to its last entry.
func (t *tail) add(batch store.Batch, upTo store.Position) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := false
	if batch.Checkpoint != nil {
		news = true
		t.checkpoint, t.entries, t.bytes = batch.Checkpoint, nil, 0
		t.from, t.known.upTo = batch.Checkpoint.Position, batch.Checkpoint.Position
	}
	for _, entry := range batch.Entries {
		if entry.Position <= t.known.upTo {
			continue
		}
		news = true
		t.entries = append(t.entries, entry)
		t.bytes += len(entry.Data)
		t.known.upTo, t.known.last, t.known.lastID = entry.Position, entry.Position, entry.ID
	}
	t.known.upTo = max(t.known.upTo, upTo)
	t.shorten()
	if news {
		close(t.changed)
		t.changed = make(chan struct{})
	}
	return news
}

// shorten drops the oldest entries beyond the limits.
func (t *tail) shorten() {
	drop := 0
	for len(t.entries)-drop > tailEntries || t.bytes > tailBytes {
		t.bytes -= len(t.entries[drop].Data)
		drop++
	}
	if drop > 0 {
		t.from, t.checkpoint = t.entries[drop-1].Position, nil
		t.entries = t.entries[drop:]
	}
}

// after returns the entries after a position, and how far they go. Without any it returns
// a channel that closes when there may be some. With neither, the tail does not reach back
// that far.
func (t *tail) after(position store.Position) (batch store.Batch, upTo store.Position, changed <-chan struct{},
	err error,
) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil:
		return batch, position, nil, t.err
	case position < t.from && t.checkpoint == nil:
		return batch, position, nil, nil
	case position < t.from:
		batch.Checkpoint = t.checkpoint
	}
	i, _ := slices.BinarySearchFunc(t.entries, position+1, func(e store.LogEntry, p store.Position) int {
		return cmp.Compare(e.Position, p)
	})
	batch.Entries = t.entries[i:len(t.entries):len(t.entries)]
	if batch.Checkpoint == nil && len(batch.Entries) == 0 {
		return batch, position, t.changed, nil
	}
	return batch, t.known.upTo, nil, nil
}

func (t *tail) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	close(t.changed)
	t.changed = make(chan struct{})
}

// readOver tells whether the tail goes on, and has read its log over the connections over which another one was read:
// then both are the same log.
func (t *tail) readOver(newer <-chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err == nil && t.newer == newer
}

func (t *tail) setNewer(newer <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newer = newer
}
