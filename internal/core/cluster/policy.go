package cluster

import (
	"cmp"
	"slices"
)

// A policy shares the members out among sequencers, so that each member serves one of them: the largest remainders
// decide how many serve each, and as few members as possible change from one to another when that changes. A member
// that is drained from a sequencer serves another one; one that is drained from all serves none, and does not count.

// share is a sequencer's share of the members, and those that serve it. It is immutable.
type share struct {
	percent int64               // 0: what the others leave
	members tree[int64, string] // by the positions at which they joined
}

// Policy returns the shares of the policy in the order of the sequencers' names, or nil when there is no policy.
// When a sequencer is destroyed, its share is gone, and the others may add up to less than 100 percent: they then
// stand to one another as they did.
func (v Value) Policy() []Share {
	var shares []Share
	for name, s := range v.shares.all() {
		shares = append(shares, Share{name, s.percent})
	}
	return shares
}

// Assigned returns the sequencer of the policy that a member serves, and false when it serves none: there is no
// policy, it is no member, or it is drained from all of them. Only the members that serve a sequencer of the policy
// have its node IDs.
func (v Value) Assigned(member string) (string, bool) { return v.assigned.get(member) }

func (c SetPolicy) apply(v *Value) Outcome {
	shares := slices.Clone(c.Shares)
	slices.SortFunc(shares, func(a, b Share) int { return cmp.Compare(a.Sequencer, b.Sequencer) })
	if slices.Equal(shares, v.Policy()) {
		return unchanged
	}
	former := v.shares
	v.shares = tree[string, share]{}
	for _, s := range shares {
		if why := v.cannotShare(s.Sequencer); why != "" {
			v.shares = former
			return refused(why)
		}
		before, _ := former.get(s.Sequencer)
		v.shares = v.shares.put(s.Sequencer, share{s.Percent, before.members})
	}
	for name, s := range former.all() {
		if !v.shares.has(name) {
			v.dissolve(name, s)
		}
	}
	v.assign(v.Members()...)
	for name := range v.shares.all() {
		if former.has(name) {
			continue
		}
		s, _ := v.sequencers.get(name)
		for member := range s.wanting.all() {
			if !v.serves(member, name) {
				s = s.pause(member)
			}
		}
		v.sequencers = v.sequencers.put(name, s)
	}
	v.allocateAll()
	return applied
}

// cannotShare returns why a policy can't have a share for a sequencer, or nothing.
func (v *Value) cannotShare(name string) string {
	switch s, ok := v.sequencers.get(name); {
	case !ok:
		return noSequencer
	case s.definition.Claimed():
		return noNodeIDs
	default:
		return ""
	}
}

// dissolve ends the service of the members of a share that the policy no longer has. It returns them.
func (v *Value) dissolve(name string, s share) []string {
	var members []string
	for _, member := range s.members.all() {
		v.assigned = v.assigned.without(member)
		members = append(members, member)
	}
	if s, ok := v.sequencers.get(name); ok {
		for _, member := range s.paused.all() {
			s = s.resume(member)
		}
		v.sequencers = v.sequencers.put(name, s)
	}
	return members
}

// serves reports whether a member may have a node ID of a sequencer, as far as the policy is concerned.
func (v *Value) serves(member, name string) bool {
	assigned, _ := v.assigned.get(member)
	return assigned == name || !v.shares.has(name)
}

// assign makes the members that serve no sequencer of the policy serve one, and then has as few change as it takes
// to meet the shares. It does not allocate node IDs.
func (v *Value) assign(members ...string) {
	if v.shares.len() == 0 {
		return
	}
	members = slices.DeleteFunc(members, func(member string) bool {
		return v.assigned.has(member) || !v.canServe(member)
	})
	due := v.due(v.assigned.len() + len(members))
	lacks := func(name string) int { // how many more are to serve it; negative: how many fewer
		s, _ := v.shares.get(name)
		return due[name] - s.members.len()
	}
	for _, member := range members {
		best, most := "", 0
		for name := range v.shares.all() {
			n := lacks(name)
			s, _ := v.sequencers.get(name)
			if _, holds := s.Node(member); n > 0 && holds {
				n += v.peers.len() // it stays where it is
			}
			if !v.isDrained(member, name) && (best == "" || n > most) {
				best, most = name, n
			}
		}
		v.serve(member, best)
	}
	for {
		path := v.path(lacks)
		if path == nil {
			return
		}
		for i := len(path) - 1; i > 0; i-- {
			member, _ := v.movable(path[i-1], path[i])
			v.unassign(member)
			v.serve(member, path[i])
		}
	}
}

