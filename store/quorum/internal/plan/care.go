package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Member is a member of the etcd cluster, as its list of members says.
type Member struct {
	ID      uint64
	Address string
	Learner bool // it has no vote yet
	Started bool // its server has been part of the cluster
	Leader  bool
}

// Situation is what the leader's process knows when it decides. Members must have been read before the machines were
// asked: a machine that says Empty then, and is Started, was emptied. And they must have been read after the former
// action was carried out or has failed for good, also if that was another leader's.
type Situation struct {
	Cluster string   // its identity
	Record  []string // the machines that should be the voters, as the store says; empty: it does not say yet
	Own     []string // the machines of the leader's configuration
	Members []Member // in any order
	// what the machines answered, by address, the leader's own included; who did not answer is absent
	Said     map[string]Machine
	CaughtUp map[uint64]bool // the learners that have almost everything that the leader has, by ID
}

// Action is what the leader's process does next about the members.
type Action struct {
	Kind   ActionKind
	ID     uint64   // of the member, for Remove, Promote and HandOver
	Add    string   // the address, for Add
	Record []string // for SetRecord, in order
	Why    string   // in words, for an operator
}

// ActionKind is the kind of an Action. The zero value is Nothing.
type ActionKind uint8

// The kinds of action.
const (
	Nothing   ActionKind = iota
	SetRecord            // write the record, if it is still as it was
	Add                  // add a machine as a learner
	Remove               // remove a member
	Promote              // give a learner a vote
	HandOver             // make another voter the leader, whose process goes on
)

func (k ActionKind) String() string {
	return [...]string{"nothing", "set record", "add", "remove", "promote", "hand over"}[k]
}

// Care returns what the leader's process does next, so that the record's machines become the voters, one change at a
// time. The voters that live, and have caught up, are a majority before and after each.
func Care(s Situation) Action {
	slices.SortFunc(s.Members, func(a, b Member) int { return strings.Compare(a.Address, b.Address) })
	voters := s.members(func(m Member) bool { return !m.Learner })
	if 2*s.living(voters) <= len(voters) {
		return Action{Why: fmt.Sprintf("%d of %d voters answer: no majority", s.living(voters), len(voters))}
	}
	for _, decide := range []func([]Member) Action{
		s.record, s.emptied, s.unwanted, s.missing, s.replaced, s.caughtUp,
	} {
		if a := decide(voters); a.Kind != Nothing {
			return a
		}
	}
	return Action{}
}

// record sets the record of a new cluster, and has a cluster grow to the leader's list.
func (s *Situation) record([]Member) Action {
	if len(s.Record) == 0 {
		var all []string
		for _, m := range s.Members {
			all = append(all, m.Address)
		}
		return Action{Kind: SetRecord, Record: all, Why: "the cluster is new"}
	}
	more := without(s.Own, s.Record)
	if len(more) == 0 || !includes(s.Own, s.Record) {
		return Action{}
	}
	for _, address := range more {
		if m, ok := s.Said[address]; !ok || m.Disk.State > Promised || !sameMachines(m.List, s.Own) {
			return Action{}
		}
	}
	return Action{
		Kind: SetRecord, Record: slices.Sorted(slices.Values(s.Own)),
		Why: strings.Join(more, ", ") + " joined the list",
	}
}

// emptied removes a member whose machine has lost its data: the rest has its majority without it already. The machine
// then joins as another member. One that was added and has not started yet is empty, too, and stays.
func (s *Situation) emptied([]Member) Action {
	for _, m := range s.Members {
		if m.Started && s.hasLost(m) {
			return Action{Kind: Remove, ID: m.ID, Why: m.Address + " has lost its data"}
		}
	}
	return Action{}
}

// unwanted removes a learner that is not in the record.
func (s *Situation) unwanted([]Member) Action {
	for _, m := range s.Members {
		if m.Learner && !slices.Contains(s.Record, m.Address) {
			return Action{Kind: Remove, ID: m.ID, Why: m.Address + " is not one of the quorum any more"}
		}
	}
	return Action{}
}

