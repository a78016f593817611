package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

const noteEvery = time.Minute

// backoff paces attempts after failures.
var backoff = retry.Backoff{First: 100 * time.Millisecond, Max: 5 * time.Second}

// openBackoff paces attempts to open the store. They ask nobody who could be busy, and members are to be ready soon
// after the store is.
var openBackoff = retry.Backoff{First: 100 * time.Millisecond, Max: 500 * time.Millisecond}

// lock is a lock that is held during calls of the store, and waited for until a context ends. It has room for one.
type lock chan struct{}

func (l lock) lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l lock) unlock() { <-l }

// troubles logs errors that may pass, each kind once a minute whatever operations fail: a store out of reach
// gives one line. Its methods are safe for concurrent use.
type troubles struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]time.Time
	err  error // the latest
}

// note logs that something failed, unless that is because ctx has ended.
func (t *troubles) note(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	kind := what + fmt.Sprintf("%T", err)
	for _, e := range []error{store.ErrAmbiguous, store.ErrUnavailable, store.ErrRefused, store.ErrSessionEnded} {
		if errors.Is(err, e) {
			kind = e.Error()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	if last, ok := t.last[kind]; ok && time.Since(last) < noteEvery {
		return
	}
	t.last[kind] = time.Now()
	t.log.Warn(what, "err", err)
}

// keep makes err the latest trouble without logging it; nil: there is none.
func (t *troubles) keep(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// why adds the latest trouble as the cause of an error.
func (t *troubles) why(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, t.err)
}

// because adds the latest trouble to an error.
func (t *troubles) because(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		return err
	}
	return fmt.Errorf("%w; the latest trouble: %w", err, t.err)
}
