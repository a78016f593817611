package cluster

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTreeIsASortedMap compares the tree with a map and a sorted slice, and old trees with what they were. A second
// tree is changed in place for a while, until it is kept.
func TestTreeIsASortedMap(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		space := []int{3, 20, 300}[seed%3]
		tr, edited, kept := tree[int, int]{}, tree[int, int]{edit: new(edit)}, tree[int, int]{}
		var keptThen map[int]int
		plain := map[int]int{}
		for step := range 2000 {
			old, oldKeys := tr, keysOf(plain)
			key := random.IntN(space)
			if seed >= 3 && step < 300 {
				key = step // ascending, as positions are
			}
			if random.IntN(5) < 2+step/1000 {
				tr, edited = tr.without(key), edited.without(key)
				delete(plain, key)
			} else {
				tr = tr.putMarked(key, step, step%2 == 0).mark(key, step%3 == 0)
				edited = edited.putMarked(key, step, step%2 == 0).mark(key, step%3 == 0)
				plain[key] = step
			}
			compareTree(t, tr, plain, random.IntN(space+2)-1)
			if random.IntN(10) == 0 {
				compareTree(t, kept, keptThen, random.IntN(space))
				kept, keptThen = edited, maps.Clone(plain)
				edited.edit = new(edit)
				compareTree(t, kept, keptThen, random.IntN(space))
			}
			if step%50 == 0 {
				var keys []int
				for key := range old.all() {
					keys = append(keys, key)
				}
				if !slices.Equal(keys, oldKeys) {
					t.Fatalf("seed %d, step %d: the tree before became %v, was %v", seed, step, keys, oldKeys)
				}
			}
		}
	}
}

func keysOf(m map[int]int) (keys []int) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func compareTree(t *testing.T, tr tree[int, int], plain map[int]int, probe int) {
	t.Helper()
	keys := keysOf(plain)
	if tr.len() != len(keys) || checkBalance(t, tr.root) != len(keys) {
		t.Fatalf("len %d, want %d", tr.len(), len(keys))
	}
	i := 0
	for key, value := range tr.all() {
		if at, v := tr.at(i); key != keys[i] || value != plain[key] || at != key || v != value {
			t.Fatalf("entry %d is %d: %d, want %d: %d", i, key, value, keys[i], plain[keys[i]])
		}
		i++
	}
	i = 0
	for _, key := range keys {
		if plain[key]%3 != 0 {
			continue
		}
		if at, v := tr.atMarked(i); at != key || v != plain[key] {
			t.Fatalf("marked entry %d is %d: %d, want %d: %d", i, at, v, key, plain[key])
		}
		i++
	}
	if tr.marked() != i {
		t.Fatalf("%d are marked, want %d", tr.marked(), i)
	}
	for range tr.all() {
		break // leaving early must not go on
	}
	value, ok := tr.get(probe)
	if want, has := plain[probe]; ok != has || value != want || tr.has(probe) != has {
		t.Fatalf("get %d: %d %v, want %d %v", probe, value, ok, want, has)
	}
	at, exact := slices.BinarySearch(keys, probe)
	if below := tr.index(probe); below != at {
		t.Fatalf("index %d: %d of %v", probe, below, keys)
	}
	above, value, ok := tr.ceiling(probe)
	if ok != (at < len(keys)) || ok && (above != keys[at] || value != plain[above]) {
		t.Fatalf("ceiling %d: %d %d %v of %v", probe, above, value, ok, keys)
	}
	if !exact {
		at--
	}
	below, value, ok := tr.floor(probe)
	if ok != (at >= 0) || ok && (below != keys[at] || value != plain[below]) {
		t.Fatalf("floor %d: %d %d %v of %v", probe, below, value, ok, keys)
	}
}

// checkBalance fails when a side weighs more than three times the other, and returns the size.
func checkBalance(t *testing.T, n *node[int, int]) int {
	t.Helper()
	if n == nil {
		return 0
	}
	l, r := checkBalance(t, n.left), checkBalance(t, n.right)
	if n.len() != l+r+1 || l+1 > 3*(r+1) || r+1 > 3*(l+1) {
		t.Fatalf("size %d with sides of %d and %d", n.size, l, r)
	}
	return n.len()
}

// TestFreeListIsAQueue compares it with a slice.
func TestFreeListIsAQueue(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 2))
		capacity := int64(1) << (2 * seed)
		first, start := random.Int64N(3)*capacity, random.Int64N(capacity)
		list := newFreeList(Range{From: first, To: first + capacity - 1}, first+start)
		var plain, taken []int64
		ever := map[int64]bool{}
		for i := range capacity {
			plain = append(plain, first+(start+i)%capacity)
		}
		for step := range 1000 {
			if len(taken) > 0 && random.IntN(2) == 0 {
				i := random.IntN(len(taken))
				list = list.give(taken[i])
				plain = append(plain, taken[i])
				taken = slices.Delete(taken, i, i+1)
			}
			var within *Range
			if from := first + random.Int64N(capacity); random.IntN(2) == 0 {
				within = &Range{From: from, To: from + random.Int64N(3)}
			}
			at := slices.IndexFunc(plain, func(node int64) bool {
				return within == nil || within.From <= node && node <= within.To
			})
			rest, node, ok := list.take(within)
			if ok != (at >= 0) || ok && node != plain[at] {
				t.Fatalf("seed %d, step %d: took %d %v within %v of %v", seed, step, node, ok, within, plain)
			}
			if _, again, _ := list.take(within); again != node {
				t.Fatalf("seed %d, step %d: took %d, then %d of the same list", seed, step, node, again)
			}
			if list = rest; ok {
				taken = append(taken, node)
				ever[node] = true
				plain = slices.Delete(plain, at, at+1)
			}
			if one := first - 1 + random.Int64N(capacity+2); list.neverTaken(one) != (!ever[one] && first <= one &&
				one < first+capacity) {
				t.Fatalf("seed %d, step %d: %d was never taken is %v, of %v", seed, step, one,
					list.neverTaken(one), ever)
			}
			if list.empty() != (len(plain) == 0) {
				t.Fatalf("seed %d, step %d: empty is %v with %v", seed, step, list.empty(), plain)
			}
		}
	}
}
