package load

import (
	"container/heap"
	"encoding/binary"
	"sync/atomic"

	"github.com/firn-id/firn"
)

// record remembers which IDs came over one connection, in little memory: IDs mostly ascend, and those of one
// answer are mostly consecutive. A record has lanes of ascending runs of consecutive IDs, and a run takes a few
// bytes: its distance from the run before, and its length. A lone ID takes 2 to 6 bytes, a thousand in a row
// hardly more. It is not safe for concurrent use.
type record struct {
	memory   *atomic.Int64 // bytes left for all records
	lanes    [lanes]*lane  // growing; nil: unused
	full     []*lane
	kept     int64   // number of IDs remembered
	last     firn.ID // the last ID on this connection; -1: none yet
	nodes    *nodes  // of the IDs, remembered or not; nil: not wanted
	descents int64   // how often an ID was not above the one before
}

const (
	// lanes is how many ascending streams may mix on a connection: one for each node behind a balancer.
	lanes = 8

	// block is the most bytes by which a lane grows.
	block = 64 << 10

	// laneSize is about how many bytes a lane itself takes.
	laneSize = 128
)

// lane is a stream of runs that ascend.
type lane struct {
	blocks   [][]byte
	end      int64 // end of the last run in blocks
	from, to int64 // the run that grows
}

func newRecord(memory *atomic.Int64) *record { return &record{memory: memory, last: -1} }

func (r *record) add(ids []firn.ID) {
	for _, id := range ids {
		if id <= r.last {
			r.descents++
		}
		r.last = id
		_ = r.nodes.add(id) // the server's IDs are those of its layout
		r.keep(int64(id))
	}
}

// keep adds an ID to the lane whose end is closest below it.
func (r *record) keep(id int64) {
	best, free := -1, -1
	for i, l := range r.lanes {
		switch {
		case l == nil:
			free = i
		case id == l.to+1:
			l.to++
			r.kept++
			return
		case id > l.to && (best < 0 || l.to > r.lanes[best].to):
			best = i
		}
	}
	if r.memory.Load() <= 0 {
		return
	}
	switch {
	case best >= 0:
		r.memory.Add(-int64(r.lanes[best].begin(id)))
	case free < 0: // none fits: retire the first lane
		r.full = append(r.full, r.lanes[0])
		free = 0
		fallthrough
	default:
		r.memory.Add(-laneSize)
		r.lanes[free] = &lane{end: -1, from: id, to: id}
	}
	r.kept++
}

// begin begins the next run, and returns how many bytes the one before takes.
func (l *lane) begin(id int64) int {
	var run [2 * binary.MaxVarintLen64]byte
	n := binary.PutUvarint(run[:], uint64(l.from-l.end))
	n += binary.PutUvarint(run[n:], uint64(l.to-l.from))
	last := len(l.blocks) - 1
	if last < 0 || len(l.blocks[last])+n > block {
		l.blocks = append(l.blocks, nil)
		last++
	}
	l.blocks[last] = append(l.blocks[last], run[:n]...)
	l.end, l.from, l.to = l.to, id, id
	return n
}

// runs iterates over the runs of a lane.
type runs struct {
	lane     *lane
	side     int    // whose run this is
	left     []byte // unread bytes of the block
	next     int    // block
	done     bool   // the current run is the one that grows
	from, to int64  // the current run
}

// step goes to the next run; false: no more.
func (r *runs) step() bool {
	for len(r.left) == 0 {
		if r.next == len(r.lane.blocks) {
			if r.done {
				return false
			}
			r.done, r.from, r.to = true, r.lane.from, r.lane.to
			return true
		}
		r.left = r.lane.blocks[r.next]
		r.next++
	}
	gap, n := binary.Uvarint(r.left)
	length, m := binary.Uvarint(r.left[n:])
	r.left = r.left[n+m:]
	r.from = r.to + int64(gap)
	r.to = r.from + int64(length)
	return true
}

// heads is a heap of the runs of all lanes, the one that begins lowest on top.
type heads []*runs

// merge returns the runs of several sides, each of which has several records.
func merge(sides ...[]*record) (h heads) {
	for side, records := range sides {
		for _, r := range records {
			for _, l := range append(r.lanes[:], r.full...) {
				if l == nil {
					continue
				}
				one := &runs{lane: l, side: side, to: -1}
				one.step()
				h = append(h, one)
			}
		}
	}
	heap.Init(&h)
	return h
}

// next goes to the next run of the top.
func (h *heads) next() {
	if (*h)[0].step() {
		heap.Fix(h, 0)
	} else {
		heap.Pop(h)
	}
}

func (h heads) Len() int           { return len(h) }
func (h heads) Less(i, j int) bool { return h[i].from < h[j].from }
func (h heads) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)        { *h = append(*h, x.(*runs)) }
func (h *heads) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// mostShown is the most duplicates in a result.
const mostShown = 5

// repeated merges all records, and returns how many IDs came again, and some of them.
func repeated(records []*record) (more int64, some []firn.ID) {
	h := merge(records)
	upTo := int64(-1) // all IDs from the top's first up to here came
	for len(h) > 0 {
		top := h[0]
		for id := top.from; id <= min(top.to, upTo); id++ {
			if len(some) == mostShown {
				break
			}
			if len(some) == 0 || some[len(some)-1] < firn.ID(id) {
				some = append(some, firn.ID(id))
			}
		}
		more += max(0, min(top.to, upTo)-top.from+1)
		upTo = max(upTo, top.to)
		h.next()
	}
	return more, some
}

// common merges the records of two sides, and returns how many IDs came on both, and the smallest of them.
func common(ours, theirs []*record) (same int64, some []firn.ID) {
	h := merge(ours, theirs)
	upTo := [2]int64{-1, -1} // of a side: its IDs from the top's first up to here came
	for len(h) > 0 {
		top := h[0]
		from := max(top.from, upTo[top.side]+1) // without what came before on the same side
		to := min(top.to, upTo[1-top.side])
		for id := from; id <= to && len(some) < mostShown; id++ {
			some = append(some, firn.ID(id))
		}
		same += max(0, to-from+1)
		upTo[top.side] = max(upTo[top.side], top.to)
		h.next()
	}
	return same, some
}
