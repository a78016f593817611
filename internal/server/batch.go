package server

import (
	"iter"
	"sync"

	"github.com/firn-id/firn"
)

// Batch is IDs in ascending order, in little memory: a run of IDs that are equally far apart, as a generator makes them,
// takes 24 bytes. The zero value has none. A Batch is used by one goroutine at a time.
type Batch struct {
	runs    []run
	count   int
	release func() // gives back what the answer takes; nil once somebody keeps it
}

type run struct {
	first, step firn.ID
	count       int
}

// Len is how many IDs there are.
func (b *Batch) Len() int { return b.count }

// All are the IDs, some at a time, and each time in the same place.
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
				if !yield(ids) {
					return
				}
				left -= len(ids)
			}
		}
	}
}

// Keep has the batch's share of what may be on the way kept beyond the call, by an answer that is delivered later.
// Release is to be called once it is, and may be called by any goroutine.
func (b *Batch) Keep() (release func()) {
	release, b.release = b.release, nil
	return release
}

// add appends IDs.
func (b *Batch) add(ids []firn.ID) {
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

// takes tells whether an ID continues a run. The second ID of a run decides how far apart they are.
func (r *run) takes(id firn.ID) bool {
	if r.count == 1 {
		r.step = id - r.first
	}
	return id == r.first+r.step*firn.ID(r.count)
}

// piece is how many IDs are made at once, at most: a tick of the default layout.
const piece = 4096

// pieces are where they are made.
var pieces = sync.Pool{New: func() any { return new([piece]firn.ID) }}
