package cluster

import (
	"cmp"
	"fmt"
	"iter"
)

// Sequencer is a named ID space at a value: which members want node IDs, and which ones each has. It is immutable
// and safe for concurrent use.
type Sequencer struct {
	definition Definition
	allocation Allocation // the one in force
	region     Region
	created    int64               // the position of its create-sequencer command
	wanting    tree[string, *want] // every attached member
	waiting    tree[int64, string] // the attached without a node ID, in the order of their attach
	paused     tree[int64, string] // the attached that can't have one as they serve another sequencer of the policy
	holding    tree[int64, string] // the attached with a node ID, in the same order
	nodes      tree[int64, string] // the member that has each node ID
	free       freeList
	reserved   tree[string, *Reservation] // by purpose
	drained    tree[string, struct{}]     // the members that may not attach
}

// want is what an attached member wants and has. It is immutable.
type want struct {
	member string
	since  int64  // the position of its attach
	nodes  *Range // the node IDs that it accepts; nil means all
	node   int64  // the one that it has, or noNode
}

// noNode stands for no node ID.
const noNode = -1

// accepts reports whether the member accepts a node ID.
func (w *want) accepts(node int64) bool {
	return w.nodes == nil || w.nodes.Holds(node)
}

// Definition returns what the sequencer was created with.
func (s Sequencer) Definition() Definition { return s.definition }

// Created returns the position of the entry that created it. That position tells the generations of a name apart.
func (s Sequencer) Created() int64 { return s.created }

