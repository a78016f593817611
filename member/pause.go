package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	firstPause   = 100 * time.Millisecond // after a failure, and doubled from there
	longestPause = 5 * time.Second
	nagEvery     = time.Minute
)

// backoff is the pause after so many failures.
func backoff(failures int) time.Duration {
	return min(firstPause<<min(failures, 10), longestPause)
}

// jitter is between a half and the whole of a duration, so that many who failed at once do not come back at
// once.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// nags logs errors, but the same one only once a minute. It is safe for concurrent use.
type nags struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]time.Time
	err  error // the latest
}

func (n *nags) nag(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	kind := what + fmt.Sprintf("%T", err)
	for _, e := range []error{store.ErrAmbiguous, store.ErrUnavailable, store.ErrRefused, store.ErrSessionEnded} {
		if errors.Is(err, e) {
			kind = e.Error()
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
	if last, ok := n.last[kind]; ok && time.Since(last) < nagEvery {
		return
	}
	n.last[kind] = time.Now()
	n.log.Warn(what, "err", err)
}

// because adds the latest complaint to an error.
func (n *nags) because(err error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err == nil {
		return err
	}
	return fmt.Errorf("%w; the latest trouble: %w", err, n.err)
}
