package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"
)

// wide never exhausts: 2 097 152 IDs per millisecond, with one node bit, as the peers'
// layouts of 1 and 21 bits have it.
var wide = firn.Layout{Epoch: firn.Default.Epoch, Tick: time.Millisecond, TimeBits: 41, NodeBits: 1, SequenceBits: 21}

// The floors: what a generator that reads a clock for every ID can't do without.
const (
	floorClock = "floor: time.Since alone"
	floorCAS   = "floor: compare-and-swap alone"
	floorBoth  = "floor: time.Since, then compare-and-swap"
	floorMutex = "floor: time.Since under a mutex"
)

func floors() []contender {
	start := time.Now()
	var alone, both, under struct {
		_    [64]byte
		word atomic.Uint64
		mu   sync.Mutex
		_    [64]byte
	}
	return []contender{
		{floorClock, func(n int) (last int64) {
			for range n {
				last += int64(time.Since(start))
			}
			return last
		}},
		{floorCAS, func(n int) (last int64) {
			for range n {
				for {
					old := alone.word.Load()
					if alone.word.CompareAndSwap(old, old+1) {
						last = int64(old)
						break
					}
				}
			}
			return last
		}},
		{floorBoth, func(n int) (last int64) {
			for range n {
				now := uint64(time.Since(start))
				for {
					old := both.word.Load()
					if both.word.CompareAndSwap(old, max(old+1, now)) {
						last = int64(old)
						break
					}
				}
			}
			return last
		}},
		{floorMutex, func(n int) (last int64) {
			for range n {
				under.mu.Lock()
				last += int64(time.Since(start))
				under.mu.Unlock()
			}
			return last
		}},
	}
}

// must returns what was made. No contender fails with the settings of the benchmark.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// source is a generator of firn, or a sequencer of a member.
type source interface {
	Next(ctx context.Context) (firn.ID, error)
	Fill(ctx context.Context, ids []firn.ID) error
}

func firnNext(name string, layout firn.Layout, options ...firn.Option) contender {
	ctx, g := context.Background(), must(firn.NewGenerator(layout, 1, options...))
	return contender{name, func(n int) (last int64) {
		for range n {
			last = int64(must(g.Next(ctx)))
		}
		return last
	}}
}

// firnLocal has each goroutine take from a Local of its own.
func firnLocal(name string, layout firn.Layout, options ...firn.Option) contender {
	ctx, g := context.Background(), must(firn.NewGenerator(layout, 1, options...))
	locals := sync.Pool{New: func() any { return g.Local() }}
	return contender{name, func(n int) (last int64) {
		l := locals.Get().(*firn.Local)
		defer locals.Put(l)
		for range n {
			last = int64(must(l.Next(ctx)))
		}
		return last
	}}
}

// sequencerLocal is firnLocal with a sequencer of a member.
func sequencerLocal(name string, s *member.Sequencer) contender {
	ctx, locals := context.Background(), sync.Pool{New: func() any { return s.Local() }}
	return contender{name, func(n int) (last int64) {
		l := locals.Get().(*member.Local)
		defer locals.Put(l)
		for range n {
			last = int64(must(l.Next(ctx)))
		}
		return last
	}}
}

func trueClock() firn.Option   { return firn.WithClock(firn.NewSteadyClock(0)) }
func coarseClock() firn.Option { return firn.WithClock(firn.NewCoarseClock(firn.NewSteadyClock(0))) }

func sourceNext(name string, s source) contender {
	ctx := context.Background()
	return contender{name, func(n int) (last int64) {
		for range n {
			last = int64(must(s.Next(ctx)))
		}
		return last
	}}
}

func firnFill(name string, layout firn.Layout, batch int) contender {
	return sourceFill(name, must(firn.NewGenerator(layout, 1)), batch)
}

func sourceFill(name string, s source, batch int) contender {
	ctx := context.Background()
	return contender{name, func(n int) (last int64) {
		ids := make([]firn.ID, batch)
		for ; n > 0; n -= batch {
			ids := ids[:min(n, batch)]
			if err := s.Fill(ctx, ids); err != nil {
				panic(err)
			}
			last = int64(ids[len(ids)-1])
		}
		return last
	}}
}

func bwmarrin(name string, nodeBits, stepBits uint8) contender {
	node, step := snowflake.NodeBits, snowflake.StepBits
	defer func() { snowflake.NodeBits, snowflake.StepBits = node, step }()
	snowflake.NodeBits, snowflake.StepBits = nodeBits, stepBits // NewNode reads them
	g := must(snowflake.NewNode(1))
	return contender{name, func(n int) (last int64) {
		for range n {
			last = int64(g.Generate())
		}
		return last
	}}
}

func sony(name string, s sonyflake.Settings) contender {
	s.MachineID = func() (int, error) { return 1, nil }
	s.StartTime = firn.Default.Epoch
	g := must(sonyflake.New(s))
	return contender{name, func(n int) (last int64) {
		for range n {
			last = must(g.NextID())
		}
		return last
	}}
}

func yitter(name string) contender {
	o := idgen.NewIdGeneratorOptions(1)
	o.Method, o.WorkerIdBitLength, o.SeqBitLength = 2, 1, 21
	g := idgen.NewDefaultIdGenerator(o)
	return contender{name, func(n int) (last int64) {
		for range n {
			last = g.NewLong()
		}
		return last
	}}
}

// others make IDs of more than 64 bits.
func others() []contender {
	return []contender{
		{"rs/xid (96 bits)", func(n int) (last int64) {
			for range n {
				last = int64(xid.New()[11])
			}
			return last
		}},
		{"oklog/ulid Make (128 bits)", func(n int) (last int64) {
			for range n {
				last = int64(ulid.Make()[15])
			}
			return last
		}},
		{"google/uuid version 7 (128 bits)", func(n int) (last int64) {
			for range n {
				last = int64(must(uuid.NewV7())[15])
			}
			return last
		}},
	}
}
