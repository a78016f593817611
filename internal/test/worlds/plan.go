package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store/memstore"
)

// Plan is all that happens in a world: a plain value, which is written as JSON to repeat it. What it leaves open is the
// order in which goroutines run that have something to do at the same instant.
type Plan struct {
	Seed        uint64 // of the faults of the store
	Machines    []Machine
	Definitions []cluster.Definition
	Checkpoint  int64 // entries between checkpoints
	Faults      Faults
	Right       bool // no clock ever differs from another, so that all know when something is over
	Loses       bool // the store loses writes
	Journals    bool // members keep journals; those without have a shorter way to an ID
	Events      []Event
	Calm        time.Duration // when all trouble ends
}

// Machine is what a process runs on, and with which options.
type Machine struct {
	Name        string
	TTL, Window time.Duration
	NodeIDs     int
	Ahead       time.Duration // its clock, from the beginning to the end
	Wish        *cluster.Range
	Order       peer.Order
	Shared      bool           // it waits before it founds a cluster
	Region      cluster.Region `json:",omitzero"` // each has a store and a cluster of its own
}

// Faults are what goes wrong with calls of the store while they are on.
type Faults struct {
	OneIn    uint64 // one call in so many; 0: none
	Longest  time.Duration
	Outcomes []memstore.Outcome
}

