// Package bigsort sorts pairs of numbers of which more are there than fit into memory: by the first number, and where
// it is the same by the second. It keeps them as sorted runs in one temporary file, and merges the runs.
package bigsort

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"os"
	"slices"
)

// Pair is what is sorted.
type Pair struct{ First, Second int64 }

// Size is the bytes of a pair, in memory and in the file.
const Size = 16

// few pairs have room of their own size. More have all the room that there may be.
const few = 4096

// compare returns a number below zero when p comes before q, and zero when they are equal.
func compare(p, q Pair) int {
	if p.First == q.First {
		return cmp.Compare(p.Second, q.Second)
	}
	return cmp.Compare(p.First, q.First)
}

// Sorter gets pairs in any order, and has them sorted. It is not safe for concurrent use. Make it with New.
type Sorter struct {
	folder string
	most   int
	pairs  []Pair   // that are not in the file; once the runs are merged, room for some of each
	file   *os.File // nil: all pairs are in memory
	runs   []run
	count  int64
	bytes  []byte // on their way to or from the file
	sorted bool
}

// run is a part of the file in which the pairs are sorted.
type run struct{ from, to int64 } // in bytes

// New returns an empty Sorter that keeps at most so many pairs in memory, 2 or more, and the others in a file in the
// folder. The empty folder is that of the system for temporary files.
func New(folder string, most int) *Sorter { return &Sorter{folder: folder, most: max(most, 2)} }

// Count returns how many pairs were added.
func (s *Sorter) Count() int64 { return s.count }

// Add adds a pair. An error is returned when the temporary file can't be written; the Sorter can then only be closed.
// Add must not be called after All.
func (s *Sorter) Add(p Pair) error {
	if len(s.pairs) == s.most {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if len(s.pairs) == few && cap(s.pairs) < s.most { // no room in between, which would be garbage
		s.pairs = append(make([]Pair, 0, s.most), s.pairs...)
	}
	s.pairs = append(s.pairs, p)
	s.count++
	return nil
}

// spill writes what is in memory to the file, as a run.
func (s *Sorter) spill() error {
	if s.file == nil {
		file, err := os.CreateTemp(s.folder, "firn-sort-")
		if err != nil {
			return err
		}
		_ = os.Remove(file.Name()) // where that is possible, a crash leaves nothing
		s.file = file
	}
	slices.SortFunc(s.pairs, compare)
	next := run{}
	if n := len(s.runs); n > 0 {
		next = run{s.runs[n-1].to, s.runs[n-1].to}
	}
	for all := range slices.Chunk(s.pairs, few) {
		s.bytes = s.bytes[:0]
		for _, p := range all {
			s.bytes = binary.LittleEndian.AppendUint64(s.bytes, uint64(p.First))
			s.bytes = binary.LittleEndian.AppendUint64(s.bytes, uint64(p.Second))
		}
		if _, err := s.file.WriteAt(s.bytes, next.to); err != nil {
			return err
		}
		next.to += int64(len(s.bytes))
	}
	s.runs, s.pairs = append(s.runs, next), s.pairs[:0]
	return nil
}

// All returns the pairs in their order. It may be called again, one after the other. An error, which is the last that
// comes, is returned when the temporary file can't be written or read.
func (s *Sorter) All() iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		if err := s.merge(yield); err != nil {
			yield(Pair{}, err)
		}
	}
}

// Close removes the temporary file.
func (s *Sorter) Close() error {
	s.pairs, s.bytes = nil, nil
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	_ = os.Remove(s.file.Name())
	return err
}

func (s *Sorter) merge(yield func(Pair, error) bool) error {
	if s.file == nil {
		if !s.sorted {
			slices.SortFunc(s.pairs, compare)
		}
		s.sorted = true
		for _, p := range s.pairs {
			if !yield(p, nil) {
				break
			}
		}
		return nil
	}
	if !s.sorted {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.sorted = true
	heads, err := s.heads()
	for err == nil && len(heads) > 0 {
		if !yield(heads[0].pairs[0], nil) {
			return nil
		}
		heads, err = s.advance(heads)
	}
	return err
}

// head is the part of a run that is not merged yet: some pairs in memory, and a rest in the file.
type head struct {
	pairs []Pair // one at least
	room  []Pair // for pairs
	rest  run
}

// heads returns those of all runs, as a heap.
func (s *Sorter) heads() ([]head, error) {
	heads := make([]head, 0, len(s.runs))
	room := s.pairs[:cap(s.pairs)]
	each := min(max(len(room)/len(s.runs), 1), 1<<16)
	for i, r := range s.runs {
		h := head{rest: r}
		if from := i * each; from+each <= len(room) {
			h.room = room[from : from+each]
		} else {
			h.room = make([]Pair, each)
		}
		if err := s.fill(&h); err != nil {
			return nil, err
		}
		heads = append(heads, h)
	}
	for i := len(heads)/2 - 1; i >= 0; i-- {
		sink(heads, i)
	}
	return heads, nil
}

// advance drops the first pair of all.
func (s *Sorter) advance(heads []head) ([]head, error) {
	top := &heads[0]
	if top.pairs = top.pairs[1:]; len(top.pairs) == 0 {
		if top.rest.from == top.rest.to {
			last := len(heads) - 1
			heads[0] = heads[last]
			heads = heads[:last]
		} else if err := s.fill(top); err != nil {
			return nil, err
		}
	}
	sink(heads, 0)
	return heads, nil
}

// fill reads the next pairs of a run that has some.
func (s *Sorter) fill(h *head) error {
	n := min(int64(len(h.room)), (h.rest.to-h.rest.from)/Size)
	s.bytes = slices.Grow(s.bytes[:0], int(n*Size))[:n*Size]
	if _, err := s.file.ReadAt(s.bytes, h.rest.from); err != nil {
		return fmt.Errorf("reading a temporary file: %w", err)
	}
	h.rest.from += n * Size
	h.pairs = h.room[:n]
	for i := range h.pairs {
		b := s.bytes[i*Size:]
		h.pairs[i] = Pair{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))}
	}
	return nil
}

// sink makes a heap of the heads from i on, below which there are heaps.
func sink(heads []head, i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heads); child++ {
			if compare(heads[child].pairs[0], heads[least].pairs[0]) < 0 {
				least = child
			}
		}
		if least == i {
			return
		}
		heads[i], heads[least] = heads[least], heads[i]
		i = least
	}
}
