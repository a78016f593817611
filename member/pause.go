package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/retry"
	"github.com/firn-id/firn/store"
)

const nagEvery = time.Minute

// backoff paces attempts after failures.
var backoff = retry.Backoff{First: 100 * time.Millisecond, Max: 5 * time.Second}

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
