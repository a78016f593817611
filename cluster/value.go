// Package cluster is the cluster as a value. One totally ordered log of commands is replayed by every
// member, and after the same entry all hold the same Value: who the members are, who watches whom,
// who is about to join, and which member has which node ID of which sequencer. Contention is settled
// by the order of the log, so that there is no leader and nothing to agree on.
//
// Everything here is a pure function of its arguments: Apply takes a value and an entry and returns
// the next value; Watches and Duties say what a member has to do at a value. There is no clock, no I/O,
// no lock and no randomness, so that a history can be replayed, looked at in any position, and explored by
// tests in every order of events.
//
// It decides who should have a node ID. It is not what makes IDs unique: that is package fence.
package cluster

import (
	"cmp"
	"iter"
	"slices"
)

// Value is what a log has led to. It is immutable, and copied in no time: values share what they have in
// common. The zero Value is that of an empty log. It is safe for concurrent use.
type Value struct {
	position int64 // of the last entry
	entries  int64 // how many have been applied

	// The members form one ring, in which each watches the next. A member that is alone watches itself here,
	// so that joining and leaving need no special cases; to the outside it watches nobody.
	//
	// Marked are the candidates: those that a joiner may get as its target, since they are neither the
	// target of a pending join nor the watcher of such a target.
	peers tree[string, *peer]

	// The pending joins, by joiner. The target of each is a member, and no two have the same.
	joins tree[string, Join]

	sequencers tree[string, Sequencer]
}

// peer is a member in the ring. It is never changed.
type peer struct {
	joined  int64  // the position at which it became a member: they are listed in this order
	watches string // the next in the ring
	watcher string // the one before
	joiner  string // whose target it is, or empty
}

// Join is a pending join.
type Join struct {
	Target   string // the member that the joiner is to watch
	Accepted bool   // the joiner watches it already: its watcher is to accept
}

// Position is that of the last entry applied.
func (v Value) Position() int64 { return v.position }

// Entries is how many entries have been applied since the log began, checkpoints included.
func (v Value) Entries() int64 { return v.entries }

// Size is the number of members.
func (v Value) Size() int { return v.peers.len() }

// IsMember tells whether it has joined.
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

// Joined returns the position at which a member joined, and false when it is none.
func (v Value) Joined(member string) (int64, bool) {
	p, ok := v.peers.get(member)
	return p.joined, ok
}

// Watched returns whom a member watches in the ring, and false when it watches nobody: it is alone, or
// no member.
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

// Candidates is how many of the joins prepared next would be given a target.
func (v Value) Candidates() int { return v.peers.marked() }

// CountSequencers is how many sequencers there are.
func (v Value) CountSequencers() int { return v.sequencers.len() }

// Sequencers yields the sequencers in the order of their names.
func (v Value) Sequencers() iter.Seq2[string, Sequencer] { return v.sequencers.all() }

// Sequencer returns the sequencer of a name, and false when there is none.
func (v Value) Sequencer(name string) (Sequencer, bool) { return v.sequencers.get(name) }

// Recorder is the member that is to write the checkpoint when one is due at this value: the position
// chooses it, so that nobody has to agree. Empty when there is no member.
func (v Value) Recorder() string {
	if v.peers.len() == 0 {
		return ""
	}
	id, _ := v.peers.at(int(v.position % int64(v.peers.len())))
	return id
}

// Watches returns the IDs whose pulses this member or joiner must be watching now: whom it watches in
// the ring; while its own join is pending, its target; and the joiner whose target it watches, which
// it is to accept, or to abort should it die. So every member of a ring of two or more is watched by one
// other, and every joiner by somebody.
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

// Duties returns the commands that this member, or joiner whose join is pending, owes the log now. Others owe it nothing:
// when to prepare a join is up to them.
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
