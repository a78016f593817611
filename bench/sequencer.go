package main

import (
	"context"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store/memstore"
)

// attach returns a sequencer of a member, in a store in memory.
func attach(ctx context.Context, layout firn.Layout) (s *member.Sequencer, leave func(), err error) {
	m, err := member.Join(ctx, memstore.NewService().Client("bench"), member.Options{})
	if err != nil {
		return nil, nil, err
	}
	s, err = m.EnsureSequencer(ctx, "bench", sequencer.Define(layout))
	if err == nil {
		err = s.Ready()
	}
	if err != nil {
		m.Leave()
		return nil, nil, err
	}
	return s, m.Leave, nil
}

// runSequencer measures what a sequencer of a member costs beside the generator that it has inside.
func runSequencer(ctx context.Context, s settings) ([]table, error) {
	sequencer, leave, err := attach(ctx, wide)
	if err != nil {
		return nil, err
	}
	defer leave()
	generator := must(firn.NewGenerator(wide, 0, // with the options that a member gives to its own
		firn.WithClock(firn.NewCoarseClock(firn.NewSteadyClock(0))), firn.FailAtBound(),
		firn.WithFloor(wide.Epoch), firn.WithBound(time.Now().Add(24*time.Hour))))
	const next, fill = "Sequencer.Next", "Sequencer.Fill of 1024"
	const bareNext, bareFill = "Generator.Next", "Generator.Fill of 1024"
	const ofGenerator, ofSequencer = "a Local of the generator", "a Local of the sequencer"
	contenders := []contender{
		sourceNext(bareNext, generator), sourceNext(next, sequencer),
		sourceFill(bareFill, generator, 1024), sourceFill(fill, sequencer, 1024),
		firnLocal(ofGenerator, wide, coarseClock()), sequencerLocal(ofSequencer, sequencer),
	}
	return measureTables(ctx, s, contenders, func(got, cpu speeds, goroutines int) table {
		t := table{
			Title: "sequencer: a member's sequencer beside a generator alone, " + plural(goroutines),
			Note: "Both have 1+21 bits, a CoarseClock and a bound. The member keeps its node ID meanwhile, in " +
				"a store " +
				"in memory.\n" +
				"Ratios are medians over the rounds.",
			columns: []column{
				{"min_ns", "min ns/ID", "%.2f"},
				{"median_ns", "median ns/ID", "%.2f"},
				{"cpu_ns", "median CPU ns/ID", "%.2f"},
				{"to_generator", "to the generator", "%.3f"},
				{"allocations", "allocs/ID", "%.0f"},
			},
		}
		for i, c := range contenders {
			bare := contenders[i&^1].name
			t.add(c.name, got.least(c.name), got.median(c.name), cpu.median(c.name), got.ratio(c.name, bare),
				allocations(c))
		}
		t.Targets = append(t.Targets,
			atMost("Next to the generator's", got.ratio(next, bareNext), 1.1),
			atMost("Next to the generator's, of the minima", got.least(next)/got.least(bareNext), 1.1))
		return t
	})
}
