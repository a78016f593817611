package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/firn-id/firn"
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

func firnNext(name string, layout firn.Layout) (contender, error) {
	g, err := firn.NewGenerator(layout, 1)
	return generatorNext(name, g), err
}

func generatorNext(name string, g *firn.Generator) contender {
	ctx := context.Background()
	return contender{name, func(n int) (last int64) {
		for range n {
			id, err := g.Next(ctx)
			if err != nil {
				panic(err)
			}
			last = int64(id)
		}
		return last
	}}
}

func firnFill(name string, layout firn.Layout, batch int) (contender, error) {
	g, err := firn.NewGenerator(layout, 1)
	return generatorFill(name, g, batch), err
}

func generatorFill(name string, g *firn.Generator, batch int) contender {
	ctx := context.Background()
	return contender{name, func(n int) (last int64) {
		ids := make([]firn.ID, batch)
		for ; n > 0; n -= batch {
			ids := ids[:min(n, batch)]
			if err := g.Fill(ctx, ids); err != nil {
				panic(err)
			}
			last = int64(ids[len(ids)-1])
		}
		return last
	}}
}

var bwmarrinBits sync.Mutex // the layout of bwmarrin/snowflake is in variables of its package

func bwmarrin(name string, nodeBits, stepBits uint8) (contender, error) {
	bwmarrinBits.Lock()
	defer bwmarrinBits.Unlock()
	node, step := snowflake.NodeBits, snowflake.StepBits
	defer func() { snowflake.NodeBits, snowflake.StepBits = node, step }()
	snowflake.NodeBits, snowflake.StepBits = nodeBits, stepBits
	g, err := snowflake.NewNode(1)
	if err != nil {
		return contender{}, err
	}
	return contender{name, func(n int) (last int64) {
		for range n {
			last = int64(g.Generate())
		}
		return last
	}}, nil
}

func sony(name string, s sonyflake.Settings) (contender, error) {
	s.MachineID = func() (int, error) { return 1, nil }
	s.StartTime = firn.Default.Epoch
	g, err := sonyflake.New(s)
	if err != nil {
		return contender{}, err
	}
	return contender{name, func(n int) (last int64) {
		for range n {
			id, err := g.NextID()
			if err != nil {
				panic(err)
			}
			last = id
		}
		return last
	}}, nil
}

func yitter(name string) (contender, error) {
	o := idgen.NewIdGeneratorOptions(1)
	o.Method, o.WorkerIdBitLength, o.SeqBitLength = 2, 1, 21
	g := idgen.NewDefaultIdGenerator(o)
	return contender{name, func(n int) (last int64) {
		for range n {
			last = g.NewLong()
		}
		return last
	}}, nil
}

// others make IDs of more than 64 bits.
func others() []contender {
	return []contender{
		{"rs/xid (96 bits)", func(n int) (last int64) {
			for range n {
				id := xid.New()
				last = int64(id[11])
			}
			return last
		}},
		{"oklog/ulid Make (128 bits)", func(n int) (last int64) {
			for range n {
				id := ulid.Make()
				last = int64(id[15])
			}
			return last
		}},
		{"google/uuid version 7 (128 bits)", func(n int) (last int64) {
			for range n {
				id, err := uuid.NewV7()
				if err != nil {
					panic(err)
				}
				last = int64(id[15])
			}
			return last
		}},
	}
}

// made collects contenders that are made one by one.
type made struct {
	list []contender
	err  error
}

func (m *made) add(c contender, err error) {
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("a generator can't be made: %w", err)
	}
	m.list = append(m.list, c)
}