// missing adds a machine of the record.
func (s *Situation) missing([]Member) Action {
	for _, address := range s.Record {
		if !slices.ContainsFunc(s.Members, func(m Member) bool { return m.Address == address }) {
			return Action{Kind: Add, Add: address, Why: address + " is one of the quorum, and not a member yet"}
		}
	}
	return Action{}
}

// replaced removes a voter that is not in the record: just before a learner takes its place, or once all of the record
// have a vote. If the rest has no majority without it, the learner gets its vote first. One that does not answer goes
// first, and the leader last.
func (s *Situation) replaced(voters []Member) Action {
	former := s.members(func(m Member) bool { return !m.Learner && !slices.Contains(s.Record, m.Address) })
	ready := s.ready()
	learning := len(voters)-len(former) < len(s.Record)
	if len(former) == 0 || learning && (len(ready) == 0 || len(voters)%2 == 0) {
		return Action{}
	}
	slices.SortStableFunc(former, func(a, b Member) int { return s.worth(a) - s.worth(b) })
	m := former[0]
	switch {
	case !s.canSpare(m, voters) && len(ready) > 0:
		return promote(ready[0])
	case !s.canSpare(m, voters):
		return Action{}
	case !m.Leader:
		return Action{Kind: Remove, ID: m.ID, Why: m.Address + " is not one of the quorum any more"}
	}
	for _, to := range voters { // all others are in the record
		if s.lives(to) && !to.Leader {
			return Action{Kind: HandOver, ID: to.ID, Why: m.Address + " leads, and is not one of the quorum any more"}
		}
	}
	return Action{}
}

// caughtUp gives a learner its vote. Two voters survive no more losses than one, and four no more than three: the
// number of voters becomes even only when another learner can make it odd at once.
func (s *Situation) caughtUp(voters []Member) Action {
	ready := s.ready()
	if len(ready) == 0 || len(voters)%2 == 1 && len(ready) == 1 {
		return Action{}
	}
	return promote(ready[0])
}

func promote(m Member) Action {
	return Action{Kind: Promote, ID: m.ID, Why: m.Address + " has caught up"}
}

// ready returns the learners that can get a vote.
func (s *Situation) ready() []Member {
	return s.members(func(m Member) bool { return m.Learner && s.CaughtUp[m.ID] && s.lives(m) })
}

// canSpare reports whether the voters have a majority that lives without this member.
func (s *Situation) canSpare(m Member, voters []Member) bool {
	rest := slices.DeleteFunc(slices.Clone(voters), func(v Member) bool { return v.ID == m.ID })
	return 2*s.living(rest) > len(rest)
}

// worth is greater for members that are removed later.
func (s *Situation) worth(m Member) int {
	switch {
	case m.Leader:
		return 2
	case s.lives(m):
		return 1
	default:
		return 0
	}
}

func (s *Situation) living(members []Member) (n int) {
	for _, m := range members {
		if s.lives(m) {
			n++
		}
	}
	return n
}

// lives reports whether a member answers and has its log.
func (s *Situation) lives(m Member) bool {
	said, ok := s.Said[m.Address]
	return ok && m.Started && said.Disk == (Disk{Started, s.Cluster})
}

// hasLost reports whether the machine of a member says that it has no log of it.
func (s *Situation) hasLost(m Member) bool {
	said, ok := s.Said[m.Address]
	if !ok {
		return false
	}
	switch said.Disk.State {
	case Empty, Lost, Removed:
		return true
	case Promised:
		return said.Disk.Cluster != s.Cluster // else it has not started yet
	default:
		return false
	}
}

func (s *Situation) members(which func(Member) bool) (some []Member) {
	for _, m := range s.Members {
		if which(m) {
			some = append(some, m)
		}
	}
	return some
}
