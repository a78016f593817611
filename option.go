package firn

import "time"

// Option changes how a generator works.
type Option func(*Generator)

// WithClock sets the generator's clock. Without it the generator has a CoarseClock of its
// own, over a SteadyClock that follows every step ahead, since no owner can decide about
// them.
func WithClock(c Clock) Option {
	return func(g *Generator) { g.clock = c }
}

// WithFloor lets the generator use only ticks that begin at or after t.
func WithFloor(t time.Time) Option {
	return func(g *Generator) { g.next.Store(g.place(t.Add(g.layout.Tick - 1))) }
}

// WithBound lets the generator use only ticks that end at or before t, until SetBound moves
// it. Without it there is no bound.
func WithBound(t time.Time) Option {
	return func(g *Generator) { g.limit.Store(g.place(t)) }
}

// FailAtBound makes Next and Fill return ErrBound at the bound, as TryNext does, instead of
// waiting for it to move.
func FailAtBound() Option {
	return func(g *Generator) { g.failAtBound = true }
}

// WithLookAhead sets how far IDs may run ahead of the clock under saturation. It lets
// callers sleep and still get the full rate, since a sleep overshoots. Zero or negative: no
// look-ahead, which costs rate. Without it: DefaultLookAhead, and up to MaxLookAhead while
// sleeps overshoot by more. IDs never run ahead of the bound.
func WithLookAhead(d time.Duration) Option {
	return func(g *Generator) { g.setLookAhead(d, d) }
}

func (g *Generator) setLookAhead(least, most time.Duration) {
	g.leastAhead, g.mostAhead = uint64(max(least, 0)), uint64(max(most, 0))
	g.lookAhead.Store(g.leastAhead)
}

// WithRandomStart begins the sequence of each tick at a random place in its lower half. A
// single ID then does not tell how many the node made before it in its tick, unless that was
// more than half a tick. Two IDs of one node and tick still tell how many lie between them, and
// so the rate: a [Sealer] hides that. The sequence of a tick that follows an exhausted one
// begins at 0, so the full rate remains.
func WithRandomStart() Option {
	return func(g *Generator) { g.randomStart = true }
}
