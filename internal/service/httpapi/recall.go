package httpapi

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store"
)

// recalling reads a log or, while the store does not answer, what the node remembers of it.
type recalling struct {
	log     store.Log
	service *calls.Service
	asOf    time.Time // of what it remembers; zero: the store answered
}

// batches returns the entries after a position and, if they are followed, all that come later. What the node remembers
// comes with a checkpoint, and may begin before that position, or after it.
func (r *recalling) batches(ctx context.Context, after store.Position, follow bool) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		first, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		late := time.AfterFunc(logWithin, func() { cancel(errNoLog) })
		defer late.Stop()
		batches := read(first, r.log, after)
		if follow {
			batches = r.log.Follow(first, after)
		}
		begun := false
		for batch, err := range batches {
			late.Stop()
			if err != nil {
				err = because(first, err)
			}
			if !begun && errors.Is(err, store.ErrUnavailable) {
				r.recall(ctx, follow, err, yield)
				return
			}
			begun = true
			if !yield(batch, err) {
				return
			}
		}
	}
}

// recall goes on with what the node remembers, and then follows the log. Why is the error where it remembers nothing.
func (r *recalling) recall(ctx context.Context, follow bool, why error, yield func(store.Batch, error) bool) {
	batch, asOf, err := r.service.Recent()
	if err != nil {
		yield(store.Batch{}, why)
		return
	}
	r.asOf = asOf
	if !yield(batch, nil) || !follow {
		return
	}
	last := store.Position(0)
	if batch.Checkpoint != nil {
		last = batch.Checkpoint.Position
	}
	if n := len(batch.Entries); n > 0 {
		last = batch.Entries[n-1].Position
	}
	for batch, err := range r.log.Follow(ctx, last) {
		if err != nil {
			err = because(ctx, err)
		}
		if !yield(batch, err) {
			return
		}
	}
}
