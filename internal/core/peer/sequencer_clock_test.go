package peer

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// The generators' clock may be late, as after a process was frozen. What it shows decides no more than where in its
// reserved time a generator makes IDs: fences, horizons and readiness go by the true clock.
func TestFencesGoByTheTrueClock(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var frozen atomic.Int64 // for how long the process was, in which its monotonic clock went on
		a := w.start("a", func(c *setup) {
			c.Clock = firn.NewSteadyClockFrom(0, func() (int64, int64) {
				wall, mono := c.wall.read()
				return wall + frozen.Load(), mono + frozen.Load()
			})
		})
		a.ready(time.Second)
		for range 1000 { // so many at once that the clock ticks
			if err := a.take(); err != nil {
				t.Fatal(err)
			}
		}
		s, m := a.settled(), a.mem.Load()
		horizon := s.status.Load().inUse().fence.Horizon()
		frozen.Store(int64(2 * window))
		if late := m.now().Sub(time.Unix(0, m.clock.Now())); late < 2*window {
			t.Fatalf("the generators' clock is late by only %v", late)
		}
		if s.Ready() == nil {
			t.Error("ready beyond its horizon")
		}
		if now := s.fences.Clock(); now.Before(horizon) {
			t.Errorf("the fence's clock shows %v, which is before the horizon %v", now, horizon)
		}
		id, err := a.Next(t.Context())
		if err != nil {
			t.Fatal(err) // the generator does not wait for what it need not know
		}
		p, err := s.layout.Decompose(id)
		if err != nil || s.layout.TickStart(p.Tick+1).After(horizon) {
			t.Errorf("an ID ends at %v, the horizon is %v (%v)", s.layout.TickStart(p.Tick+1), horizon, err)
		}
	})
}
