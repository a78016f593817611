package load

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn"
)

// newRecords returns records for n connections, which share the memory.
func newRecords(connections int, memory int64) []*record {
	left := new(atomic.Int64)
	left.Store(memory)
	records := make([]*record, connections)
	for i := range records {
		records[i] = newRecord(left)
	}
	return records
}

// Records agree with a map of all IDs, for any IDs in any order.
func TestRecordsFindEveryDuplicate(t *testing.T) {
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 0))
		connections, room := 1+chance.IntN(4), int64(1)<<(4+chance.IntN(12))
		records := newRecords(connections, 1<<30)
		times := map[firn.ID]int64{}
		next := make([]firn.ID, connections)
		var descents, want int64
		last := slices.Repeat([]firn.ID{-1}, connections)
		for range chance.IntN(2000) {
			c := chance.IntN(connections)
			switch chance.IntN(4) {
			case 0: // consecutive
				next[c]++
			case 1:
				next[c] += firn.ID(chance.Int64N(100))
			default:
				next[c] = firn.ID(chance.Int64N(room))
			}
			id := next[c]
			if seed%3 == 0 { // of realistic size
				id += 1 << 58
			}
			if times[id] > 0 {
				want++
			}
			if times[id]++; id <= last[c] {
				descents++
			}
			last[c] = id
			records[c].add([]firn.ID{id})
		}
		more, some := repeated(records)
		if more != want {
			t.Fatalf("seed %d: %d IDs had come before, want %d", seed, more, want)
		}
		if !slices.IsSorted(some) || len(some) != min(len(some), mostShown) || more > 0 && len(some) == 0 {
			t.Errorf("seed %d: %v are named", seed, some)
		}
		for _, id := range some {
			if times[id] < 2 {
				t.Errorf("seed %d: %d is named, and came %d times", seed, id, times[id])
			}
		}
		var got int64
		for _, r := range records {
			got += r.descents
		}
		if got != descents {
			t.Errorf("seed %d: %d descents, want %d", seed, got, descents)
		}
	}
}

// The bytes that one ID takes: a lone one of a node that makes one in each tick, and one of many consecutive
// ones.
func TestRecordsAreSmall(t *testing.T) {
	const memory = 1 << 30
	used := func(add func(r *record)) int64 {
		r := newRecords(1, memory)[0]
		add(r)
		return memory - r.memory.Load()
	}
	const n = 100_000
	lone := used(func(r *record) {
		for i := range n {
			r.add([]firn.ID{firn.ID(i+1)<<22 | 7<<12})
		}
	})
	if lone > 6*n {
		t.Errorf("a lone ID takes %.1f bytes, want at most 6", float64(lone)/n)
	}
	row := used(func(r *record) {
		for i := range n {
			r.add([]firn.ID{firn.ID(i/1000+1)<<22 | firn.ID(i%1000)})
		}
	})
	if row > n/100 {
		t.Errorf("IDs in rows of 1000 take %d bytes for %d", row, n)
	}
	mixed := used(func(r *record) {
		for i := range n { // from nodes whose clocks differ
			r.add([]firn.ID{firn.ID(i+1+1000*(i%5))<<22 | firn.ID(i%5)<<12})
		}
	})
	if mixed > 7*n {
		t.Errorf("an ID of five mixed nodes takes %.1f bytes, want at most 7", float64(mixed)/n)
	}
}

// When the memory is used up, records drop further IDs, and the result says so.
func TestRecordsHaveALimit(t *testing.T) {
	records := newRecords(2, 10_000)
	for i := range 10_000 {
		for _, r := range records {
			r.add([]firn.ID{firn.ID(i+1) << 22})
		}
	}
	kept := records[0].kept + records[1].kept
	if kept < 1000 || kept > 10_000 {
		t.Errorf("%d IDs are remembered in 10000 bytes", kept)
	}
	if more, _ := repeated(records); more < kept/3 {
		t.Errorf("of %d IDs %d are found to have come before", kept, more)
	}
}

// What is common to two sides is what a map of each has in common, for any IDs in any order.
func TestRecordsFindWhatIsCommon(t *testing.T) {
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 1))
		room := int64(1) << (4 + chance.IntN(12))
		sides := [2][]*record{newRecords(1+chance.IntN(3), 1<<30), newRecords(1, 1<<30)}
		var came [2]map[firn.ID]bool
		for side, records := range sides {
			came[side] = map[firn.ID]bool{}
			var id firn.ID
			for range chance.IntN(1000) {
				if id++; chance.IntN(3) == 0 {
					id = firn.ID(chance.Int64N(room))
				}
				came[side][id] = true
				records[chance.IntN(len(records))].add([]firn.ID{id})
			}
		}
		var want []firn.ID
		for id := range came[0] {
			if came[1][id] {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		same, some := common(sides[0], sides[1])
		if same != int64(len(want)) || !slices.Equal(some, want[:min(len(want), mostShown)]) {
			t.Fatalf("seed %d: %d IDs are common, such as %v; want %d: %v", seed, same, some, len(want), want)
		}
	}
}
