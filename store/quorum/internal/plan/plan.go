// Package plan decides what the machines of a quorum do: Decide, what one does before its etcd server runs; Care, what
// the leader does next about who the members are. There must never be two clusters, and none must forget what a
// majority of it has kept.
//
// Both are pure functions of what the machines say of themselves, without clock, disk or network, so that tests can
// explore every order of crashes, emptied disks and late messages. Package quorum asks, and does what they return. When
// that fails, or nothing came of it, it asks and decides again.
package plan

import (
	"fmt"
	"slices"
)

// State is what the disk of a machine says. The zero value is Empty.
type State uint8

// The states of a disk.
const (
	Empty    State = iota // it keeps nothing
	Promised              // the machine agrees that a cluster is formed
	Formed                // all machines have agreed, and the etcd server has not started yet: there is no log
	Started               // there is a log
	Lost                  // the machine was part of the cluster, and its log is gone, or was set back
	Removed               // the machine was part of the cluster, and is not any more
	Alone                 // there is the log of a quorum of one, or a restored one: a cluster without an identity
)

var states = [...]string{"empty", "promised", "formed", "started", "lost", "removed", "alone"}

func (s State) String() string { return states[s] }

// MarshalText returns the name of the state.
func (s State) MarshalText() ([]byte, error) { return []byte(states[s]), nil }

// UnmarshalText reads the name of a state. An error is returned when there is no such state.
func (s *State) UnmarshalText(text []byte) error {
	i := slices.Index(states[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown state %q of a disk: want one of %q", text, states)
	}
	*s = State(i)
	return nil
}

// Disk is what a machine keeps of this across crashes. The zero value is an empty disk.
type Disk struct {
	State   State  `json:"state"`
	Cluster string `json:"cluster,omitempty"` // identity of the cluster; "" if Empty or Alone
}

// hasData reports whether the disk holds a cluster's data, or may begin to at any time.
func (d Disk) hasData() bool { return d.State == Formed || d.State == Started || d.State == Alone }

// Machine is what a machine says of itself when it is asked.
type Machine struct {
	Address string   `json:"address"`
	Life    string   `json:"life"` // random, chosen when its process starts
	Disk    Disk     `json:"disk"`
	List    []string `json:"list"` // the machines of its configuration, in any order
	// Index is that of the last entry in its log, committed or not, before its server runs. While that runs, it is of
	// one that is committed and on its disk, which it can't be without later.
	Index uint64 `json:"index"`
	// Member is the ID of the etcd member whose log is on its disk. Zero: there is no log.
	Member uint64 `json:"member,omitempty"`
	// Saw has the greatest index that it knows each other machine to have had on disk in the cluster of Disk.
	Saw map[string]uint64 `json:"saw,omitempty"`
	// Running says that its server is in a cluster that has a majority now.
	Running bool `json:"running,omitempty"`
	// Record has the machines that should be the voters, as the store says. It is known only while Running.
	Record []string `json:"record,omitempty"`
	// Members has the members of its cluster as its server knows them, and is empty if that does not run.
	Members []Member `json:"members,omitempty"`
}

// sameMachines reports whether two lists have the same machines, in any order.
func sameMachines(a, b []string) bool { return len(a) == len(b) && includes(a, b) }

// includes reports whether all of the machines in part are in list.
func includes(list, part []string) bool {
	return !slices.ContainsFunc(part, func(m string) bool { return !slices.Contains(list, m) })
}

// without returns the machines of list that are not in other, in order.
func without(list, other []string) []string {
	var rest []string
	for _, m := range list {
		if !slices.Contains(other, m) {
			rest = append(rest, m)
		}
	}
	slices.Sort(rest)
	return rest
}
