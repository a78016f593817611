package calls

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/firn-id/firn"
)

// A batch holds the IDs added to it, whatever lies between them and whatever the size of the pieces.
func TestBatch(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var want []firn.ID
		var b Batch
		next := firn.ID(r.Int64N(1 << 40))
		for range r.IntN(20) {
			var piece []firn.ID
			for range r.IntN(50) {
				if r.IntN(5) == 0 {
					next += firn.ID(r.Int64N(1 << 22))
				}
				next++
				piece = append(piece, next)
			}
			b.add(piece)
			want = append(want, piece...)
		}
		if got := flat(&b); !slices.Equal(got, want) || b.Len() != len(want) {
			t.Fatalf("seed %d: %d IDs are\n%v, want\n%v", seed, b.Len(), got, want)
		}
		for range b.All() {
			break
		}
		bytes := b.AppendLittleEndian([]byte("ab"))
		if len(bytes) != 2+8*len(want) || string(bytes[:2]) != "ab" {
			t.Fatalf("seed %d: %d IDs in %d bytes", seed, len(want), len(bytes))
		}
		for i, id := range want {
			if got := firn.ID(binary.LittleEndian.Uint64(bytes[2+8*i:])); got != id {
				t.Fatalf("seed %d: ID %d is %d in bytes, want %d", seed, i, got, id)
			}
		}
	}
}

// flat returns all IDs of a batch.
func flat(b *Batch) (all []firn.ID) {
	for ids := range b.All() {
		all = append(all, ids...)
	}
	return all
}

// The IDs of the largest call take a few runs, as a generator makes them: tick by tick, with or without the node
// lowest.
func TestBatchIsSmall(t *testing.T) {
	for _, lowest := range []bool{false, true} {
		layout := firn.Default
		layout.NodeLowest = lowest
		var b Batch
		for tick := range int64(MaxCount/4096 + 1) {
			ids := make([]firn.ID, 4096)
			for i := range ids {
				id, err := layout.Compose(firn.Parts{Tick: tick, Node: 5, Sequence: int64(i)})
				if err != nil {
					t.Fatal(err)
				}
				ids[i] = id
			}
			b.add(ids)
		}
		if len(b.runs) > 26 {
			t.Errorf("node lowest: %v: %d IDs take %d runs", lowest, b.Len(), len(b.runs))
		}
	}
}
