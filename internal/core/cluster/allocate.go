package cluster

import "slices"

// allocateAll allocates the node IDs of every sequencer again, after the members have changed.
func (v *Value) allocateAll() {
	for name, s := range v.sequencers.all() {
		if next := s.allocate(v.peers.len()); next != s {
			v.sequencers = v.sequencers.put(name, next)
		}
	}
}

// want returns what a member wants and has, and nil when it is not attached.
func (s Sequencer) want(member string) *want {
	w, _ := s.wanting.get(member)
	return w
}

func (s Sequencer) attach(w *want) Sequencer {
	s.wanting = s.wanting.put(w.member, w)
	s.waiting = s.waiting.put(w.since, w.member)
	return s
}

// detach removes an attached member from the line, and takes back its node IDs.
func (s Sequencer) detach(w *want) Sequencer {
	if len(w.held) > 0 {
		s = s.giveBack(w, w.held...)
	}
	s.wanting = s.wanting.without(w.member)
	s.waiting, s.paused = s.waiting.without(w.since), s.paused.without(w.since)
	return s
}

// giveBack puts node IDs of a member at the end of the free list. A member that has none left waits again, in its old
// place.
func (s Sequencer) giveBack(w *want, nodes ...int64) Sequencer {
	var left []int64
	for _, node := range w.held {
		if !slices.Contains(nodes, node) {
			left = append(left, node)
		}
	}
	for _, node := range nodes {
		s.nodes = s.nodes.without(node)
		s.free = s.free.give(node)
	}
	return s.hold(w, left)
}

// take gives a member another node ID, if there is one: the first free one that it accepts, or else one of whoever
// has the most, and of these is the last in line, if that is at least two more than the member has.
func (s Sequencer) take(w *want) (Sequencer, bool) {
	if s, ok := s.takeWithin(w, w.nodes); ok {
		return s, true
	}
	for i := s.several.len() - 1; i >= 0; i-- {
		at, member := s.several.at(i)
		if at.has() < len(w.held)+2 {
			break
		}
		other := s.want(member)
		for _, node := range slices.Backward(other.held) {
			if w.accepts(node) {
				return s.giveBack(other, node).takeWithin(w, &Range{From: node, To: node})
			}
		}
	}
	return s, false
}

// takeWithin gives a member the first free node ID of a range, or of all if that is nil, if there is one.
func (s Sequencer) takeWithin(w *want, within *Range) (Sequencer, bool) {
	free, node, ok := s.free.take(within)
	if !ok {
		return s, false
	}
	s.free = free
	s.nodes = s.nodes.put(node, w.member)
	return s.hold(w, append(slices.Clip(w.held), node)), true
}

// hold makes these the node IDs of a member, and puts it where those with as many stand.
func (s Sequencer) hold(w *want, nodes []int64) Sequencer {
	next := *w
	next.held = nodes
	s.wanting = s.wanting.put(w.member, &next)
	had, has := len(w.held) > 0, len(nodes) > 0
	switch {
	case has && !had:
		s.waiting, s.holding = s.waiting.without(w.since), s.holding.put(w.since, w.member)
	case had && !has:
		s.waiting, s.holding = s.waiting.put(w.since, w.member), s.holding.without(w.since)
	}
	if w.most > 1 {
		s.several = s.several.without(w.place())
		if has {
			s.several = s.several.putMarked(next.place(), w.member, len(nodes) < w.most)
		}
	}
	return s
}

// holders returns how many members are to hold a node ID.
func (s Sequencer) holders(members int) int {
	return int(min(s.NodeIDs().Size(), holders(s.allocation, members), int64(s.wanting.len()-s.paused.len())))
}

// allocate makes as many members hold a node ID as the allocation wants, with as few moves as possible: if too
// many do, the last in line give theirs back; if too few do, the first in line that can get one get one. Then those
// that want more get one after the other, and whoever can have a first one meanwhile comes first again.
func (s Sequencer) allocate(members int) Sequencer {
	want := s.holders(members)
	for s.holding.len() > want {
		_, last := s.holding.at(want)
		w := s.want(last)
		s = s.giveBack(w, w.held...)
	}
	for more := true; more; {
		for _, member := range s.waiting.all() {
			if s.holding.len() == want || s.exhausted(0) {
				break
			}
			s, _ = s.take(s.want(member))
		}
		s, more = s.takeMore()
	}
	return s
}

// takeMore gives a node ID to the first of those that want more that can get one, if there is one: of those that have
// the fewest, who attached first.
func (s Sequencer) takeMore() (Sequencer, bool) {
	for i := range s.several.marked() {
		at, member := s.several.atMarked(i)
		if s.exhausted(at.has()) {
			break
		}
		if s, ok := s.take(s.want(member)); ok {
			return s, true
		}
	}
	return s, false
}

// exhausted reports whether nobody with so many node IDs can get another: none is free, and nobody has two more.
func (s Sequencer) exhausted(has int) bool {
	if !s.free.empty() {
		return false
	}
	last := s.several.len() - 1
	if last < 0 {
		return true
	}
	at, _ := s.several.at(last)
	return at.has() < has+2
}

// holders returns how many members of a cluster of this size may hold a node ID.
func holders(a Allocation, members int) int64 {
	switch a.Kind {
	case AllocateCount:
		return a.Count
	case AllocatePercent:
		return (a.Percent*int64(members) + 99) / 100
	default:
		return int64(members)
	}
}
