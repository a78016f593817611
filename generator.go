package firn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrNotYet means that the next ID would lie in the future: the sequence is
	// exhausted, the clock stepped back, or the floor is not reached yet.
	ErrNotYet = errors.New("the next ID lies in the future")

	// ErrBound means that the next ID would lie at or beyond the generator's bound,
	// until the owner moves the bound.
	ErrBound = errors.New("the generator has reached its bound")

	// ErrStopped is the error of every call after Stop.
	ErrStopped = errors.New("the generator is stopped")
)

// DefaultLookAhead is how far IDs may run ahead of the clock under saturation: 4 ms.
const DefaultLookAhead = 4 * time.Millisecond

// Generator makes the IDs of one node. Its state is one word: the place (tick and sequence)
// that comes next. There is one rule: the next ID is at the greater of that place and the
// beginning of the clock's tick, and must not lie in the future of the clock nor beyond the
// bound. So a clock that stepped back, an exhausted sequence (the count carries into the
// next tick) and a floor in the future are the same condition with the same answer: wait.
//
// NewGenerator makes a Generator; the zero value does not work. It is safe for concurrent
// use. IDs that one goroutine takes ascend.
type Generator struct {
	_ [cacheLine]byte

	// next is the lowest free place; it only grows, and is stopped at the end. Nothing
	// else is on its cache line, because every ID writes it.
	next atomic.Uint64
	_    [cacheLine - 8]byte

	// The fields below are read for every ID and hardly ever written.

	// limit is the first place that may not be used; it only grows.
	limit atomic.Uint64

	clock        Clock
	epoch        int64  // Unix nanoseconds
	tick         uint64 // nanoseconds
	lookAhead    uint64 // nanoseconds
	sequenceBits uint8
	packing      packing

	perTick     uint64 // places in a tick: 2^sequenceBits
	ticks       uint64 // how many ticks the layout has
	layout      Layout
	node        int64
	randomStart bool
	failAtBound bool
	waits       *Waits // nil: nobody counts

	mu     sync.Mutex
	gate   chan struct{} // closed when waiting callers should try again; nil: nobody waits
	opener *time.Timer   // opens the gate when the clock should be there
	unused uint64        // the value of next before any ID was taken
	used   time.Time     // once stopped: the end of the last tick used
}

// cacheLine is how many bytes lie at least between fields that must not share a cache line:
// two lines of 64 bytes, since processors fetch them in pairs.
const cacheLine = 128

// stopped is a place beyond every limit.
const stopped = math.MaxUint64

// Option changes how a generator works.
type Option func(*Generator)

// WithClock sets the generator's clock. Without it the generator has a SteadyClock of its
// own that follows every step ahead, since no owner can decide about them.
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
// look-ahead, which costs rate. Without it: DefaultLookAhead. IDs never run ahead of the bound.
func WithLookAhead(d time.Duration) Option {
	return func(g *Generator) { g.lookAhead = uint64(max(d, 0)) }
}

// WithRandomStart begins the sequence of each tick at a random place in its lower half. A
// single ID then does not tell how many the node made before it in its tick, unless that was
// more than half a tick. Two IDs of one node and tick still tell how many lie between them, and
// so the rate: a [Sealer] hides that. The sequence of a tick that follows an exhausted one
// begins at 0, so the full rate remains.
func WithRandomStart() Option {
	return func(g *Generator) { g.randomStart = true }
}

// NewGenerator returns a generator for a node ID, which is datacenter << NodeBits | node where the
// layout has datacenters. It returns an error when the layout is not valid, when it has no such
// node ID, or, as ErrLifetime, when the clock shows a time outside the layout's.
func NewGenerator(layout Layout, nodeID int64, options ...Option) (*Generator, error) {
	if err := layout.Validate(); err != nil {
		return nil, err
	}
	if nodeID < 0 || nodeID >= layout.NodeIDs() {
		return nil, fmt.Errorf("node ID %d does not exist: the layout %s has node IDs 0 to %d",
			nodeID, layout.split(), layout.NodeIDs()-1)
	}
	g := &Generator{
		layout:       layout,
		packing:      layout.packing(nodeID),
		node:         nodeID,
		epoch:        layout.Epoch.UnixNano(),
		tick:         uint64(layout.Tick),
		sequenceBits: uint8(layout.SequenceBits),
		perTick:      1 << layout.SequenceBits,
		ticks:        1 << layout.TimeBits,
		lookAhead:    uint64(DefaultLookAhead),
	}
	g.limit.Store(g.ticks * g.perTick)
	for _, option := range options {
		option(g)
	}
	if g.clock == nil {
		g.clock = NewSteadyClock(math.MaxInt64)
	}
	if _, err := layout.TickAt(time.Unix(0, g.clock.Now())); err != nil {
		return nil, fmt.Errorf("the clock is wrong, or another epoch is needed: %w", err)
	}
	g.unused = g.next.Load()
	return g, nil
}

// Layout returns the layout of the generator's IDs.
func (g *Generator) Layout() Layout { return g.layout }