// of returns what goes wrong with the call of a machine that has this number. It depends on nothing else.
func (f Faults) of(seed uint64, machine string, number uint64) memstore.Fault {
	if f.OneIn == 0 || len(f.Outcomes) == 0 {
		return memstore.Fault{}
	}
	h := seed
	for _, c := range []byte(machine) {
		h = mix(h + uint64(c))
	}
	h = mix(h + number)
	if h%f.OneIn != 0 {
		return memstore.Fault{}
	}
	h = mix(h)
	fault := memstore.Fault{Outcome: f.Outcomes[h%uint64(len(f.Outcomes))]}
	if f.Longest > 0 {
		fault.Delay = time.Duration(mix(h) % uint64(f.Longest))
	}
	return fault
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Kind is what happens.
type Kind string

// The kinds of events. Most are about a machine, and the process that runs on it then; some are about the store.
const (
	Start     Kind = "start"
	Leave     Kind = "leave"
	Crash     Kind = "crash"
	CutOff    Kind = "cut off"
	Heal      Kind = "heal"
	Lag       Kind = "lag"    // news takes For
	Expire    Kind = "expire" // the session
	Step      Kind = "step"   // the clock by For
	StepAll   Kind = "step all"
	Take      Kind = "take"     // Count IDs
	TakeAll   Kind = "take all" // Count IDs of everybody, at one instant
	Ensure    Kind = "ensure"
	Create    Kind = "create"
	Attach    Kind = "attach"
	Detach    Kind = "detach"
	Destroy   Kind = "destroy"
	Replace   Kind = "replace" // destroy, and create again
	Drain     Kind = "drain"
	Undrain   Kind = "undrain"
	Move      Kind = "move" // the node ID Count to Other
	Allocate  Kind = "allocate"
	Policy    Kind = "policy"
	Expel     Kind = "expel"
	Stop      Kind = "stop the store"
	Resume    Kind = "start the store"
	Faulty    Kind = "faults"
	Faultless Kind = "no faults"
	Backup    Kind = "backup"
	SetBack   Kind = "set back" // to the backup, or to nothing; Count versions are left out
)

// Event is one thing that happens.
type Event struct {
	At      time.Duration
	Kind    Kind
	Machine string `json:",omitempty"`
	// the machine that it is about, if that is not the one that does it
	Other      string             `json:",omitempty"`
	Sequencer  string             `json:",omitempty"`
	Definition int                `json:",omitempty"` // which of the plan's
	Count      int64              `json:",omitempty"`
	For        time.Duration      `json:",omitempty"`
	Allocation cluster.Allocation `json:",omitzero"`
	Shares     []cluster.Share    `json:",omitempty"`
	Kept       bool               `json:",omitempty"` // it is part of what is assumed, so that shrinking leaves it in
}

// String tells the event in the words of the glossary.
func (e Event) String() string {
	switch e.Kind {
	case Start:
		return e.Machine + " is started"
	case Leave:
		return e.Machine + " leaves"
	case Crash:
		return e.Machine + " crashes"
	case CutOff:
		return e.Machine + " is cut off from the store"
	case Heal:
		return e.Machine + " reaches the store again"
	case Lag:
		return fmt.Sprintf("news takes %v to %s", e.For, e.Machine)
	case Expire:
		return fmt.Sprintf("the session of %s ends", e.Machine)
	case Step:
		return fmt.Sprintf("the clock of %s steps by %v", e.Machine, e.For)
	case StepAll:
		return fmt.Sprintf("all clocks step by %v", e.For)
	case Take:
		return fmt.Sprintf("%s takes %d IDs of %s", e.Machine, e.Count, e.Sequencer)
	case TakeAll:
		return fmt.Sprintf("all take %d IDs of each sequencer", e.Count)
	case Ensure:
		return fmt.Sprintf("%s creates %s with definition %d, unless it exists, and attaches", e.Machine,
			e.Sequencer, e.Definition)
	case Create:
		return fmt.Sprintf("%s creates %s with definition %d", e.Machine, e.Sequencer, e.Definition)
	case Attach:
		return fmt.Sprintf("%s attaches to %s", e.Machine, e.Sequencer)
	case Detach:
		return fmt.Sprintf("%s detaches from %s", e.Machine, e.Sequencer)
	case Destroy:
		return fmt.Sprintf("%s destroys %s", e.Machine, e.Sequencer)
	case Replace:
		return fmt.Sprintf("%s destroys %s, creates it with definition %d, and attaches", e.Machine,
			e.Sequencer, e.Definition)
	case Drain, Undrain:
		return fmt.Sprintf("%s has %s %sed of %s", e.Machine, e.Other, e.Kind, e.Sequencer)
	case Move:
		return fmt.Sprintf("%s has node ID %d of %s moved to %s", e.Machine, e.Count, e.Sequencer, e.Other)
	case Allocate:
		return fmt.Sprintf("%s allocates %s to %v", e.Machine, e.Sequencer, e.Allocation)
	case Policy:
		return fmt.Sprintf("%s sets the policy %v", e.Machine, e.Shares)
	case Expel:
		return fmt.Sprintf("%s expels %s", e.Machine, e.Other)
	case Stop:
		return "the store stops"
	case Resume:
		return "the store starts again"
	case Faulty:
		return "the store begins to misbehave"
	case Faultless:
		return "the store behaves"
	case Backup:
		return "the store is backed up"
	case SetBack:
		text := "the store is set back to its backup, or to nothing"
		if e.Count > 0 {
			text += fmt.Sprintf("; its versions go on %d later", e.Count)
		}
		return text
	}
	return string(e.Kind)
}

// String describes the world, without its events.
func (p Plan) String() string {
	var b strings.Builder
	for _, m := range p.Machines {
		fmt.Fprintf(&b, "%s: a TTL of %v, a window of %v, %d node IDs in each sequencer", m.Name, m.TTL,
			m.Window, m.NodeIDs)
		if m.Ahead != 0 {
			fmt.Fprintf(&b, ", a clock that is %v ahead", m.Ahead)
		}
		if m.Region != (cluster.Region{}) {
			fmt.Fprintf(&b, ", the region %v", m.Region)
		}
		if m.Wish != nil {
			fmt.Fprintf(&b, ", only node IDs %d to %d", m.Wish.From, m.Wish.To)
		}
		if m.Order == peer.WaitForIDs {
			b.WriteString(", and it waits until its IDs would be the greatest")
		}
		b.WriteByte('\n')
	}
	for i, d := range p.Definitions {
		if !slices.ContainsFunc(p.Events, func(e Event) bool {
			return (e.Kind == Ensure || e.Kind == Create || e.Kind == Replace) && e.Definition == i &&
				slices.Contains(sequencers, e.Sequencer)
		}) {
			continue
		}
		fmt.Fprintf(&b, "definition %d: %v\n", i, d)
	}
	if p.Faults.OneIn > 0 {
		fmt.Fprintf(&b, "of the store: one call in %d goes wrong and takes up to %v\n", p.Faults.OneIn,
			p.Faults.Longest)
	}
	fmt.Fprintf(&b, "a checkpoint every %d entries; all trouble ends after %v\n", p.Checkpoint, p.Calm)
	return b.String()
}

// epoch is where each bubble begins, which layouts must have behind them.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// final is the sequencer that all use in the end, to see that they can, and last its definition.
const final = "last"

var last = cluster.Define(firn.Layout{
	Epoch: epoch.Add(-48 * time.Hour), Tick: time.Millisecond, TimeBits: 41,
	NodeBits: 10, SequenceBits: 12,
})
