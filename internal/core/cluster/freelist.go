package cluster

// freeList is the node IDs that no member has, in the order in which take returns them: first those that were
// never used, in ascending order from start on and then from the lowest, then those that were given back, the longest
// free first. It is immutable. Most node IDs are never used: the list stores these as stretches.
type freeList struct {
	start  int64              // where the first one is taken
	fresh  tree[int64, int64] // never used: the first node ID of each stretch, and its last
	freed  tree[int64, int64] // given back: the count of givens before, and the node ID
	givens int64              // how many times a node ID was given back
}

func newFreeList(nodes Range, start int64) freeList {
	return freeList{start: max(start, nodes.From)}.withFresh(nodes.From, nodes.To)
}

func (l freeList) withFresh(first, last int64) freeList {
	if first <= last {
		l.fresh = l.fresh.put(first, last)
	}
	return l
}

func (l freeList) empty() bool { return l.fresh.len() == 0 && l.freed.len() == 0 }

// neverTaken reports whether a node ID of the list was never taken from it.
func (l freeList) neverTaken(node int64) bool {
	_, last, ok := l.fresh.floor(node)
	return ok && node <= last
}

// give adds a node ID at the end.
func (l freeList) give(node int64) freeList {
	l.freed = l.freed.put(l.givens, node)
	l.givens++
	return l
}

// take returns the first node ID within a range, or of all if that is nil, and the list without it; false when
// there is none.
func (l freeList) take(within *Range) (rest freeList, node int64, ok bool) {
	if within == nil {
		within = &Range{From: 0, To: never}
	}
	first, node, ok := l.firstFresh(Range{From: max(within.From, l.start), To: within.To})
	if !ok {
		first, node, ok = l.firstFresh(*within)
	}
	if ok {
		last, _ := l.fresh.get(first)
		l.fresh = l.fresh.without(first)
		return l.withFresh(first, node-1).withFresh(node+1, last), node, true
	}
	for when, node := range l.freed.all() {
		if within.Holds(node) {
			l.freed = l.freed.without(when)
			return l, node, true
		}
	}
	return l, 0, false
}

// never exceeds every node ID.
const never = int64(1)<<62 - 1

// firstFresh returns the first node ID of the range that was never used, and the first of its stretch.
func (l freeList) firstFresh(r Range) (stretch, node int64, ok bool) {
	if first, last, ok := l.fresh.floor(r.From); ok && r.From <= last && r.From <= r.To {
		return first, r.From, true
	}
	first, _, ok := l.fresh.ceiling(r.From)
	return first, first, ok && first <= r.To
}
