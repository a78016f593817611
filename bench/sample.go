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

// measure samples all contenders in turn, round after round, each with so many goroutines.
// With several, the time of a sample runs until the last has made its share.
func measure(ctx context.Context, s settings, contenders []contender, goroutines int) (speeds, error) {
	s.tell("%s: warming up", plural(goroutines))
	counts := make([]int, len(contenders))
	for i, c := range contenders {
		counts[i] = calibrate(c.loop, goroutines, s.sample)
	}
	samples := make(speeds, len(contenders))
	for round := range s.rounds {
		if round%max(1, s.rounds/5) == 0 {
			s.tell("%s: round %d of %d over %d contenders", plural(goroutines), round+1, s.rounds, len(contenders))
		}
		for i, c := range contenders {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			took := timed(c.loop, goroutines, counts[i])
			samples[c.name] = append(samples[c.name], float64(took)/float64(goroutines*counts[i]))
		}
	}
	return samples, nil
}

// calibrate returns how many IDs each goroutine makes in about the given time.
func calibrate(loop func(int) int64, goroutines int, sample time.Duration) int {
	for n := 64; ; n *= 2 {
		if took := timed(loop, goroutines, n); took >= sample/4 {
			return max(1, int(float64(n)*float64(sample)/float64(took)))
		}
	}
}

var sink atomic.Int64

// timed runs the loop on so many goroutines, which begin together, and returns how long it
// took until all were done.
func timed(loop func(int) int64, goroutines, n int) time.Duration {
	var others sync.WaitGroup
	var arrived atomic.Int64
	begin := func() {
		for arrived.Add(1); arrived.Load() < int64(goroutines); {
			runtime.Gosched()
		}
	}
	for range goroutines - 1 {
		others.Go(func() {
			begin()
			sink.Store(loop(n))
		})
	}
	begin()
	start := time.Now()
	sink.Store(loop(n))
	others.Wait()
	return time.Since(start)
}

// allocations is how often a contender allocates for one ID.
func allocations(c contender) float64 {
	const ids = 100
	return testing.AllocsPerRun(5, func() { sink.Store(c.loop(ids)) }) / ids
}

// plural counts goroutines.
func plural(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}
