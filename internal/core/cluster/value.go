// Package cluster is the cluster as a value. Every member replays one totally ordered log of commands, and after
// the same entry all hold the same Value: who the members are, who watches whom, who is about to join, and which
// member has which node ID of which sequencer. The order of the log settles contention, so that members need no
// leader and no other agreement.
//
// Everything here is a pure function of its arguments: Apply takes a value and an entry and returns the next
// value; Watches and Duties return what a member must do at a value. The package has no clock, I/O, lock or
// randomness, so that a program can replay a log to any position, and tests can explore every order of events.
//
// The package decides which member should have a node ID. Package fence is what makes IDs unique.
package cluster

import (
	"cmp"
	"iter"
	"slices"
)

// Value is what replaying a log gives. It is immutable, safe for concurrent use and cheap to copy: values share
// what they have in common. The zero Value is that of an empty log.
type Value struct {
	position int64 // of the last entry
	entries  int64 // how many were applied

	// The members form one ring, in which each watches the next. A member that is alone watches itself here, so
	// that joining and leaving need no special cases; callers see that it watches nobody.
	//
	// The candidates are marked: a joiner may get one of them as its target, since it is neither the target of a
	// pending join nor the watcher of such a target.
	peers tree[string, *peer]

	// The pending joins, by joiner. The target of each is a member, and no two share one.
	joins tree[string, Join]

	sequencers tree[string, Sequencer]

	// The last expelled members and joiners, with the positions at which that was, and the other way round. None
	// of them is a member or a joiner.
	expelled   tree[string, int64]
	expulsions tree[int64, string]

	// The entries that were passed over: their IDs in the log, by position.
	skipped tree[int64, string]

	// The policy: the shares by sequencer, and the sequencer that each member serves.
	shares   tree[string, share]
	assigned tree[string, string]
}

// peer is a member in the ring. It is immutable.
type peer struct {
	joined  int64  // the position at which it became a member: the order of Members
	watches string // the next member in the ring
	watcher string // the previous member
	joiner  string // the joiner whose target it is, or empty
}

// Join is a pending join.
type Join struct {
	Target   string // the member that the joiner watches
	Accepted bool   // the joiner watches the target, whose watcher accepts next
}

// Position returns the position of the last applied entry.
func (v Value) Position() int64 { return v.position }

// Entries returns how many entries were applied since the log began, those that checkpoints replaced included.
func (v Value) Entries() int64 { return v.entries }

// Size returns the number of members.
func (v Value) Size() int { return v.peers.len() }

// IsMember reports whether id has joined and not left.
func (v Value) IsMember(id string) bool { return v.peers.has(id) }

// Members returns the members in the order in which they joined.
func (v Value) Members() []string {
	members := make([]string, 0, v.peers.len())
	joined := make(map[string]int64, v.peers.len())
	for id, p := range v.peers.all() {
		members = append(members, id)
		joined[id] = p.joined
	}
	slices.SortFunc(members, func(a, b string) int { return cmp.Compare(joined[a], joined[b]) })
	return members
}

// Joined returns the position at which a member joined, and false when it is no member.
func (v Value) Joined(member string) (int64, bool) {
	p, ok := v.peers.get(member)
	return p.joined, ok
}

// Watched returns which member this one watches in the ring, and false when it watches none: it is alone, or no
// member.
func (v Value) Watched(member string) (string, bool) {
	p, ok := v.peers.get(member)
	if !ok || p.watches == member {
		return "", false
	}
	return p.watches, true
}

// Joins yields the pending joins in the order of the joiners' IDs.
func (v Value) Joins() iter.Seq2[string, Join] { return v.joins.all() }

// Pending returns the pending join of a joiner, and false when there is none.
func (v Value) Pending(joiner string) (Join, bool) { return v.joins.get(joiner) }

// Acceptor returns the member that a joiner's pending join waits for, which is the one that watches its target, and
// false when no join of that joiner is pending.
func (v Value) Acceptor(joiner string) (string, bool) {
	j, ok := v.joins.get(joiner)
	if !ok {
		return "", false
	}
	return v.peer(j.Target).watcher, true
}

// Candidates returns how many members the next joiner may get as its target.
func (v Value) Candidates() int { return v.peers.marked() }

// CountSequencers returns the number of sequencers.
func (v Value) CountSequencers() int { return v.sequencers.len() }

