package server

import (
	"context"
	"sync"
	"time"
)

// patient is what context.WithTimeout returns, but for the timer, which it has only from when it is first asked anything.
// Most calls end without, as what they want is there; with a timer for each, that was two fifths of the CPU time of the
// handler of POST /api/v1/id. Make it with newPatient.
type patient struct {
	caller   context.Context
	deadline time.Time

	once   sync.Once
	timed  context.Context // set once
	cancel context.CancelFunc
}

func newPatient(caller context.Context, patience time.Duration) *patient {
	return &patient{caller: caller, deadline: time.Now().Add(patience)}
}

// context is the one that has the timer.
func (p *patient) context() context.Context {
	p.once.Do(func() { p.timed, p.cancel = context.WithDeadline(p.caller, p.deadline) })
	return p.timed
}

// end cancels it.
func (p *patient) end() {
	p.once.Do(func() { p.timed, p.cancel = over, func() {} })
	p.cancel()
}

// over is the context of calls that have ended.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Value asks the one with the timer too: package context finds it by that, and whatever derives from it costs less.
func (p *patient) Value(key any) any           { return p.context().Value(key) }
func (p *patient) Deadline() (time.Time, bool) { return p.context().Deadline() }
func (p *patient) Done() <-chan struct{}       { return p.context().Done() }
func (p *patient) Err() error                  { return p.context().Err() }
