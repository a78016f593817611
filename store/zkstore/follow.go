package zkstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// defaultPiece is how many entries a follower reads at once.
const defaultPiece = 1024

// Follow yields what comes after a position and goes on, see store.Log. It reads the log at each event of it, and
// every ten seconds without one.
func (s *Store) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		f := follower{store: s, known: mark{upTo: after}, losses: s.lossesNow()}
		for {
			batch, err := f.next(ctx)
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

func (s *Store) lossesNow() int {
	_, losses := s.tide()
	return losses
}

// follower is one running Follow. It is used by one goroutine.
type follower struct {
	store  *Store
	known  mark
	losses int  // how often the service had lost data as it began
	begun  bool // it has yielded something
	more   bool // the log goes on after that
}

// next is the next batch to yield, once there is one.
func (f *follower) next(ctx context.Context) (store.Batch, error) {
	s := f.store
	for {
		hint, stop := s.hinted(s.root + log)
		batch, now, err := s.readLog(ctx, f.known, s.piece, f.begun && !f.more)
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case s.isClosed():
			err = errClosed
		case s.lossesNow() != f.losses && f.begun:
			s.tellLoss()
			err = fmt.Errorf("follow the log: %w", store.ErrRolledBack)
		case errors.Is(err, store.ErrRolledBack):
			s.tellLoss()
		case errors.Is(err, store.ErrRefused):
		case err != nil:
			stop()
			_ = retry.Sleep(ctx, retryAfter)
			continue
		default:
			f.known = now
			if !f.begun {
				f.losses = s.lossesNow()
			}
			if f.begun && batch.Checkpoint == nil && len(batch.Entries) == 0 {
				f.more = false
				f.wait(ctx, hint)
				stop()
				continue
			}
			f.begun, f.more = true, batch.More
			stop()
			return batch, nil
		}
		stop()
		return store.Batch{}, err
	}
}

// wait waits until there may be news.
func (f *follower) wait(ctx context.Context, hint <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.store.life, cancel)()
	wait(ctx, hint, f.store.recheck)
}
