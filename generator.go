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

// IDs may run ahead of the clock under saturation: by DefaultLookAhead, 4 ms, or by up to
// MaxLookAhead, 16 ms, while the machine wakes callers so late that they lose rate.
const (
	DefaultLookAhead = 4 * time.Millisecond
	MaxLookAhead     = 16 * time.Millisecond
)

// Generator makes the IDs of one node. Its state is one word: the place (tick and sequence)
// that comes next. There is one rule: the next ID is at the greater of that place and the
// beginning of the clock's tick, and must not lie in the future of the clock, unless Advance
// has moved it there, nor beyond the bound. So a clock that stepped back, an exhausted
// sequence (the count carries into the next tick) and a floor in the future are the same
// condition with the same answer: wait.
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

	// least is the least place that a Local may give of a batch that it took before; it only grows, and is stopped at
	// the end. It is written under mu.
	least atomic.Uint64

	// lookAhead is in nanoseconds, from leastAhead to mostAhead.
	lookAhead atomic.Uint64

	// lead is by how many nanoseconds more IDs may run ahead since Advance; it shrinks. It
	// is written under mu.
	lead atomic.Uint64

	clock        Clock
	coarse       *CoarseClock  // clock, if it is one
	shown        *atomic.Int64 // what coarse shows; without one, that it sleeps
	epoch        int64         // Unix nanoseconds
	tick         uint64        // nanoseconds
	sequenceBits uint8
	packing      packing

	perTick     uint64 // places in a tick: 2^sequenceBits
	ticks       uint64 // how many ticks the layout has
	leastAhead  uint64
	mostAhead   uint64
	layout      Layout
	node        int64
	randomStart bool
	failAtBound bool
	waits       *Waits       // nil: nobody counts
	file        *horizonFile // nil: without

	mu     sync.Mutex
	gate   chan struct{} // closed when waiting callers should try again; nil: nobody waits
	opener *time.Timer   // opens the gate when the clock should be there
	unused uint64        // the value of next before any ID was taken
	used   time.Time     // once stopped: the end of the last tick used
}

// cacheLine is how many bytes lie at least between fields that must not share a cache line:
// two lines of 64 bytes, since processors fetch them in pairs.
const cacheLine = 128

// syncEvery is after how many IDs a generator has a CoarseClock look at its source, so that
// busy goroutines that delay its ticks do not delay it for long.
const syncEvery = 512

// stopped is a place beyond every limit.
const stopped = math.MaxUint64

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
	}
	g.setLookAhead(DefaultLookAhead, MaxLookAhead)
	g.limit.Store(g.ticks * g.perTick)
	for _, option := range options {
		option(g)
	}
	if g.clock == nil {
		g.clock = NewCoarseClock(NewSteadyClock(math.MaxInt64))
	}
	if g.coarse, _ = g.clock.(*CoarseClock); g.coarse != nil {
		g.shown = &g.coarse.shown
	} else {
		g.shown = sleeps
	}
	now := time.Unix(0, g.now())
	if _, err := layout.TickAt(now); err != nil {
		hint := ""
		if bubble := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); !now.Before(bubble) &&
			now.Before(bubble.AddDate(0, 0, 1)) {
			hint = " (a bubble of testing/synctest begins in 2000: give the layouts of such tests an Epoch of then)"
		}
		return nil, fmt.Errorf("the clock is wrong, or another epoch is needed%s: %w", hint, err)
	}
	if g.file != nil {
		if err := g.openFile(now); err != nil {
			return nil, err
		}
		go g.keepHorizon()
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
	if place, ok := g.quick(); ok {
		return g.packing.id(place), nil
	}
	place, _, err := g.reserve(1)
	if err != nil {
		return 0, err
	}
	return g.packing.id(place), nil
}

// quick takes the next place if that is simple: what reserve does in most cases, without its
// detours. The clock ticks, and next lies in the tick that it shows. A clock that sleeps shows
// a negative time.
func (g *Generator) quick() (place uint64, ok bool) {
	next := g.next.Load()
	begins := next >> (g.sequenceBits & 63) * g.tick
	return next, uint64(g.shown.Load()-g.epoch)-begins < g.tick && next%syncEvery != 0 &&
		next < g.limit.Load() && g.next.CompareAndSwap(next, next+1)
}

