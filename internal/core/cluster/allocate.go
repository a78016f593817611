package cluster

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

// detach removes an attached member from the line, and takes back its node ID.
func (s Sequencer) detach(w *want) Sequencer {
	s = s.giveBack(w)
	s.wanting = s.wanting.without(w.member)
	s.waiting, s.paused = s.waiting.without(w.since), s.paused.without(w.since)
	return s
}

// giveBack puts the node ID of a member, if it has one, at the end of the free list. The member waits again, in its old
// place.
func (s Sequencer) giveBack(w *want) Sequencer {
	if w.node == noNode {
		return s
	}
	s.nodes, s.free = s.nodes.without(w.node), s.free.give(w.node)
	s.holding, s.waiting = s.holding.without(w.since), s.waiting.put(w.since, w.member)
	return s.note(w, noNode)
}

// take gives a member that has none the first free node ID that it accepts, if there is one.
func (s Sequencer) take(w *want) Sequencer { return s.takeWithin(w, w.nodes) }

// takeWithin is take of a range, or of all if that is nil.
func (s Sequencer) takeWithin(w *want, within *Range) Sequencer {
	free, node, ok := s.free.take(within)
	if !ok {
		return s
	}
	s.free = free
	return s.hold(w, node)
}

// hold makes this the node ID of a member that has none.
func (s Sequencer) hold(w *want, node int64) Sequencer {
	s.nodes = s.nodes.put(node, w.member)
	s.waiting, s.holding = s.waiting.without(w.since), s.holding.put(w.since, w.member)
	return s.note(w, node)
}

func (s Sequencer) note(w *want, node int64) Sequencer {
	next := *w
	next.node = node
	s.wanting = s.wanting.put(w.member, &next)
	return s
}

// holders returns how many members are to hold a node ID.
func (s Sequencer) holders(members int) int {
	return int(min(s.NodeIDs().Size(), holders(s.allocation, members), int64(s.wanting.len()-s.paused.len())))
}

// allocate makes as many members hold a node ID as the allocation wants, with as few moves as possible: if too
// many do, the last in line give theirs back; if too few do, the first in line that can get one get one.
func (s Sequencer) allocate(members int) Sequencer {
	want := s.holders(members)
	for s.holding.len() > want {
		_, last := s.holding.at(want)
		s = s.giveBack(s.want(last))
	}
	for _, member := range s.waiting.all() {
		if s.holding.len() == want || s.free.empty() {
			break
		}
		s = s.take(s.want(member))
	}
	return s
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
