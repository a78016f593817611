package firn

import (
	"sync/atomic"
	"time"
)

// Waits counts how often callers of generators had to wait until the next ID lay no longer in the future: because the
// sequence was exhausted, the clock stepped back, or a floor was not reached yet. Waits at a bound are not among them. An ID
// that is there at once costs no count. The zero value is ready. A Waits is safe for concurrent use, by any number of
// generators too.
type Waits struct {
	count atomic.Uint64
	time  atomic.Int64 // nanoseconds
}

// Count is how often a caller began to wait. One that asks for many IDs may wait several times.
func (w *Waits) Count() uint64 { return w.count.Load() }

// Time is for how long callers have waited in all. Those who wait at the same time are added up; those who still wait
// are not in it yet.
func (w *Waits) Time() time.Duration { return time.Duration(w.time.Load()) }

// began counts a wait, and returns what to call at its end.
func (w *Waits) began() (over func()) {
	w.count.Add(1)
	since := time.Now()
	return func() { w.time.Add(int64(time.Since(since))) }
}

// WithWaits has the generator count in w, which others may count in too. Without it the generator counts in one of
// its own; see Generator.Waits.
func WithWaits(w *Waits) Option {
	return func(g *Generator) { g.waits = w }
}

// Waits is what the generator counts its callers' waits in.
func (g *Generator) Waits() *Waits { return g.waits }
