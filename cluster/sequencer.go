package cluster

import (
	"fmt"
	"iter"
)

// Sequencer is a named ID space at a value: which members want a node ID, and which one each has. It is immutable
// and safe for concurrent use.
type Sequencer struct {
	definition Definition
	allocation Allocation          // the one in force
	created    int64               // the position of its create-sequencer command
	wanting    tree[string, want]  // every attached member
	waiting    tree[int64, string] // the attached without a node ID, in the order of their attach
	paused     tree[int64, string] // the attached that can't have one as they serve another sequencer of the policy
	holding    tree[int64, string] // the attached with a node ID, in the same order
	nodes      tree[int64, string] // the member that has each node ID
	free       freeList
	drained    tree[string, struct{}] // the members that may not attach
}

// want is what an attached member wants and has.
type want struct {
	since int64  // the position of its attach
	nodes *Range // the node IDs that it accepts; nil means all
	node  int64  // the node ID that it has, or noNode
}

const noNode = -1

// accepts reports whether the member accepts a node ID.
func (w want) accepts(node int64) bool {
	return w.nodes == nil || w.nodes.holds(node)
}

// Definition returns what the sequencer was created with.
func (s Sequencer) Definition() Definition { return s.definition }

// Created returns the position of the entry that created it. That position tells the generations of a name apart.
func (s Sequencer) Created() int64 { return s.created }

// Node returns the node ID that a member has, and false when it has none.
func (s Sequencer) Node(member string) (int64, bool) {
	w, ok := s.wanting.get(member)
	return w.node, ok && w.node != noNode
}

func (s Sequencer) holds(member string) bool {
	_, ok := s.Node(member)
	return ok
}

// Attached reports whether a member is attached: it has a node ID or waits for one.
func (s Sequencer) Attached(member string) bool { return s.wanting.has(member) }

// Allocation returns how many of the attached members get a node ID now: that of the definition, or of the last
// Allocate.
func (s Sequencer) Allocation() Allocation { return s.allocation }

// Drained reports whether a member may not attach, see Drain.
func (s Sequencer) Drained(member string) bool { return s.drained.has(member) }

// DrainedMembers yields the members that may not attach, in the order of their IDs.
func (s Sequencer) DrainedMembers() iter.Seq[string] { return keys(s.drained) }

// Nodes yields the node IDs in use, in ascending order, with the members that have them.
func (s Sequencer) Nodes() iter.Seq2[int64, string] { return s.nodes.all() }

// Waiting returns the members that wait for a node ID, in the order of their attach. After them come the attached
// that have to wait until the policy lets them serve this sequencer, see Value.Assigned.
func (s Sequencer) Waiting() []string {
	members := make([]string, 0, s.waiting.len()+s.paused.len())
	for _, line := range []tree[int64, string]{s.waiting, s.paused} {
		for _, member := range line.all() {
			members = append(members, member)
		}
	}
	return members
}

// Lacking returns the members that wait for a node ID of a sequencer because none that they accept is free, rather than
// because of the allocation or the policy, in the order of their attach.
func (v Value) Lacking(sequencer string) []string {
	s, _ := v.sequencers.get(sequencer)
	wanted := min(s.allocation.holders(v.peers.len()), int64(s.wanting.len()-s.paused.len()))
	var members []string
	for _, member := range s.waiting.all() {
		if int64(s.holding.len()+len(members)) >= wanted {
			break
		}
		members = append(members, member)
	}
	return members
}

// Free returns how many node IDs no member has.
func (s Sequencer) Free() int64 { return s.definition.Capacity() - int64(s.nodes.len()) }

func (c CreateSequencer) apply(v *Value) Outcome {
	s, ok := v.sequencers.get(c.Sequencer)
	switch {
	case !ok:
		s = Sequencer{definition: c.Definition, allocation: c.Definition.Allocation.plain(), created: v.position, free: newFreeList(c.Definition.Capacity())}
		v.sequencers = v.sequencers.put(c.Sequencer, s)
		return applied
	case s.definition.Equal(c.Definition):
		return unchanged
	default:
		return refused("there is a sequencer of this name with another definition")
	}
}