// Next returns the next ID. It waits while that lies in the future or beyond the bound, and
// looks at ctx only then. When ctx ends first, the error wraps both what Next waited for
// (ErrNotYet or ErrBound) and the error of ctx. Next returns ErrStopped once the generator is
// stopped, and ErrLifetime once the time bits of the layout have run out.
func (g *Generator) Next(ctx context.Context) (ID, error) {
	if place, ok := g.quick(); ok {
		return g.packing.id(place), nil
	}
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
		n, err := g.TryFill(rest)
		if err != nil {
			if err := g.wait(ctx, err); err != nil {
				clear(ids)
				return err
			}
		}
		rest = rest[n:]
	}
	return nil
}

// TryFill fills the beginning of ids with the next IDs, in ascending order, and returns how
// many. It never waits. It returns an error as TryNext does when there is no ID now.
func (g *Generator) TryFill(ids []ID) (n int, err error) {
	for n < len(ids) {
		place, count, err := g.reserve(uint64(len(ids) - n))
		if err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		id, step := g.packing.id(place), g.packing.id(1)-g.packing.id(0)
		for i := range ids[n:][:count] {
			ids[n+i] = id
			id += step
		}
		n += int(count)
	}
	return n, nil
}

// SetBound moves the bound forward to t, so that the generator may use ticks that end at or
// before t, and wakes callers that wait for it. An earlier t changes nothing: the bound never
// moves back. A generator with a horizon file moves its bound itself: SetBound does nothing.
func (g *Generator) SetBound(t time.Time) {
	if g.file == nil {
		g.setBound(t)
	}
}

func (g *Generator) setBound(t time.Time) {
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
// lies at or after that, nor any place that a Local holds. Every call returns the same, also those
// at one time. With a horizon file it waits for the disk to confirm the end of use, and closes the file.
func (g *Generator) Stop() time.Time {
	used := g.stop()
	if g.file != nil {
		g.file.close(used)
	}
	return used
}

func (g *Generator) stop() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Under the lock: who finds it stopped finds g.used set, too.
	if next := g.next.Swap(stopped); next != stopped && next > g.unused {
		g.used = g.layout.TickStart(int64((next-1)/g.perTick) + 1)
	}
	g.least.Store(stopped)
	g.openLocked()
	return g.used
}

// reserve takes up to n places of one tick, and returns the first and how many they are.
func (g *Generator) reserve(n uint64) (place, count uint64, err error) {
	now, exact := g.read(n)
	for {
		elapsed := uint64(now - g.epoch) // below 2^63, since an epoch is not negative
		next := g.next.Load()
		lookAhead := g.reach(next, g.lead.Load())
		tick := next >> (g.sequenceBits & 63)
		place, end := next, (tick+1)<<(g.sequenceBits&63)
		switch {
		// The tick of next may be used if it has begun, or will within the look-ahead, and has
		// not ended: 0 <= elapsed + lookAhead - begin < lookAhead + tick, in one comparison.
		case now >= g.epoch && elapsed+lookAhead-tick*g.tick < lookAhead+g.tick:
		case now >= g.epoch && next < min(elapsed/g.tick, g.ticks)*g.perTick:
			first := min(elapsed/g.tick, g.ticks) * g.perTick
			place, end = g.enter(first), first+g.perTick
		default:
			end = 0
		}
		if end = min(end, g.limit.Load()); place < end {
			count = min(n, end-place)
			if g.next.CompareAndSwap(next, place+count) {
				if g.lead.Load() > 0 && (place != next || place&(g.perTick-1) == 0) {
					g.relax(now)
				}
				return place, count, nil
			}
		} else if exact && next == g.next.Load() { // or it was taken, and the lead shrank behind it
			return 0, 0, g.refusal(next, now)
		} else {
			now, exact = g.now(), true
		}
	}
}

// read reads the clock for the next n places, and reports whether it shows the true time.
func (g *Generator) read(n uint64) (now int64, exact bool) {
	switch c := g.coarse; {
	case c == nil:
		return g.clock.Now(), true
	case (g.next.Load()+n-1)%syncEvery < n: // one of these places is a multiple of it
		return c.Sync(), true
	default:
		return c.Now(), false
	}
}

// now returns the true time. A CoarseClock shows it from then on.
func (g *Generator) now() int64 {
	if g.coarse != nil {
		return g.coarse.Sync()
	}
	return g.clock.Now()
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
	case place < g.limit.Load(), g.file != nil && place/g.perTick*g.tick > uint64(now-g.epoch):
		return ErrNotYet // also at the bound of a file, which moves with the clock
	case g.file != nil:
		return g.file.atBound()
	default:
		return ErrBound
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
