package firn

import (
	"fmt"
	"math"
	"time"
)

// AheadError is returned by Advance for an ID that lies further ahead of the clock than IDs may go.
type AheadError struct {
	ID    ID
	Ahead time.Duration // how far ahead of the clock the next ID would be
	Most  time.Duration // how far it may be: as the caller says, or up to the bound if that is nearer
}

// Error says how far ahead the ID lies, and how far IDs may go.
func (e *AheadError) Error() string {
	return fmt.Sprintf("IDs after %d lie %v ahead of the clock; they may go up to %v ahead", e.ID,
		e.Ahead.Round(time.Millisecond), e.Most.Round(time.Millisecond))
}

// Advance has every ID that is taken from now on exceed another one of the same layout, whichever node made that: as
// in a hybrid logical clock, ID time moves ahead of the clock to there, but never to the bound. Nobody waits until the
// clock is there: IDs are taken from where ID time is, at the full rate. Under saturation ID time stays ahead, and
// approaches the clock by an eighth of the time that passes.
//
// Advance never waits. It returns an *AheadError, and changes nothing, when ID time would have to move further ahead of
// the clock than most, or to the bound. Nothing moves for an ID that is exceeded already. Another error is that of
// [Layout.Decompose].
func (g *Generator) Advance(after ID, most time.Duration) error {
	least, err := g.beyond(after)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now, next, end := g.now(), g.next.Load(), g.limit.Load()
	if next >= least && next != g.unused {
		g.least.Store(max(g.least.Load(), least)) // a Local may have some below
		return nil
	}
	place := max(next, least) // later at a floor
	ahead := g.ahead(place, now)
	switch {
	case place < end && ahead <= most:
		// Beyond the look-ahead, or saturated nodes would push each other ahead. First, so that nobody finds next too
		// far ahead.
		if needs := ahead + time.Duration(g.slower()) - time.Duration(g.lookAhead.Load()); needs > 0 {
			g.lead.Store(max(g.lead.Load(), uint64(needs)))
		}
	case next >= least:
		return nil
	case place >= end:
		return &AheadError{after, ahead, min(most, max(g.ahead(end, now)-g.layout.Tick, 0))}
	default:
		return &AheadError{after, ahead, most}
	}
	if least%g.perTick == 0 {
		least = g.enter(least)
	}
	for next < least && !g.next.CompareAndSwap(next, least) {
		next = g.next.Load()
	}
	g.least.Store(max(g.least.Load(), least))
	return nil
}

// beyond returns the least place whose ID exceeds another one.
func (g *Generator) beyond(after ID) (uint64, error) {
	p, err := g.layout.Decompose(after)
	if err != nil {
		return 0, err
	}
	first := uint64(p.Tick) * g.perTick
	same := first + uint64(p.Sequence) // may have the greater node ID
	for _, place := range []uint64{first, same, same + 1} {
		if place < first+g.perTick && g.packing.id(place) > after {
			return place, nil
		}
	}
	return first + g.perTick, nil
}

// ahead returns how far the tick of a place begins after now.
func (g *Generator) ahead(place uint64, now int64) time.Duration {
	return g.layout.TickStart(int64(place / g.perTick)).Sub(time.Unix(0, now))
}

// reach returns how far ahead of the clock the tick of a place may begin, with so long a lead. It is less at the
// beginning of a tick, so that a lead which shrinks there leaves the rest of the tick.
func (g *Generator) reach(place, lead uint64) uint64 {
	if place&(g.perTick-1) == 0 {
		lead -= min(lead, g.slower())
	}
	return min(g.lookAhead.Load()+lead, math.MaxInt64)
}

// slower is by how much the lead shrinks with each tick.
func (g *Generator) slower() uint64 { return g.tick/8 + 1 }

// relax has the lead follow ID time back to the clock, after a tick was entered. It leaves a lead without which the
// next ID would no longer be there at once.
func (g *Generator) relax(now int64) {
	g.mu.Lock() // so that next is not advanced meanwhile
	defer g.mu.Unlock()
	next, lead := g.next.Load(), g.lead.Load()
	shorter := min(lead-min(lead, g.slower()), uint64(max(g.ahead(next-1, now), 0)))
	if ahead := uint64(max(g.ahead(next, now), 0)); ahead > g.reach(next, lead) || ahead <= g.reach(next, shorter) {
		g.lead.Store(shorter)
	}
}

// Ahead returns how far ahead of the clock the tick of the last ID begins. It is zero when that tick is not ahead, or
// no ID was made. It exceeds the look-ahead only after Advance, or after the clock stepped back.
func (g *Generator) Ahead() time.Duration {
	next := g.next.Load()
	if next == stopped || next <= g.unused {
		return 0
	}
	return max(g.ahead(next-1, g.clock.Now()), 0)
}
