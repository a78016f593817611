package memstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// retryAfter is how long to wait before another try of a failed call of the log.
const retryAfter = 100 * time.Millisecond

// Follow yields what comes after a position and goes on, see store.Log. It sends a call
// at its beginning, and whenever it has fallen behind a trim. It learns of later entries
// as of any other news, see Client.Lag and Client.CutOff.
func (c *Client) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		c.follow(1)
		defer c.follow(-1)
		f := follower{client: c, upTo: after, reads: true}
		for {
			batch, err := f.next(ctx)
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// follow counts a Follow that begins or ends: a client with a Follow gets news of entries.
func (c *Client) follow(n int) {
	c.svc.mu.Lock()
	defer c.svc.mu.Unlock()
	following := c.svc.log.following
	if following[c] += n; following[c] == 0 {
		delete(following, c)
	}
}

// tellOfEntryLocked tells the client that the log reaches up to a position.
func (c *Client) tellOfEntryLocked(position store.Position) {
	c.tellLocked(func() {
		c.heard = max(c.heard, position)
		c.wakeLocked()
	})
}

// wakeLocked wakes every Follow of the client.
func (c *Client) wakeLocked() {
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

// follower is one running Follow. It is used by one goroutine.
type follower struct {
	client *Client
	upTo   store.Position // it has yielded everything up to there
	last   store.LogEntry // the last entry that it has yielded, without its data
	reads  bool           // it must read, as it begins or has fallen behind
}

// next is the next batch to yield, once there is one.
func (f *follower) next(ctx context.Context) (store.Batch, error) {
	for {
		if f.reads {
			return f.read(ctx)
		}
		if ctx.Err() != nil {
			return store.Batch{}, ctx.Err()
		}
		entries, wake, err := f.hear()
		if err != nil || len(entries) > 0 {
			return f.yields(store.Batch{Entries: entries}), err
		}
		if wake == nil {
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
		}
	}
}

// read sends a call until one is answered.
func (f *follower) read(ctx context.Context) (store.Batch, error) {
	for {
		batch, upTo, err := f.client.read(ctx, Follow, f.upTo)
		switch {
		case ctx.Err() != nil:
			return store.Batch{}, ctx.Err()
		case err == nil:
			f.upTo, f.reads = upTo, false
			return f.yields(batch), nil
		case errors.Is(err, store.ErrRefused):
			return store.Batch{}, err
		}
		_ = retry.Sleep(ctx, retryAfter)
	}
}

// yields notes the last entry of what is yielded.
func (f *follower) yields(b store.Batch) store.Batch {
	if n := len(b.Entries); n > 0 {
		f.last = store.LogEntry{Position: b.Entries[n-1].Position, ID: b.Entries[n-1].ID}
	}
	return b
}

// hear returns the entries that the client has heard of and the follower has not yielded.
// Without any it returns a channel that closes when there may be some.
func (f *follower) hear() ([]store.LogEntry, <-chan struct{}, error) {
	c := f.client
	c.svc.mu.Lock()
	defer c.svc.mu.Unlock()
	log := &c.svc.log
	upTo := min(c.heard, store.Position(c.svc.revision)) // less than heard after a RollBack
	switch {
	case c.closed:
		return nil, nil, errClosed
	case !log.holds(f.last) && !c.cut:
		c.appender.Forget()
		return nil, nil, fmt.Errorf("%w: the entry at %d is gone from the log", store.ErrRolledBack, f.last.Position)
	case store.Position(c.svc.revision) < f.upTo && !c.cut: // it may have yielded no entry yet
		c.appender.Forget()
		return nil, nil, fmt.Errorf("%w: the store has reached position %d only, and had %d", store.ErrRolledBack,
			c.svc.revision, f.upTo)
	case upTo <= f.upTo, !log.holds(f.last):
		if c.wake == nil {
			c.wake = make(chan struct{})
		}
		return nil, c.wake, nil
	case log.trimmed > f.upTo, log.checkpoint.Position > f.upTo && !log.has(f.last):
		f.reads = true // the latter after a RollBack
		return nil, nil, nil
	}
	entries := log.between(f.upTo, upTo)
	f.upTo = upTo
	return entries, nil, nil
}