// due returns how many of so many members are to serve each sequencer: by the largest remainders. Of equal ones,
// those of the sequencers that have more members now come first, then the order of the names decides.
func (v *Value) due(members int) map[string]int {
	given, whole := int64(0), int64(0) // percent
	for _, s := range v.shares.all() {
		given += s.percent
	}
	type part struct {
		name      string
		remainder int64
		more      bool // it has more members than the whole part of its share
	}
	var parts []part
	due, left := map[string]int{}, members
	for _, s := range v.shares.all() {
		whole += v.weight(s, given)
	}
	for name, s := range v.shares.all() {
		exact := int64(members) * v.weight(s, given)
		due[name] = int(exact / whole)
		left -= due[name]
		parts = append(parts, part{name, exact % whole, s.members.len() > due[name]})
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		switch {
		case a.remainder != b.remainder:
			return cmp.Compare(b.remainder, a.remainder)
		case a.more != b.more && a.more:
			return -1
		case a.more != b.more:
			return 1
		}
		return 0
	})
	for _, p := range parts[:left] {
		due[p.name]++
	}
	return due
}

// weight returns the percent of a share, where the given ones add up to so much.
func (v *Value) weight(s share, given int64) int64 {
	if s.percent == 0 {
		return 100 - given
	}
	return s.percent
}

// path returns a shortest way from a sequencer that too many members serve to one that too few do, by sequencers of
// which one member each can change to the next, or nil when there is none. Without drained members it has two ends
// and nothing between.
func (v *Value) path(lacks func(name string) int) []string {
	from := map[string]string{} // how each was reached
	var reached []string
	for name := range v.shares.all() {
		if lacks(name) < 0 {
			from[name] = name
			reached = append(reached, name)
		}
	}
	for i := 0; i < len(reached); i++ {
		for name := range v.shares.all() {
			if _, ok := from[name]; ok {
				continue
			}
			if _, ok := v.movable(reached[i], name); !ok {
				continue
			}
			from[name] = reached[i]
			reached = append(reached, name)
			if lacks(name) <= 0 {
				continue
			}
			path := []string{name}
			for ; from[name] != name; name = from[name] {
				path = append(path, from[name])
			}
			slices.Reverse(path)
			return path
		}
	}
	return nil
}

// movable returns the member that would change from one sequencer to another: the last to join, of those that are
// not drained there.
func (v *Value) movable(from, to string) (string, bool) {
	s, _ := v.shares.get(from)
	for i := s.members.len() - 1; i >= 0; i-- {
		if _, member := s.members.at(i); !v.isDrained(member, to) {
			return member, true
		}
	}
	return "", false
}

// canServe reports whether there is a sequencer of the policy from which a member is not drained.
func (v *Value) canServe(member string) bool {
	for name := range v.shares.all() {
		if !v.isDrained(member, name) {
			return true
		}
	}
	return false
}

func (v *Value) isDrained(member, name string) bool {
	s, _ := v.sequencers.get(name)
	return s.drained.has(member)
}

// serve assigns a member that serves no sequencer to one.
func (v *Value) serve(member, name string) {
	share, _ := v.shares.get(name)
	share.members = share.members.put(v.peer(member).joined, member)
	v.shares = v.shares.put(name, share)
	v.assigned = v.assigned.put(member, name)
	s, _ := v.sequencers.get(name)
	v.sequencers = v.sequencers.put(name, s.resume(member))
}

// unassign is the opposite of serve. It does nothing when the member serves no sequencer.
func (v *Value) unassign(member string) {
	name, ok := v.assigned.get(member)
	if !ok {
		return
	}
	share, _ := v.shares.get(name)
	share.members = share.members.without(v.peer(member).joined)
	v.shares = v.shares.put(name, share)
	v.assigned = v.assigned.without(member)
	s, _ := v.sequencers.get(name)
	v.sequencers = v.sequencers.put(name, s.pause(member))
}

// pause takes a member's node ID back, and lets it stay attached without one.
func (s Sequencer) pause(member string) Sequencer {
	w := s.want(member)
	if w == nil {
		return s
	}
	s = s.giveBack(w)
	s.waiting = s.waiting.without(w.since)
	s.paused = s.paused.put(w.since, member)
	return s
}

// resume lets a paused member wait for a node ID again, in its old place.
func (s Sequencer) resume(member string) Sequencer {
	if w := s.want(member); w != nil && s.paused.has(w.since) {
		s.paused = s.paused.without(w.since)
		s.waiting = s.waiting.put(w.since, member)
	}
	return s
}