// Sequencers yields the sequencers in the order of their names.
func (v Value) Sequencers() iter.Seq2[string, Sequencer] { return v.sequencers.all() }

// Sequencer returns the sequencer of a name, and false when there is none.
func (v Value) Sequencer(name string) (Sequencer, bool) { return v.sequencers.get(name) }

// Region returns the region of the sequencers, and false when there is none.
func (v Value) Region() (Region, bool) {
	if v.sequencers.len() == 0 {
		return Region{}, false
	}
	_, s := v.sequencers.at(0)
	return s.region, true
}

// Skipped reports whether the entry of this ID was passed over at a position, see the command Skipped.
func (v Value) Skipped(position int64, entry string) bool {
	id, ok := v.skipped.get(position)
	return ok && id == entry
}

// Expelled reports whether a member or joiner of this ID was expelled. The value remembers the last 256.
func (v Value) Expelled(id string) bool { return v.expelled.has(id) }

// Recorder returns the member that writes the checkpoint when one is due at this value, and "" when there is no
// member. The position chooses it, so that members need not agree.
func (v Value) Recorder() string { return v.InTurn(v.position) }

// InTurn returns the member whose turn a number is, and "" when there is no member. Each number is the turn of the next
// member by ID, so that as many in a row as there are members are the turns of all.
func (v Value) InTurn(number int64) string {
	n := int64(v.peers.len())
	if n == 0 {
		return ""
	}
	id, _ := v.peers.at(int((number%n + n) % n))
	return id
}

// maxAsked is how many members an AskClocks asks: few, so that its cost does not grow with the cluster, and enough
// that two of them may be dead and the others still tell which clock is wrong.
const maxAsked = 5

// Asked returns the members that are to write at once what their clocks say, after an AskClocks: five that its
// position chooses, or all if there are fewer, but never the one that asks. The value is that after the AskClocks.
func Asked(v Value, position int64, by string) []string {
	n := v.peers.len()
	asked := make([]string, 0, maxAsked)
	for i := 0; i < n && len(asked) < maxAsked; i++ {
		if id, _ := v.peers.at(int((uint64(position)*maxAsked + uint64(i)) % uint64(n))); id != by {
			asked = append(asked, id)
		}
	}
	return asked
}

// maxCalled is how many members and joiners there may be so that all are called by a PeerGC.
const maxCalled = 16

// Called returns the members and joiners that are to write their pulses at once after a PeerGC of by, never by itself:
// all, if there are at most 16. In a larger cluster it is those on whom the join of by depends, its target and the
// watcher of that; so the cost does not grow with the cluster, and one joiner alone can't put many out. The value is
// that after the PeerGC.
func Called(v Value, by string) (called []string) {
	add := func(id string) {
		if id != by && !slices.Contains(called, id) {
			called = append(called, id)
		}
	}
	if j, ok := v.joins.get(by); ok {
		add(j.Target)
		add(v.peer(j.Target).watcher)
	}
	if v.peers.len()+v.joins.len() > maxCalled {
		return called
	}
	for id := range v.peers.all() {
		add(id)
	}
	for id := range v.joins.all() {
		add(id)
	}
	return called
}

// Watches returns the IDs whose pulses this member or joiner must watch now: a joiner watches its target; a
// member watches the next in the ring, and the joiner whose target that is, to accept its join, or to abort it if
// the joiner dies. So one other member watches each member of a ring of two or more, and one member watches each
// joiner.
func Watches(v Value, id string) []string {
	if j, ok := v.joins.get(id); ok {
		return []string{j.Target}
	}
	p, ok := v.peers.get(id)
	if !ok {
		return nil
	}
	var watches []string
	if p.watches != id {
		watches = append(watches, p.watches)
	}
	if target, _ := v.peers.get(p.watches); target.joiner != "" {
		watches = append(watches, target.joiner)
	}
	return watches
}

// Duties returns the commands that this member, or joiner with a pending join, owes the log now, and nil for
// others: each process decides for itself when to prepare a join.
func Duties(v Value, id string) []Command {
	if j, ok := v.joins.get(id); ok {
		if j.Accepted {
			return nil
		}
		return []Command{NotifyWatchers{Joiner: id}}
	}
	p, ok := v.peers.get(id)
	if !ok {
		return nil
	}
	target, _ := v.peers.get(p.watches)
	if j, ok := v.joins.get(target.joiner); ok && j.Accepted {
		return []Command{AcceptJoin{Joiner: target.joiner}}
	}
	return nil
}