// NodeID returns the node ID in the generator's IDs.
func (g *Generator) NodeID() int64 { return g.node }

// TryNext returns the next ID, and never waits. When there is none now, it returns
// ErrNotYet, ErrBound, ErrStopped or ErrLifetime.
func (g *Generator) TryNext() (ID, error) {
	place, _, err := g.reserve(1)
	if err != nil {
		return 0, err
	}
	return g.packing.id(place), nil
}

// Next returns the next ID. It waits while that lies in the future or beyond the bound, and
// looks at ctx only then. When ctx ends first, the error wraps both what Next waited for
// (ErrNotYet or ErrBound) and the error of ctx. Next returns ErrStopped once the generator is
// stopped, and ErrLifetime once the time bits of the layout have run out.
func (g *Generator) Next(ctx context.Context) (ID, error) {
	for {
		place, _, err := g.reserve(1)
		if err == nil {
			return g.packing.id(place), nil
		}
		if err := g.wait(ctx, err); err != nil {
			return 0, err
		}
	}
}

// Fill fills ids with the next IDs, in ascending order and with one reservation per tick. It
// waits and fails as Next does; after an error ids is zeroed, and the IDs that it had taken
// are never used.
func (g *Generator) Fill(ctx context.Context, ids []ID) error {
	for rest := ids; len(rest) > 0; {
		place, n, err := g.reserve(uint64(len(rest)))
		if err != nil {
			if err := g.wait(ctx, err); err != nil {
				clear(ids)
				return err
			}
			continue
		}
		id, step := g.packing.id(place), g.packing.id(1)-g.packing.id(0)
		for i := range rest[:n] {
			rest[i] = id
			id += step
		}
		rest = rest[n:]
	}
	return nil
}

// SetBound moves the bound forward to t, so that the generator may use ticks that end at or
// before t, and wakes callers that wait for it. An earlier t changes nothing: the bound never
// moves back.
func (g *Generator) SetBound(t time.Time) {
	limit := g.place(t)
	for {
		old := g.limit.Load()
		if limit <= old {
			return
		}
		if g.limit.CompareAndSwap(old, limit) {
			g.open()
			return
		}
	}
}

// Stop makes every later call, and every waiting one, fail with ErrStopped. It returns the end of
// the last tick that was used, or the zero time when no ID was taken: no ID of this generator
// lies at or after that. Stopping again returns the same.
func (g *Generator) Stop() time.Time {
	next := g.next.Swap(stopped)
	g.mu.Lock()
	defer g.mu.Unlock()
	if next != stopped && next > g.unused {
		g.used = g.layout.TickStart(int64((next-1)/g.perTick) + 1)
	}
	g.openLocked()
	return g.used
}

// reserve takes up to n places of one tick, and returns the first and how many they are.
func (g *Generator) reserve(n uint64) (place, count uint64, err error) {
	now := g.clock.Now()
	if now < g.epoch {
		return 0, 0, g.refusal(g.next.Load(), now)
	}
	elapsed := uint64(now - g.epoch) // below 2^63, since an epoch is not negative
	for {
		next := g.next.Load()
		tick := next >> (g.sequenceBits & 63)
		place, end := next, (tick+1)<<(g.sequenceBits&63)
		// The tick of next may be used if it has begun, or will within the look-ahead, and has
		// not ended: 0 <= elapsed + lookAhead - begin < lookAhead + tick, in one comparison.
		if elapsed+g.lookAhead-tick*g.tick >= g.lookAhead+g.tick {
			first := min(elapsed/g.tick, g.ticks) * g.perTick
			if next >= first {
				return 0, 0, g.refusal(next, now)
			}
			place, end = g.enter(first), first+g.perTick
		}
		if end = min(end, g.limit.Load()); place >= end {
			return 0, 0, g.refusal(next, now)
		}
		count = min(n, end-place)
		if g.next.CompareAndSwap(next, place+count) {
			return place, count, nil
		}
	}
}

// enter returns the place to begin with in the tick whose first place is given.
func (g *Generator) enter(first uint64) uint64 {
	if g.randomStart {
		return first + rand.Uint64N(max(g.perTick/2, 1))
	}
	return first
}

// refusal is why no place can be taken at these values of next and the clock.
func (g *Generator) refusal(next uint64, now int64) error {
	place := next
	if now >= g.epoch {
		place = max(place, min(uint64(now-g.epoch)/g.tick, g.ticks)*g.perTick)
	}
	switch {
	case place == stopped:
		return ErrStopped
	case place >= g.ticks*g.perTick:
		return ErrLifetime
	case place >= g.limit.Load():
		return ErrBound
	default:
		return ErrNotYet
	}
}

// place is the first place of the tick that t lies in. Instants that no clock can show count as
// the end of the layout's time.
func (g *Generator) place(t time.Time) uint64 {
	switch tick, err := g.layout.TickAt(t); {
	case t.Before(g.layout.Epoch):
		return 0
	case err != nil || t.After(time.Unix(0, math.MaxInt64)):
		return g.ticks * g.perTick
	default:
		return uint64(tick) * g.perTick
	}
}
