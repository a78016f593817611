package calls

import (
	"encoding/binary"
	"iter"
	"slices"
	"sync"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
)

// Batch holds IDs in the order in which they were made, in little memory: a run of IDs at equal distances, as a
// generator makes them, takes 24 bytes. The zero value is empty. A Batch is not safe for concurrent use.
type Batch struct {
	definition cluster.Definition // of the sequencer
	runs       []run              // of the IDs before they are scattered
	count      int
	by         string // the member that made them; empty: this node's
	release    func() // returns the answer's share of memory; nil after Keep
}

type run struct {
	first, step firn.ID
	count       int
}

// Len returns the number of IDs.
func (b *Batch) Len() int { return b.count }

// By returns the member that made the IDs, if the node had another one do that, and else nothing.
func (b *Batch) By() string { return b.by }

// Last returns the last ID, and 0 when the batch is empty.
func (b *Batch) Last() firn.ID {
	if len(b.runs) == 0 {
		return 0
	}
	r := b.runs[len(b.runs)-1]
	last := r.first + r.step*firn.ID(r.count-1)
	if b.definition.Scattered {
		last = firn.Scatter(last)
	}
	return last
}

// All returns the IDs in pieces of at most few. Each piece overwrites the one before.
func (b *Batch) All() iter.Seq[[]firn.ID] {
	return func(yield func([]firn.ID) bool) {
		var place [few]firn.ID
		for _, r := range b.runs {
			for id, left := r.first, r.count; left > 0; {
				ids := place[:min(left, len(place))]
				for i := range ids {
					ids[i] = id
					id += r.step
				}
				if b.definition.Scattered {
					scatter(ids)
				}
				if !yield(ids) {
					return
				}
				left -= len(ids)
			}
		}
	}
}

// AppendLittleEndian appends the IDs to a slice, each as 8 bytes, as fixed64 in protobuf.
func (b *Batch) AppendLittleEndian(to []byte) []byte {
	at := len(to)
	to = slices.Grow(to, 8*b.count)[:at+8*b.count]
	if b.definition.Scattered {
		to = to[:at]
		for ids := range b.All() {
			for _, id := range ids {
				to = binary.LittleEndian.AppendUint64(to, uint64(id))
			}
		}
		return to
	}
	for _, r := range b.runs {
		id := uint64(r.first)
		for place := to[at : at+8*r.count]; len(place) >= 8; place = place[8:] {
			binary.LittleEndian.PutUint64(place, id)
			id += uint64(r.step)
		}
		at += 8 * r.count
	}
	return to
}

// Keep keeps the batch's share of memory after the call, for an answer that is delivered later. Call release
// after the delivery, from any goroutine.
func (b *Batch) Keep() (release func()) {
	release, b.release = b.release, nil
	return release
}

func scatter(ids []firn.ID) {
	for i := range ids {
		ids[i] = firn.Scatter(ids[i])
	}
}

// add appends IDs. It may change ids.
func (b *Batch) add(ids []firn.ID) {
	if b.definition.Scattered {
		for i := range ids {
			ids[i] = firn.Gather(ids[i])
		}
	}
	b.count += len(ids)
	for len(ids) > 0 {
		if n := len(b.runs); n == 0 || !b.runs[n-1].takes(ids[0]) {
			b.runs = append(b.runs, run{first: ids[0], count: 1})
			ids = ids[1:]
			continue
		}
		last := &b.runs[len(b.runs)-1]
		next := last.first + last.step*firn.ID(last.count)
		n := 0
		for n < len(ids) && ids[n] == next {
			next += last.step
			n++
		}
		last.count += n
		ids = ids[n:]
	}
}

// takes reports whether an ID continues a run. The second ID of a run sets its step.
func (r *run) takes(id firn.ID) bool {
	if r.count == 1 {
		r.step = id - r.first
	}
	return id == r.first+r.step*firn.ID(r.count)
}

// piece is the most IDs that one Fill makes: a tick of the default layout.
const piece = 4096

// pieces are the buffers for them.
var pieces = sync.Pool{New: func() any { return new([piece]firn.ID) }}
