package main

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sony/sonyflake/v2"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
)

// saturation is what was made at the limit of a layout, and what it cost.
type saturation struct {
	rate float64 // IDs per second
	cpu  float64 // nanoseconds of CPU per ID, user and system
}

// runLimit asks generators for more IDs than their layout has, from several goroutines, and
// measures how near they come to its limit and what CPU time an ID costs then.
func runLimit(ctx context.Context, s settings) ([]table, error) {
	const next, local, fill, peer = "firn Next", "firn Local", "firn Fill of 100", "bwmarrin/snowflake (spins)"
	contenders := []contender{
		firnNext(next, firn.Default),
		firnFill(fill, firn.Default, 100),
		bwmarrin(peer, 10, 12),
		sony("sony/sonyflake v2, 12 bits at 1 ms (sleeps)",
			sonyflake.Settings{BitsSequence: 12, BitsMachineID: 10, TimeUnit: time.Millisecond}),
		firnLocal(local, firn.Default),
	}
	var tables []table
	for _, goroutines := range []int{1, 2, 64} {
		t, rates, costs, err := limitTable(ctx, s, contenders, peer, goroutines, 0)
		if err != nil {
			return nil, err
		}
		t.Targets = []target{
			atLeast("Next, % of the limit, median", rates.median(next), 99.5),
			atLeast("Next, % of the limit, best round", slices.Max(rates[next]), 99.5),
			atLeast("a Local, % of the limit, median", rates.median(local), 99.5),
			atLeast("a Local, % of the limit, best round", slices.Max(rates[local]), 99.5),
			atMost("Next, CPU to the spinning peer", costs.ratio(next, peer), 1./3),
		}
		tables = append(tables, t)
	}
	t, rates, _, err := limitTable(ctx, s, []contender{
		contenders[0],
		firnNext("firn Next, look-ahead fixed at 4 ms", firn.Default, firn.WithLookAhead(firn.DefaultLookAhead)),
		contenders[2],
	}, peer, 1, runtime.NumCPU()+1)
	t.Targets = []target{
		atLeast("Next, % of the limit, median", rates.median(next), 90),
		atLeast("Next, % of the limit, best round", slices.Max(rates[next]), 90),
	}
	if err != nil {
		return nil, err
	}
	return append(tables, t), nil
}

// limitTable measures contenders at the limit of a node ID, beside so many busy loops.
func limitTable(ctx context.Context, s settings, contenders []contender, peer string, goroutines, loops int,
) (t table, rates, costs speeds, err error) {
	rates, costs = speeds{}, speeds{}
	for round := range s.limits {
		for _, c := range contenders {
			s.tell("%s at the limit, %s, round %d of %d: %s", plural(goroutines), counted(loops, "busy loop"), round+1,
				s.limits, c.name)
			var got saturation
			err := beside(ctx, loops, func() (err error) {
				got, err = saturate(ctx, c.loop, goroutines, s.limit)
				return err
			})
			if err != nil {
				return t, nil, nil, err
			}
			rates[c.name] = append(rates[c.name], 100*got.rate/firn.Default.Rate())
			costs[c.name] = append(costs[c.name], got.cpu)
		}
	}
	t = table{
		Title: "limit: 4 096 IDs per millisecond, " + plural(goroutines),
		Note:  "CPU is user and system time of the process. Other work on the machine lowers the rate.",
		columns: []column{
			{"rate_percent_max", "max % of the limit", "%.2f"},
			{"rate_percent", "median % of the limit", "%.2f"},
			{"cpu_ns_min", "min CPU ns/ID", "%.0f"},
			{"cpu_ns", "median CPU ns/ID", "%.0f"},
			{"cpu_to_peer", "CPU to " + peer, "%.2f"},
		},
	}
	if loops > 0 {
		t.Title += ", beside " + counted(loops, "busy loop")
	}
	for _, c := range contenders {
		t.add(c.name, slices.Max(rates[c.name]), rates.median(c.name), costs.least(c.name), costs.median(c.name),
			costs.ratio(c.name, peer))
	}
	return t, rates, costs, nil
}

// saturate runs the loop on so many goroutines for the given time. What was made in the first
// tenth does not count: a generator may begin with IDs that it has saved up.
func saturate(ctx context.Context, loop func(int) int64, goroutines int, d time.Duration) (saturation, error) {
	const turn = 64 // IDs between two looks at whether to stop
	var made atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for !stop.Load() {
				loop(turn)
				made.Add(turn)
			}
		})
	}
	defer all.Wait()
	defer stop.Store(true)

	if err := retry.Sleep(ctx, d/10); err != nil {
		return saturation{}, err
	}
	start, ids, cpu := time.Now(), made.Load(), cpuTime()
	if err := retry.Sleep(ctx, d); err != nil {
		return saturation{}, err
	}
	took, cpu := time.Since(start), cpuTime()-cpu
	ids = made.Load() - ids
	return saturation{rate: float64(ids) / took.Seconds(), cpu: float64(cpu) / float64(ids)}, nil
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
