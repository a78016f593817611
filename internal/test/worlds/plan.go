package main

import (
	"cmp"
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
	Strict      bool // so is the order of the counter
	Timed       bool // its numbers have a date or, in strict order, a time
	Journals    bool // members keep journals; those without have a shorter way to an ID
	Events      []Event
	Calm        time.Duration // when all trouble ends
}

// Machine is what a process runs on, and with which options.
type Machine struct {
	Name        string
	TTL, Window time.Duration
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
	Count     Kind = "count"    // the event's Count numbers of a counter
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
	Borrow    Kind = "borrow" // a node ID, for Count IDs that no member makes, and For so long
	Keep      Kind = "keep"   // Count node IDs for later, and For so long
	Import    Kind = "import" // Count IDs of past instants, from so long after the layout's epoch on
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

// eventWords tell the events in the words of the glossary.
var eventWords = map[Kind]string{
	Start:     "{machine} is started",
	Leave:     "{machine} leaves",
	Crash:     "{machine} crashes",
	CutOff:    "{machine} is cut off from the store",
	Heal:      "{machine} reaches the store again",
	Lag:       "news takes {for} to {machine}",
	Expire:    "the session of {machine} ends",
	Step:      "the clock of {machine} steps by {for}",
	StepAll:   "all clocks step by {for}",
	Take:      "{machine} takes {count} IDs of {sequencer}",
	TakeAll:   "all take {count} IDs of each sequencer",
	Count:     "{machine} takes {count} numbers of the counter, which it creates unless it exists",
	Ensure:    "{machine} creates {sequencer} with definition {definition}, unless it exists, and attaches",
	Create:    "{machine} creates {sequencer} with definition {definition}",
	Attach:    "{machine} attaches to {sequencer}",
	Detach:    "{machine} detaches from {sequencer}",
	Destroy:   "{machine} destroys {sequencer}",
	Replace:   "{machine} destroys {sequencer}, creates it with definition {definition}, and attaches",
	Drain:     "{machine} has {other} drained of {sequencer}",
	Undrain:   "{machine} has {other} undrained of {sequencer}",
	Move:      "{machine} has node ID {count} of {sequencer} moved to {other}",
	Allocate:  "{machine} allocates {sequencer} to {allocation}",
	Import:    "{machine} gives {count} IDs of {sequencer} to instants of the past, {for} after the epoch",
	Borrow:    "{machine} reserves a node ID of {sequencer} for {for}, for somebody who makes {count} IDs",
	Keep:      "{machine} reserves {count} node IDs of {sequencer} for later, for {for}",
	Policy:    "{machine} sets the policy {shares}",
	Expel:     "{machine} expels {other}",
	Stop:      "the store stops",
	Resume:    "the store starts again",
	Faulty:    "the store begins to misbehave",
	Faultless: "the store behaves",
	Backup:    "the store is backed up",
	SetBack:   "the store is set back to its backup, or to nothing",
}

// String tells the event in words.
func (e Event) String() string {
	text := cmp.Or(eventWords[e.Kind], string(e.Kind))
	if e.Kind == SetBack && e.Count > 0 {
		text += "; its versions go on {count} later"
	}
	return strings.NewReplacer(
		"{machine}", e.Machine, "{other}", e.Other, "{sequencer}", e.Sequencer, "{definition}",
		fmt.Sprint(e.Definition), "{count}", fmt.Sprint(e.Count),
		"{for}", e.For.String(), "{allocation}", e.Allocation.String(), "{shares}", fmt.Sprint(e.Shares),
	).Replace(text)
}

// String describes the world, without its events.
func (p Plan) String() string {
	var b strings.Builder
	for _, m := range p.Machines {
		fmt.Fprintf(&b, "%s: a TTL of %v, a window of %v", m.Name, m.TTL, m.Window)
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
