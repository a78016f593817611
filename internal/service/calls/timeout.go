package calls

import (
	"context"
	"sync"
	"time"
)

// lazyTimeout is like context.WithTimeout, but starts its timer only when a method is first called. Most calls
// find an ID at once and need no timer; one for each call took two fifths of the CPU time of POST /api/v1/id.
// Make it with newLazyTimeout.
type lazyTimeout struct {
	caller   context.Context
	deadline time.Time

	once   sync.Once
	timed  context.Context // set once
	cancel context.CancelFunc
}

func newLazyTimeout(caller context.Context, timeout time.Duration) *lazyTimeout {
	return &lazyTimeout{caller: caller, deadline: time.Now().Add(timeout)}
}

// context returns the context that has the timer.
func (t *lazyTimeout) context() context.Context {
	t.once.Do(func() { t.timed, t.cancel = context.WithDeadline(t.caller, t.deadline) })
	return t.timed
}

// end cancels the context.
func (t *lazyTimeout) end() {
	t.once.Do(func() { t.timed, t.cancel = canceled, func() {} })
	t.cancel()
}

// canceled is the context of calls that end without a timer.
var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Value asks the context with the timer too: package context recognizes it by that, and derives cheaper contexts.
func (t *lazyTimeout) Value(key any) any           { return t.context().Value(key) }
func (t *lazyTimeout) Deadline() (time.Time, bool) { return t.context().Deadline() }
func (t *lazyTimeout) Done() <-chan struct{}       { return t.context().Done() }
func (t *lazyTimeout) Err() error                  { return t.context().Err() }
