package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn"
)

// fine has a tick of a microsecond, and never exhausts either.
var fine = firn.Layout{Epoch: firn.Default.Epoch, Tick: time.Microsecond, TimeBits: 51, NodeBits: 1, SequenceBits: 11}

// pace is how IDs are asked for.
type pace struct {
	name       string
	ids        int // in a millisecond; 0: as many as there can be
	goroutines int
}

// runFresh measures how far the time in an ID lies behind the clock when its caller gets it:
// in a process that has the machine for itself, and beside twice as many busy loops as there are CPUs.
func runFresh(ctx context.Context, s settings) ([]table, error) {
	paces := []pace{
		{"1 ID each ms", 1, 1},
		{"1000 IDs each ms", 1000, 1},
		{"as fast as it can, 1 goroutine", 0, 1},
		{"2 goroutines", 0, 2},
	}
	var tables []table
	for _, loops := range []int{0, 2 * runtime.NumCPU()} {
		t := table{
			Title: fmt.Sprintf("fresh: ms by which the time of an ID lies behind the clock, beside %s",
				counted(loops, "busy loop")),
			Note: "firn has ticks of 1 us here, the peer of 1 ms. Negative: ahead of the clock.",
			columns: []column{
				{"p50_ms", "p50", "%.3f"},
				{"p99_9_ms", "p99.9", "%.3f"},
				{"max_ms", "max", "%.3f"},
				{"min_ms", "min", "%.3f"},
				{"ids", "million IDs/s", "%.3f"},
			},
		}
		for _, p := range paces {
			for _, c := range []struct {
				name string
				make func() aged
			}{
				{"true clock", func() aged { return agedFirn(false) }},
				{"CoarseClock", func() aged { return agedFirn(true) }},
				{"a Local by a CoarseClock", agedLocal},
				{"the peer's scheme", agedShards},
			} {
				s.tell("fresh, %s, beside %s: %s", p.name, counted(loops, "busy loop"), c.name)
				var behind []time.Duration
				var rate float64
				err := beside(ctx, loops, func() (err error) {
					behind, rate, err = p.sample(ctx, c.make(), s.fresh)
					return err
				})
				if err != nil {
					return nil, err
				}
				slices.Sort(behind)
				at := func(q float64) float64 {
					return float64(behind[int(q*float64(len(behind)-1))]) / float64(time.Millisecond)
				}
				t.add(p.name+", "+c.name, at(0.5), at(0.999), at(1), at(0), rate/1e6)
				if loops == 0 && strings.HasSuffix(c.name, "CoarseClock") && p.goroutines < runtime.NumCPU() {
					t.Targets = append(t.Targets, atMost(c.name+", "+p.name+", p99.9 in ms", at(0.999), 2))
				}
			}
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// aged makes IDs, and tells when one was made, and what the time is, in Unix nanoseconds.
type aged struct {
	next func() int64
	made func(id int64) int64
	now  func() int64
}

func agedFirn(coarse bool) aged {
	ctx, steady := context.Background(), firn.NewSteadyClock(0)
	var clock firn.Clock = steady
	if coarse {
		clock = firn.NewCoarseClock(steady)
	}
	g := must(firn.NewGenerator(fine, 1, firn.WithClock(clock)))
	return aged{
		next: func() int64 { return int64(must(g.Next(ctx))) },
		made: func(id int64) int64 { return must(fine.Time(firn.ID(id))).UnixNano() },
		now:  steady.Now,
	}
}

func agedLocal() aged {
	ids := agedFirn(true)
	loop := firnLocal("", fine).loop
	ids.next = func() int64 { return loop(1) }
	return ids
}

func agedShards() aged {
	s := newShards()
	return aged{
		next: s.next,
		made: func(id int64) int64 { return must(firn.Default.Time(firn.ID(id))).UnixNano() },
		now:  func() int64 { return time.Now().UnixNano() },
	}
}

// sample takes IDs for so long, and returns how far some of them were behind, and how many it took in a second.
func (p pace) sample(ctx context.Context, ids aged, d time.Duration) (behind []time.Duration, rate float64, err error) {
	const each = 61 // of the IDs as fast as it can: prime, so that it meets every place of a tick
	var mu sync.Mutex
	var running sync.WaitGroup
	taken, start := 0, time.Now()
	for range p.goroutines {
		running.Go(func() {
			var mine []time.Duration
			n := 0
			for time.Since(start) < d && ctx.Err() == nil {
				turn := each
				if p.ids > 0 {
					time.Sleep(time.Millisecond)
					turn = p.ids
				}
				for range turn {
					id := ids.next()
					if n++; p.ids == 1 || n%each == 0 {
						mine = append(mine, time.Duration(ids.now()-ids.made(id)))
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			behind, taken = append(behind, mine...), taken+n
		})
	}
	running.Wait()
	return behind, float64(taken) / time.Since(start).Seconds(), ctx.Err()
}
