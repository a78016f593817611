package load

import (
	"maps"
	"sync"

	"github.com/firn-id/firn"
)

// Checker checks a stream of IDs of any length: whether one came before, and whether those of a node ascend. Its
// memory is bounded: it compares an ID with at least the latest million before it, and with up to a hundred times
// as many if many are consecutive. It is safe for concurrent use. Make it with NewChecker.
type Checker struct {
	layout firn.Layout
	most   int // most pages in a generation

	mu         sync.Mutex        // guards what follows
	young, old map[uint64]uint64 // a bit for each of the 64 IDs of a page that has come
	greatest   map[int64]firn.ID // by node ID, of the calls that have ended
	ids        int64
	duplicates int64
	disorder   int64
}

// generation is how many pages of 64 IDs each of the two generations holds. The old one is empty or full.
const generation = 1 << 20

// NewChecker returns a checker of IDs of a layout.
func NewChecker(layout firn.Layout) *Checker {
	return &Checker{layout: layout, most: generation, young: map[uint64]uint64{}, greatest: map[int64]firn.ID{}}
}

// Call is a call for IDs in progress.
type Call struct {
	checker *Checker
	before  map[int64]firn.ID // the greatest ID of each node when it began
}

// Begin begins a call. Call it before asking for the IDs.
func (c *Checker) Begin() Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := make(map[int64]firn.ID, len(c.greatest))
	maps.Copy(before, c.greatest)
	return Call{c, before}
}

// End takes the IDs of the answer.
func (call Call) End(ids []firn.ID) {
	c := call.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		c.ids++
		if c.seen(id) {
			c.duplicates++
		}
		node, err := c.layout.NodeID(id)
		if err != nil {
			c.disorder++ // not an ID of the layout
			continue
		}
		if last, ok := call.before[node]; ok && id <= last {
			c.disorder++ // not above one that the node made before
		}
		c.greatest[node] = max(c.greatest[node], id)
	}
}

// seen records an ID, and reports whether it came before.
func (c *Checker) seen(id firn.ID) bool {
	page, bit := uint64(id)>>6, uint64(1)<<(uint64(id)&63)
	before := (c.young[page]|c.old[page])&bit != 0
	if len(c.young) >= c.most {
		if _, ok := c.young[page]; !ok {
			c.old, c.young = c.young, make(map[uint64]uint64)
		}
	}
	c.young[page] |= bit
	return before
}

// Counts returns how many IDs came, how many of them came again, and how many were not above one of the same node
// that came before their call began.
func (c *Checker) Counts() (ids, duplicates, disorder int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids, c.duplicates, c.disorder
}
