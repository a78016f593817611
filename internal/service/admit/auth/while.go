package auth

import (
	"context"
	"time"
)

// askAgain is how often an answer that goes on asks whether its caller may still have it.
const askAgain = time.Second

// While returns a context for an answer that goes on: it ends with ctx, and within a second after allowed first returns
// an error, which is its cause. Call stop when the answer has ended.
func While(ctx context.Context, allowed func() error) (_ context.Context, stop func()) {
	within, cancel := context.WithCancelCause(ctx)
	go func() {
		for again := time.NewTicker(askAgain); ; {
			select {
			case <-again.C:
				if err := allowed(); err != nil {
					cancel(err)
				}
			case <-within.Done():
				again.Stop()
				return
			}
		}
	}()
	return within, func() { cancel(nil) }
}

// Revoked returns why a context of While has ended, if that was an error of its allowed, and else err.
func Revoked(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); isRefusal(cause) {
		return cause
	}
	return err
}
