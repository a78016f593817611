package cluster

// freeList is the node IDs that nobody has, in the order in which they are handed out: first those
// that never were, in ascending order, then those that were given back, the longest free first. It is
// immutable. Node IDs are many and mostly never used: those are kept as stretches.
type freeList struct {
	fresh  tree[int64, int64] // the stretches of those never used: the first node ID of each, and the last
	freed  tree[int64, int64] // those given back, by when
	givens int64              // how many were ever given back
}

func newFreeList(capacity int64) freeList {
	return freeList{}.withFresh(0, capacity-1)
}

func (l freeList) withFresh(first, last int64) freeList {
	if first <= last {
		l.fresh = l.fresh.put(first, last)
	}
	return l
}

func (l freeList) empty() bool { return l.fresh.len() == 0 && l.freed.len() == 0 }

// give puts a node ID at the end.
func (l freeList) give(node int64) freeList {
	l.freed = l.freed.put(l.givens, node)
	l.givens++
	return l
}

// take returns the first node ID, or the first within a range, and the list without it; false when
// there is none.
func (l freeList) take(within *Range) (rest freeList, node int64, ok bool) {
	if within == nil {
		within = &Range{From: 0, To: never}
	}
	if first, node, ok := l.firstFresh(*within); ok {
		last, _ := l.fresh.get(first)
		l.fresh = l.fresh.without(first)
		return l.withFresh(first, node-1).withFresh(node+1, last), node, true
	}
	for when, node := range l.freed.all() {
		if within.From <= node && node <= within.To {
			l.freed = l.freed.without(when)
			return l, node, true
		}
	}
	return l, 0, false
}

// never is no node ID.
const never = int64(1)<<62 - 1

// firstFresh is the first node ID of the range that was never used, and where its stretch begins.
func (l freeList) firstFresh(r Range) (stretch, node int64, ok bool) {
	if first, last, ok := l.fresh.floor(r.From); ok && r.From <= last && r.From <= r.To {
		return first, r.From, true
	}
	first, _, ok := l.fresh.ceiling(r.From)
	return first, first, ok && first <= r.To
}
