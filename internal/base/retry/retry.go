// Package retry paces attempts that are repeated: how long to wait after a failure, and the wait itself. It does not
// repeat anything by itself: callers differ in which errors may pass.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a pause that doubles with each failure in a row: First after the first one, and at most Max.
type Backoff struct{ First, Max time.Duration }

// After returns the pause after so many earlier failures in a row, 0 or more, with [Jitter].
func (b Backoff) After(failures int) time.Duration {
	pause := b.First
	for range min(failures, 62) {
		if pause >= b.Max {
			break
		}
		pause *= 2
	}
	return Jitter(min(pause, b.Max))
}

// Jitter returns a random duration from d/2 to d, so that many callers that failed at once do not return at once.
func Jitter(d time.Duration) time.Duration { return d - rand.N(d/2+1) }

// Sleep waits for d, or until ctx ends, and returns ctx's error then. Without a positive d it only asks ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