func (c DestroySequencer) apply(v *Value) Outcome {
	switch s, ok := v.sequencers.get(c.Sequencer); {
	case !ok:
		return refused(noSequencer)
	case c.Created != 0 && c.Created != s.created:
		return refused(otherGeneration)
	}
	v.sequencers = v.sequencers.without(c.Sequencer)
	if share, ok := v.shares.get(c.Sequencer); ok {
		v.shares = v.shares.without(c.Sequencer)
		v.assign(v.dissolve(c.Sequencer, share)...)
		v.allocateAll()
	}
	return applied
}

func (c Attach) apply(v *Value) Outcome {
	return v.change(c.Sequencer, c.Member, func(s Sequencer, _ want, ok bool) (Sequencer, Outcome) {
		switch {
		case ok:
			return s, unchanged
		case s.drained.has(c.Member):
			return s, refused("the member is drained from this sequencer")
		}
		s = s.attach(c.Member, want{since: v.position, nodes: c.Nodes, node: noNode})
		if !v.serves(c.Member, c.Sequencer) {
			s = s.pause(c.Member)
		}
		return s, applied
	})
}

func (c Detach) apply(v *Value) Outcome {
	return v.change(c.Sequencer, c.Member, func(s Sequencer, _ want, ok bool) (Sequencer, Outcome) {
		if !ok {
			return s, unchanged
		}
		return s.detach(c.Member), applied
	})
}

func (c Decline) apply(v *Value) Outcome {
	return v.change(c.Sequencer, c.Member, func(s Sequencer, w want, ok bool) (Sequencer, Outcome) {
		if !ok || w.node == noNode || w.node != c.Node {
			return s, unchanged
		}
		s = s.giveBack(c.Member)
		return s.take(c.Member), applied
	})
}

func (c Drain) apply(v *Value) Outcome {
	out := v.change(c.Sequencer, c.Member, func(s Sequencer, _ want, ok bool) (Sequencer, Outcome) {
		if s.drained.has(c.Member) {
			return s, unchanged
		}
		if ok {
			s = s.detach(c.Member)
		}
		s.drained = s.drained.put(c.Member, struct{}{})
		return s, applied
	})
	if out == applied && v.shares.has(c.Sequencer) {
		if serves, _ := v.assigned.get(c.Member); serves == c.Sequencer {
			v.unassign(c.Member)
		}
		v.assign(c.Member)
		v.allocateAll()
	}
	return out
}

func (c Undrain) apply(v *Value) Outcome {
	out := v.change(c.Sequencer, c.Member, func(s Sequencer, _ want, _ bool) (Sequencer, Outcome) {
		if !s.drained.has(c.Member) {
			return s, unchanged
		}
		s.drained = s.drained.without(c.Member)
		return s, applied
	})
	if out == applied && v.shares.has(c.Sequencer) {
		v.assign(c.Member)
		v.allocateAll()
	}
	return out
}

func (c Move) apply(v *Value) Outcome {
	return v.change(c.Sequencer, c.To, func(s Sequencer, w want, ok bool) (Sequencer, Outcome) {
		switch {
		case !ok:
			return s, refused("the member is not attached to this sequencer; it has to attach first")
		case c.Node >= s.definition.Capacity():
			return s, refused(fmt.Sprintf("there is no node ID %d; want 0 to %d", c.Node, s.definition.Capacity()-1))
		case w.node == c.Node:
			return s, unchanged
		case !w.accepts(c.Node):
			return s, refused("the member does not accept this node ID")
		case s.paused.has(w.since):
			return s, refused("the policy has the member serve another sequencer")
		}
		if w.node != noNode {
			s = s.giveBack(c.To)
		}
		if holder, held := s.nodes.get(c.Node); held {
			s = s.giveBack(holder)
		}
		s = s.takeWithin(c.To, &Range{c.Node, c.Node})
		if want := s.holders(v.peers.len()); s.holding.len() > want {
			_, last := s.holding.at(want)
			if last == c.To {
				_, last = s.holding.at(want - 1)
			}
			s = s.giveBack(last)
		}
		return s, applied
	})
}

