package main

import (
	"context"
	"slices"
	"time"

	"github.com/sony/sonyflake/v2"
)

const (
	nextFirn     = "firn Next, 1+21 bits, true clock"
	nextCoarse   = "firn Next, 1+21 bits, CoarseClock"
	nextLocal    = "firn Local, 1+21 bits, CoarseClock"
	nextBwmarrin = "bwmarrin/snowflake, 1+21 bits"
	nextShards   = "bytentropy/snowflake's scheme"
)

// runNext measures single IDs, of layouts that never exhaust where there are layouts.
func runNext(ctx context.Context, s settings) ([]table, error) {
	clocked := []string{nextBwmarrin, "yitter/idgenerator M2, 1+21 bits", "sony/sonyflake v2, 21 bits at 1 ms"}
	contenders := slices.Concat(floors(), []contender{
		firnNext(nextFirn, wide, trueClock()),
		firnNext(nextCoarse, wide, coarseClock()),
		firnLocal(nextLocal, wide, coarseClock()),
		newShards().contender(nextShards),
		bwmarrin(nextBwmarrin, 1, 21),
		yitter(clocked[1]),
		sony(clocked[2], sonyflake.Settings{BitsSequence: 21, BitsMachineID: 1, TimeUnit: time.Millisecond}),
	}, others())
	return measureTables(ctx, s, contenders, func(times, cpu speeds, goroutines int) table {
		return nextTable(times, cpu, contenders, clocked, goroutines)
	})
}

func nextTable(got, cpu speeds, contenders []contender, clocked []string, goroutines int) table {
	fastest := clocked[0]
	for _, name := range clocked {
		if got.median(name) < got.median(fastest) {
			fastest = name
		}
	}
	fastestOfAll := nextShards
	if got.median(fastest) < got.median(nextShards) {
		fastestOfAll = fastest
	}
	sum := make([]float64, len(got[floorClock])) // of a clock read and a compare-and-swap, round by round
	for i := range sum {
		sum[i] = got[floorClock][i] + got[floorCAS][i]
	}
	t := table{
		Title: "next: one ID at a time, " + plural(goroutines),
		Note: "The floor: one clock read and one compare-and-swap, each measured alone. The fastest peer that\n" +
			"reads a clock for each ID: " + fastest + ". Ratios are medians over the rounds.",
		columns: []column{
			{"min_ns", "min ns/ID", "%.1f"},
			{"median_ns", "median ns/ID", "%.1f"},
			{"cpu_ns", "median CPU ns/ID", "%.1f"},
			{"to_floor", "to floor", "%.2f"},
			{"to_peer", "to that peer", "%.2f"},
			{"to_any", "to " + fastestOfAll, "%.2f"},
			{"allocations", "allocs/ID", "%.0f"},
		},
	}
	for _, c := range contenders {
		t.add(c.name, got.least(c.name), got.median(c.name), cpu.median(c.name),
			got.ratioTo(c.name, sum), got.ratio(c.name, fastest), got.ratio(c.name, fastestOfAll), allocations(c))
	}
	if goroutines > 1 {
		t.Note += "\nWhere the CPU time per ID is no more than the time, the goroutines took turns on one CPU."
	} else {
		t.Targets = append(t.Targets,
			atMost("Next, CoarseClock, to the fastest peer of any kind", got.ratio(nextCoarse, fastestOfAll), 1),
			atMost("Next, CoarseClock, to the fastest peer of any kind, of the minima",
				got.least(nextCoarse)/got.least(fastestOfAll), 1),
			atMost("Next to the floor", got.ratioTo(nextFirn, sum), 1.25),
			atMost("Next to the floor, of the minima", got.least(nextFirn)/(got.least(floorClock)+got.least(floorCAS)),
				1.25))
	}
	t.Targets = append(t.Targets,
		atMost("a Local to the fastest peer of any kind", got.ratio(nextLocal, fastestOfAll), 0.6),
		atMost("a Local to the fastest peer of any kind, of the minima",
			got.least(nextLocal)/got.least(fastestOfAll), 0.6),
		atMost("Next to the fastest peer that reads a clock", got.ratio(nextFirn, fastest), 1),
		atMost("Next to the fastest peer that reads a clock, of the minima", got.least(nextFirn)/got.least(fastest), 1))
	return t
}

// runFill measures batches of IDs of a layout that never exhausts.
func runFill(ctx context.Context, s settings) ([]table, error) {
	const fill = "firn Fill of 1024, 1+21 bits"
	contenders := []contender{
		firnFill(fill, wide, 1024), firnNext(nextFirn, wide, trueClock()),
		bwmarrin(nextBwmarrin, 1, 21),
	}
	return measureTables(ctx, s, contenders, func(got, _ speeds, goroutines int) table {
		t := table{
			Title: "fill: batches of 1024 IDs, " + plural(goroutines),
			columns: []column{
				{"min_ns", "min ns/ID", "%.2f"},
				{"median_ns", "median ns/ID", "%.2f"},
				{"to_peer", "to the peer", "%.4f"},
			},
		}
		for _, c := range contenders {
			t.add(c.name, got.least(c.name), got.median(c.name), got.ratio(c.name, nextBwmarrin))
		}
		if goroutines == 1 {
			t.Targets = append(t.Targets, atMost("Fill, median ns/ID", got.median(fill), 1))
		}
		return t
	})
}