// Node returns the node ID that a member has, and false when it has none.
func (s Sequencer) Node(member string) (node int64, ok bool) {
	if w := s.want(member); w != nil && w.node != noNode {
		return w.node, true
	}
	return 0, false
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

// NeverHeld reports whether no member has had a node ID since the sequencer was created. It is false for those of other
// regions, of which this cluster knows nothing.
func (s Sequencer) NeverHeld(node int64) bool { return s.free.neverTaken(node) }

// Waiting returns the attached members without a node ID, in the order of their attach. After them come the attached
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

// Place returns where in Waiting a member stands, from 1, and 0 when it does not.
func (s Sequencer) Place(member string) int {
	w := s.want(member)
	switch {
	case w == nil:
		return 0
	case s.waiting.has(w.since):
		return s.waiting.index(w.since) + 1
	case s.paused.has(w.since):
		return s.waiting.len() + s.paused.index(w.since) + 1
	}
	return 0
}

// Rank returns how many members with a node ID attached before a member that has one; 0 when it has none.
func (s Sequencer) Rank(member string) int {
	if w := s.want(member); w != nil && w.node != noNode {
		return s.holding.index(w.since)
	}
	return 0
}

// Lacking returns the members that wait for a node ID of a sequencer because none that they accept is free, rather than
// because of the allocation or the policy, in the order of their attach.
func (v Value) Lacking(sequencer string) []string {
	s, _ := v.sequencers.get(sequencer)
	wanted := min(holders(s.allocation, v.peers.len()), int64(s.wanting.len()-s.paused.len()))
	var members []string
	for _, member := range s.waiting.all() {
		if int64(s.holding.len()+len(members)) >= wanted {
			break
		}
		members = append(members, member)
	}
	return members
}

// Region returns the region that it was created in.
func (s Sequencer) Region() Region { return s.region }

// NodeIDs returns the node IDs that members of this cluster can get: those of the region.
func (s Sequencer) NodeIDs() Range {
	nodes, _ := s.region.Nodes(s.definition) // it was validated
	return nodes
}

// Taken returns how many node IDs members have.
func (s Sequencer) Taken() int64 { return int64(s.nodes.len()) }

// Free returns how many node IDs no member has, and nothing has reserved.
func (s Sequencer) Free() int64 { return s.NodeIDs().Size() - s.Taken() - s.Reserved() }

func (c CreateSequencer) apply(v *Value) Outcome {
	s, ok := v.sequencers.get(c.Sequencer)
	switch {
	case !ok:
		if region, has := v.Region(); has && region != c.Region {
			return refused(fmt.Sprintf("the sequencers of this cluster are those of another region, %v", region))
		}
		if err := c.Check(*v); err != nil {
			return refused(err.Error())
		}
		s, _ = c.begin(v.position) // it was checked
		v.sequencers = v.sequencers.put(c.Sequencer, s)
		return applied
	case s.definition.Equal(c.Definition):
		return unchanged
	default:
		return refused("there is a sequencer of this name with another definition")
	}
}

// begin returns the sequencer that is created at a position, or why its node IDs can't be reserved.
func (c CreateSequencer) begin(position int64) (Sequencer, error) {
	s := Sequencer{
		definition: c.Definition, region: c.Region, allocation: c.Definition.Allocation.Plain(), created: position,
	}
	s.free = newFreeList(s.NodeIDs(), c.Start)
	for _, r := range c.Reserve {
		var out Outcome
		if s, out = s.reserve(r, position); out != applied {
			return s, &ReserveError{cmp.Or(out.Why, fmt.Sprintf("two reservations are for %q", r.For))}
		}
	}
	return s, nil
}

func (c DestroySequencer) apply(v *Value) Outcome {
	switch s, ok := v.sequencers.get(c.Sequencer); {
	case !ok:
		return refused(noSequencer)
	case c.Created != 0 && c.Created != s.created:
		return refused(otherGeneration)
	case s.reserved.len() > 0:
		_, r := s.reserved.at(0)
		return refused(fmt.Sprintf("%d of its node IDs are reserved for %q; release them first", len(r.Nodes), r.For))
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
	return v.change(c.Sequencer, c.Member, func(s Sequencer, w *want) (Sequencer, Outcome) {
		switch {
		case w != nil:
			return s, unchanged
		case s.drained.has(c.Member):
			return s, refused("the member is drained from this sequencer")
		}
		s = s.attach(&want{member: c.Member, since: v.position, nodes: c.Nodes, node: noNode})
		if !v.serves(c.Member, c.Sequencer) {
			s = s.pause(c.Member)
		}
		return s, applied
	})
}

func (c Detach) apply(v *Value) Outcome {
	return v.change(c.Sequencer, c.Member, func(s Sequencer, w *want) (Sequencer, Outcome) {
		if w == nil {
			return s, unchanged
		}
		return s.detach(w), applied
	})
}

func (c Decline) apply(v *Value) Outcome {
	return v.change(c.Sequencer, c.Member, func(s Sequencer, w *want) (Sequencer, Outcome) {
		if w == nil || w.node != c.Node {
			return s, unchanged
		}
		s = s.giveBack(w)
		return s.take(s.want(c.Member)), applied
	})
}

func (c Drain) apply(v *Value) Outcome {
	out := v.change(c.Sequencer, c.Member, func(s Sequencer, w *want) (Sequencer, Outcome) {
		if s.drained.has(c.Member) {
			return s, unchanged
		}
		if w != nil {
			s = s.detach(w)
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
	out := v.change(c.Sequencer, c.Member, func(s Sequencer, _ *want) (Sequencer, Outcome) {
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
	return v.change(c.Sequencer, c.To, func(s Sequencer, w *want) (Sequencer, Outcome) {
		switch {
		case w == nil:
			return s, refused("the member is not attached to this sequencer; it has to attach first")
		case !s.NodeIDs().Holds(c.Node):
			nodes := s.NodeIDs()
			return s, refused(fmt.Sprintf("there is no node ID %d; want %d to %d", c.Node, nodes.From, nodes.To))
		case w.node == c.Node:
			return s, unchanged
		case s.ReservedFor(c.Node) != nil:
			return s, refused(fmt.Sprintf("the node ID %d is reserved for %q", c.Node, s.ReservedFor(c.Node).For))
		case !w.accepts(c.Node):
			return s, refused("the member does not accept this node ID")
		case s.paused.has(w.since):
			return s, refused("the policy has the member serve another sequencer")
		}
		s = s.giveBack(w)
		if holder, held := s.nodes.get(c.Node); held {
			s = s.giveBack(s.want(holder))
		}
		s = s.takeWithin(s.want(c.To), &Range{From: c.Node, To: c.Node})
		if want := s.holders(v.peers.len()); s.holding.len() > want {
			_, last := s.holding.at(want)
			if last == c.To {
				_, last = s.holding.at(want - 1)
			}
			s = s.giveBack(s.want(last))
		}
		return s, applied
	})
}

func (c Allocate) apply(v *Value) Outcome {
	allocation := c.Allocation.Plain()
	switch s, ok := v.sequencers.get(c.Sequencer); {
	case !ok:
		return refused(noSequencer)
	case s.definition.Claimed():
		return refused(noNodeIDs)
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
	noNodeIDs       = "the sequencer has no node IDs: it is a counter, or in strict order"
	otherGeneration = "the sequencer that was meant is gone, and this is another of its name"
)

// change applies a member's command to a sequencer, and allocates the node IDs again. What the member wants is nil when
// it is not attached.
func (v *Value) change(name, member string, do func(s Sequencer, w *want) (Sequencer, Outcome)) Outcome {
	s, ok := v.sequencers.get(name)
	if !ok {
		return refused(noSequencer)
	}
	if s.definition.Claimed() {
		return refused(noNodeIDs)
	}
	if !v.peers.has(member) {
		return refused(noMember)
	}
	s, out := do(s, s.want(member))
	if out.Result == Applied {
		v.sequencers = v.sequencers.put(name, s.allocate(v.peers.len()))
	}
	return out
}