func (c Allocate) apply(v *Value) Outcome {
	allocation := c.Allocation.plain()
	switch s, ok := v.sequencers.get(c.Sequencer); {
	case !ok:
		return refused(noSequencer)
	case c.Created != 0 && c.Created != s.created:
		return refused(otherGeneration)
	case s.allocation == allocation:
		return unchanged
	default:
		s.allocation = allocation
		v.sequencers = v.sequencers.put(c.Sequencer, s.allocate(v.peers.len()))
		return applied
	}
}

const (
	noSequencer     = "there is no sequencer of this name"
	noMember        = "only members have node IDs, and this is not a member"
	otherGeneration = "the sequencer that was meant is gone, and this is another of its name"
)

// change applies a member's command to a sequencer, and allocates the node IDs again.
func (v *Value) change(name, member string, do func(s Sequencer, w want, ok bool) (Sequencer, Outcome)) Outcome {
	s, ok := v.sequencers.get(name)
	if !ok {
		return refused(noSequencer)
	}
	if !v.peers.has(member) {
		return refused(noMember)
	}
	w, ok := s.wanting.get(member)
	s, out := do(s, w, ok)
	if out.Result == Applied {
		v.sequencers = v.sequencers.put(name, s.allocate(v.peers.len()))
	}
	return out
}

// allocateAll allocates the node IDs of every sequencer again, after the members have changed.
func (v *Value) allocateAll() {
	for name, s := range v.sequencers.all() {
		if next := s.allocate(v.peers.len()); next != s {
			v.sequencers = v.sequencers.put(name, next)
		}
	}
}

func (s Sequencer) attach(member string, w want) Sequencer {
	s.wanting = s.wanting.put(member, w)
	s.waiting = s.waiting.put(w.since, member)
	return s
}

// detach removes an attached member from the line, and takes back its node ID, if it has one.
func (s Sequencer) detach(member string) Sequencer {
	w, _ := s.wanting.get(member)
	if w.node != noNode {
		s = s.giveBack(member)
	}
	s.wanting = s.wanting.without(member)
	s.waiting, s.paused = s.waiting.without(w.since), s.paused.without(w.since)
	return s
}

// giveBack puts a member's node ID at the end of the free list; the member waits again, in its old place.
func (s Sequencer) giveBack(member string) Sequencer {
	w, _ := s.wanting.get(member)
	s.nodes = s.nodes.without(w.node)
	s.free = s.free.give(w.node)
	w.node = noNode
	s.wanting = s.wanting.put(member, w)
	s.holding = s.holding.without(w.since)
	s.waiting = s.waiting.put(w.since, member)
	return s
}

// take gives a waiting member the first free node ID that it accepts, if there is one.
func (s Sequencer) take(member string) Sequencer {
	w, _ := s.wanting.get(member)
	return s.takeWithin(member, w.nodes)
}

// takeWithin gives a waiting member the first free node ID of a range, or of all if that is nil, if there is one.
func (s Sequencer) takeWithin(member string, within *Range) Sequencer {
	w, _ := s.wanting.get(member)
	free, node, ok := s.free.take(within)
	if !ok {
		return s
	}
	s.free = free
	s.nodes = s.nodes.put(node, member)
	w.node = node
	s.wanting = s.wanting.put(member, w)
	s.waiting = s.waiting.without(w.since)
	s.holding = s.holding.put(w.since, member)
	return s
}

// holders returns how many members are to hold a node ID.
func (s Sequencer) holders(members int) int {
	return int(min(s.definition.Capacity(), s.allocation.holders(members), int64(s.wanting.len()-s.paused.len())))
}

// allocate makes as many members hold a node ID as the allocation wants, with as few moves as possible: if too
// many do, the last in line give theirs back; if too few do, the first in line that can get one get one.
func (s Sequencer) allocate(members int) Sequencer {
	want := s.holders(members)
	for s.holding.len() > want {
		_, member := s.holding.at(want)
		s = s.giveBack(member)
	}
	if s.holding.len() == want {
		return s
	}
	for _, member := range s.waiting.all() {
		if s.holding.len() == want || s.free.empty() {
			break
		}
		s = s.take(member)
	}
	return s
}
