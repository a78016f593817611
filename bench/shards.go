package main

import (
	"runtime"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/firn-id/firn"
)

// shards makes IDs as github.com/bytentropy/snowflake does, which the module proxy does not
// serve: each processor has a shard with a node ID of its own, and a shard reads the clock for
// every 4096th of its IDs. Only that idea is taken from there.
type shards struct {
	epoch int64 // Unix milliseconds
	all   []shard
}

// shard is on cache lines of its own.
type shard struct {
	_    [128]byte
	next atomic.Uint64 // milliseconds and sequence
	node uint64
	_    [112]byte
}

const sequenceOfShard = 1<<12 - 1 // a mask

func newShards() *shards {
	s := &shards{epoch: firn.Default.Epoch.UnixMilli(), all: make([]shard, runtime.GOMAXPROCS(0))}
	for i := range s.all {
		s.all[i].node = uint64(i)
		s.all[i].next.Store(s.now() - 1) // so that the first ID is of the clock
	}
	return s
}

// now is the first place of the clock's millisecond.
func (s *shards) now() uint64 { return uint64(time.Now().UnixMilli()-s.epoch) << 12 }

func (s *shards) next() int64 {
	shard := &s.all[procPin()]
	place := shard.next.Add(1)
	if place&sequenceOfShard == 0 {
		if now := s.now(); now > place {
			place = now
			shard.next.Store(now) // nobody else has the processor
		}
	}
	procUnpin()
	return int64(place&^sequenceOfShard<<10 | shard.node<<12 | place&sequenceOfShard)
}

func (s *shards) contender(name string) contender {
	return contender{name, func(n int) (last int64) {
		for range n {
			last = s.next()
		}
		return last
	}}
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
