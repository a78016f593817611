package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// contender is something whose speed is measured. Its loop makes n IDs and returns the
// last, so that no compiler can leave the work out; it is safe for concurrent use.
type contender struct {
	name string
	loop func(n int) int64
}

// speeds holds the samples of some contenders, in nanoseconds per ID, in the order of the
// rounds in which they were taken.
type speeds map[string][]float64

func (s speeds) median(name string) float64 { return median(s[name]) }
func (s speeds) least(name string) float64  { return slices.Min(s[name]) }

// ratio is the median over the rounds of a to b: what slows down a whole round cancels out.
func (s speeds) ratio(a, b string) float64 { return s.ratioTo(a, s[b]) }

func (s speeds) ratioTo(a string, b []float64) float64 {
	ratios := make([]float64, len(b))
	for i := range ratios {
		ratios[i] = s[a][i] / b[i]
	}
	return median(ratios)
}

func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// measure samples all contenders in turn, round after round, each with so many goroutines. It
// returns the time and the CPU time per ID. With several goroutines the samples are longer and fewer,
// because a system may take a while to spread threads over its CPUs.
func measure(ctx context.Context, s settings, contenders []contender, goroutines int) (times, cpu speeds, err error) {
	sample, rounds := s.sample, s.rounds
	if goroutines > 1 {
		sample, rounds = 4*s.sample, (s.rounds+1)/2
	}
	s.tell("%s: warming up", plural(goroutines))
	counts := make([]int, len(contenders))
	for i, c := range contenders {
		counts[i] = calibrate(c.loop, goroutines, sample)
	}
	times, cpu = speeds{}, speeds{}
	for round := range rounds {
		if round%max(1, rounds/5) == 0 {
			s.tell("%s: round %d of %d over %d contenders", plural(goroutines), round+1, rounds, len(contenders))
		}
		for i, c := range contenders {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			before := cpuTime()
			took := timed(c.loop, goroutines, counts[i])
			ids := float64(goroutines * counts[i])
			times[c.name] = append(times[c.name], float64(took)/ids)
			cpu[c.name] = append(cpu[c.name], float64(cpuTime()-before)/ids)
		}
	}
	return times, cpu, nil
}

// measureTables measures contenders on one goroutine and on two, and returns a table of each.
func measureTables(ctx context.Context, s settings, contenders []contender,
	tableOf func(times, cpu speeds, goroutines int) table,
) (tables []table, err error) {
	for _, goroutines := range []int{1, 2} {
		times, cpu, err := measure(ctx, s, contenders, goroutines)
		if err != nil {
			return nil, err
		}
		tables = append(tables, tableOf(times, cpu, goroutines))
	}
	return tables, nil
}

// calibrate returns how many IDs each goroutine makes in about the given time. It takes the
// shorter of two samples: one in which the machine stalls would make it far too few.
func calibrate(loop func(int) int64, goroutines int, sample time.Duration) int {
	for n := 64; ; n *= 2 {
		if took := min(timed(loop, goroutines, n), timed(loop, goroutines, n)); took >= sample/4 {
			return max(1, int(float64(n)*float64(sample)/float64(took)))
		}
	}
}

var sink atomic.Int64

// timed runs the loop on so many goroutines, which begin together, and returns how long it took
// from the first one's beginning to the last one's end.
func timed(loop func(int) int64, goroutines, n int) time.Duration {
	var all sync.WaitGroup
	var arrived atomic.Int64
	starts, ends := make([]time.Time, goroutines), make([]time.Time, goroutines)
	work := func(i int) {
		arrived.Add(1)
		for spins := 0; arrived.Load() < int64(goroutines); spins++ {
			if spins%1000 == 999 { // rarely, so that its thread keeps its CPU
				runtime.Gosched()
			}
		}
		starts[i] = time.Now()
		sink.Store(loop(n))
		ends[i] = time.Now()
	}
	for i := range goroutines - 1 {
		all.Go(func() { work(i) })
	}
	work(goroutines - 1)
	all.Wait()
	first := slices.MinFunc(starts, time.Time.Compare)
	return slices.MaxFunc(ends, time.Time.Compare).Sub(first)
}

// allocations is how often a contender allocates for one ID.
func allocations(c contender) float64 {
	const ids = 100
	return testing.AllocsPerRun(5, func() { sink.Store(c.loop(ids)) }) / ids
}

// plural counts goroutines.
func plural(n int) string { return counted(n, "goroutine") }

// counted says how many there are of something.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
