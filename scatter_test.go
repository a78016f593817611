package firn

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"testing"
)

func TestScatterConstants(t *testing.T) {
	// 2^63 / phi = 2^62 * (sqrt(5) - 1)
	phi := new(big.Float).SetPrec(200).SetInt64(5)
	phi.Sqrt(phi).Sub(phi, big.NewFloat(1)).SetMantExp(phi, 62)
	diff, _ := phi.Sub(phi, new(big.Float).SetUint64(golden)).Float64()
	if math.Abs(diff) > 1 || golden%2 == 0 {
		t.Errorf("golden is %d, which is %v from 2^63/phi, want the nearest odd number", golden, diff)
	}
	modulus := new(big.Int).Lsh(big.NewInt(1), 63)
	if inverse := new(big.Int).ModInverse(new(big.Int).SetUint64(golden), modulus); inverse.Uint64() != goldenInverse {
		t.Errorf("goldenInverse is %d, want %d", goldenInverse, inverse)
	}
}

// TestScatterNeverChanges holds the numbers that keys in somebody's store have.
func TestScatterNeverChanges(t *testing.T) {
	tests := []struct{ id, want ID }{
		{0, 0},
		{1, 2409217963285410756},
		{1541815603606036480, 7013790311146322595},
		{MaxID, 4111756781021975487},
	}
	for _, tt := range tests {
		if got := Scatter(tt.id); got != tt.want {
			t.Errorf("Scatter(%d) = %d, want %d", tt.id, got, tt.want)
		}
	}
}

// A stream is the IDs of a layout in the order in which they are made.
type stream struct {
	name string
	id   func(i int) ID
}

// streams are those of layouts with nodeBits and sequenceBits and a tick of so
// many milliseconds: of one node and of many, at many rates.
func streams(nodeBits, sequenceBits, tick int) []stream {
	compose := func(ms, node, sequence int) ID {
		const start = 10_000_000_000 // four months after the epoch
		return ID((start+int64(ms))/int64(tick))<<(nodeBits+sequenceBits) | ID(node)<<sequenceBits | ID(sequence)
	}
	nodes, sequences := 1<<nodeBits, 1<<sequenceBits
	all := []stream{
		{"saturated, one node", func(i int) ID { return compose(i/sequences*tick, 5, i%sequences) }},
		{"saturated, ten nodes", func(i int) ID { return compose(i/10/sequences*tick, i%10, i/10%sequences) }},
		{"one per tick, ten nodes", func(i int) ID { return compose(i/10*tick, i%10, 0) }},
		{"one per second, all nodes", func(i int) ID { return compose(i/nodes*1000, i%nodes, 0) }},
	}
	for _, ms := range []int{
		tick, 2 * tick, 3 * tick, 20, 100, 370, 374 * tick, 500, 512 * tick, 1000, 10_000,
		60_000, 3600_000,
	} {
		all = append(all, stream{fmt.Sprintf("one per %d ms, one node", ms), func(i int) ID {
			return compose(i*ms, 5, 0)
		}})
	}
	return all
}

// unevenness measures how keys fill the ranges that a store is split into, with
// 100 keys per range on average: the fullest range against the mean, and how many
// standard deviations chi-square lies above what chance gives.
func unevenness(s stream, ranges int, key func(ID) ID) (fullest, deviations float64) {
	const mean = 100
	counts := make([]int, ranges)
	for i := range ranges * mean {
		counts[int(key(s.id(i))>>(63-bits.Len(uint(ranges-1))))]++
	}
	chi2, most := 0.0, 0
	for _, n := range counts {
		chi2 += float64((n-mean)*(n-mean)) / mean
		most = max(most, n)
	}
	free := float64(ranges - 1)
	return float64(most) / mean, (chi2 - free) / math.Sqrt(2*free)
}

func TestScatterSpreadsEveryStreamEvenly(t *testing.T) {
	for _, layout := range [][3]int{{10, 12, 1}, {16, 8, 10}} {
		for _, s := range streams(layout[0], layout[1], layout[2]) {
			for _, ranges := range []int{16, 64, 1024} {
				fullest, deviations := unevenness(s, ranges, Scatter)
				if fullest > 1.6 || deviations > 4 {
					t.Errorf("layout %v, %s: the fullest of %d ranges holds %.2f of its share; %.1f deviations "+
						"from chance",
						layout, s.name, ranges, fullest, deviations)
				}
			}
		}
	}
}

// TestSimplerBijectionsAreUneven proves what the comment of Scatter says of them,
// and that the test above can fail.
func TestSimplerBijectionsAreUneven(t *testing.T) {
	tests := []struct {
		name string
		key  func(ID) ID
		want float64 // what the fullest of 16 ranges holds, in shares, for the worst stream
	}{
		{"none", func(id ID) ID { return id }, 16},
		{"bit reversal", func(id ID) ID { return ID(bits.Reverse64(uint64(id)) >> 1) }, 16},
		{"one multiplication", func(id ID) ID { return id * ID(golden) & MaxID }, 3},
	}
	for _, tt := range tests {
		worst := 0.0
		for _, s := range streams(10, 12, 1) {
			fullest, _ := unevenness(s, 16, tt.key)
			worst = max(worst, fullest)
		}
		if worst < tt.want {
			t.Errorf("%s: the fullest range holds %.2f of its share, want at least %v", tt.name, worst, tt.want)
		}
	}
}

func FuzzScatter(f *testing.F) {
	for _, id := range []ID{0, 1, 1 << 22, 1 << 32, MaxID, -1, -MaxID - 1} {
		f.Add(int64(id))
	}
	f.Fuzz(func(t *testing.T, n int64) {
		id := ID(n)
		s, g := Scatter(id), Gather(id)
		if Gather(s) != id || Scatter(g) != id {
			t.Errorf("Gather(Scatter(%d)) = %d, Scatter(Gather(%d)) = %d", id, Gather(s), id, Scatter(g))
		}
		if id < 0 && (s != id || g != id) || id >= 0 && (s < 0 || g < 0) {
			t.Errorf("Scatter(%d) = %d, Gather(%d) = %d", id, s, id, g)
		}
	})
}

func BenchmarkScatter(b *testing.B) {
	var id ID
	for b.Loop() {
		id = Scatter(id + 1)
	}
}
