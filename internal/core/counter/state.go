package counter

import (
	"math"

	"github.com/firn-id/firn/store"
)

// Phase is the phase of an owner's use of a counter. The zero value is Reading.
type Phase uint8

// The phases.
const (
	Reading   Phase = iota // it has not read the record yet
	Held                   // it may claim blocks
	Losing                 // the store has lost data, and the owner has not told the others yet
	Lost                   // the store has lost data, and no operator has resumed the counter
	Stopping               // it wants to leave, and writes nothing before the use of its blocks has stopped
	Returning              // the use has stopped, and the owner gives back what it can
	Released               // it has no part in the counter any more
)

func (p Phase) String() string {
	return [...]string{"reading", "held", "losing", "lost", "stopping", "returning", "released"}[p]
}

// Record is what the key of a counter holds.
type Record struct {
	Last int64 // the greatest number that anybody has reserved; 0: none
	Size int64 // how many numbers, up to Last, the last block has; 0: it was given back, or Last was raised
	Era  int64 // the store's when an owner last claimed, or an operator resumed
}

// Block is the numbers From to To, both included. The zero value has none.
type Block struct{ From, To int64 }

// Size returns how many numbers the block has.
func (b Block) Size() int64 {
	if b == (Block{}) {
		return 0
	}
	return b.To - b.From + 1
}

func (r Record) block() Block {
	if r.Size == 0 {
		return Block{}
	}
	return Block{r.Last - r.Size + 1, r.Last}
}

// View is the record and the era, read at one moment or with the record last.
type View struct {
	Version store.Version // zero when there is no record
	Record
	Mine bool   // this owner has sent the write of the record
	By   string // who has, as it calls itself; empty: nobody who claims

	StoreEra int64         // changes when somebody notices that the store has lost data
	IfEra    store.Version // of the era's key
}

// Lost reports whether the store has lost data since an owner claimed last, and no operator has resumed the counter.
func (v View) Lost() bool { return v.Era != v.StoreEra }

// State is what one owner knows of a counter. It is a value: Step takes one and returns the next.
type State struct {
	Phase Phase
	Known View // the record that the store has confirmed last; Mine and By are not kept

	// Greatest is the greatest number that this owner has reserved, also if the store has lost that. Zero: none.
	Greatest int64

	// Doubt: the store may have applied a write under the known version, or may still apply it.
	Doubt bool

	// Unused is, while returning, what was never given of its blocks, in ascending order.
	Unused [2]Block
}

// Write is a transaction: if the key and the era have these versions, then put the record.
type Write struct {
	IfVersion, IfEra store.Version
	Record           Record
}

// Event is what happens to an owner.
type Event interface{ event() }

// The events.
type (
	// Need means that the owner needs a block of so many numbers, at least 1.
	Need struct{ Size int64 }
	// Due means that it is time to go on with what the phase is about.
	Due struct{}
	// Applied means that the store has applied a write, under this version.
	Applied struct {
		Write   Write
		Version store.Version
	}
	// Conflict means that a condition of a write did not hold.
	Conflict struct{}
	// Doubt means that the store may have applied a write, or may still apply it.
	Doubt struct{}
	// Seen carries what a read showed.
	Seen struct{ View View }
	// Lose means that the store has lost data.
	Lose struct{}
	// Told means that the era has changed since the store has lost data.
	Told struct{}
	// Leave means that the owner wants to leave.
	Leave struct{}
	// Stopped means that the use of its blocks has stopped for good, and what was never given, in ascending order.
	Stopped struct{ Unused [2]Block }
)

func (Need) event()     {}
func (Due) event()      {}
func (Applied) event()  {}
func (Conflict) event() {}
func (Doubt) event()    {}
func (Seen) event()     {}
func (Lose) event()     {}
func (Told) event()     {}
func (Leave) event()    {}
func (Stopped) event()  {}

// Action is what an owner must do after a step.
type Action struct {
	Kind  Kind
	Write Write // for Commit
	Block Block // for Use
}

// Kind is the kind of an Action. The zero value is Nothing.
type Kind uint8

// The kinds of action.
const (
	Nothing   Kind = iota
	Commit         // commit Write, and step with Applied, Conflict or Doubt; with no event if the store refused it
	Look           // read the key and the era, and step with Seen
	Use            // the numbers of Block are the owner's
	Stop           // stop the use of all blocks; if the phase is Stopping, step with Stopped
	Exhausted      // there are no more numbers
)

// Step is the protocol. It is a pure function: it does not change its arguments, and its results depend on them
// alone.
//
// A block is the owner's on Applied and Seen only: the store has then shown that it is reserved. Doubt changes no
// block: the next write goes out under the same version, so that the store can apply at most one of the two.
func Step(s State, e Event, l Limits) (State, Action) {
	switch e := e.(type) {
	case Need:
		return s, need(s, e, l)
	case Due:
		return due(s)
	case Applied:
		return applied(s, e)
	case Conflict:
		return s, Action{Kind: Look}
	case Doubt:
		s.Doubt = true
	case Seen:
		return seen(s, e.View)
	case Lose:
		return lose(s)
	case Told:
		if s.Phase == Losing {
			s.Phase, s.Known = Lost, View{} // versions of before mean nothing any more
		}
	case Leave:
		switch s.Phase {
		case Reading, Losing, Lost:
			s.Phase = Released
		case Held:
			s.Phase = Stopping
			return s, Action{Kind: Stop}
		}
	case Stopped:
		if s.Phase == Stopping {
			s.Phase, s.Unused = Returning, e.Unused
		}
	}
	return s, Action{}
}

// need returns the claim of a block above all that is reserved.
func need(s State, e Need, l Limits) Action {
	if s.Phase != Held {
		return Action{}
	}
	last := max(s.Known.Last, l.After)
	if last >= l.Last {
		return Action{Kind: Exhausted}
	}
	size := min(max(e.Size, 1), l.Last-last)
	return s.commit(Record{Last: last + size, Size: size, Era: s.Known.StoreEra})
}

func (s State) commit(r Record) Action {
	return Action{Kind: Commit, Write: Write{IfVersion: s.Known.Version, IfEra: s.Known.IfEra, Record: r}}
}

func due(s State) (State, Action) {
	switch s.Phase {
	case Reading, Held, Lost:
		return s, Action{Kind: Look}
	case Returning:
		last := s.returned()
		if last == s.Known.Last && !s.Doubt {
			s.Phase = Released
			return s, Action{}
		}
		return s, s.commit(Record{Last: last, Era: s.Known.Era})
	}
	return s, Action{}
}

// returned returns the greatest reserved number once the unused ones that nobody has claimed above are given back.
func (s State) returned() int64 {
	last := s.Known.Last
	for i := len(s.Unused) - 1; i >= 0; i-- {
		if b := s.Unused[i]; b.Size() > 0 && b.To == last {
			last = b.From - 1
		}
	}
	return last
}

func applied(s State, e Applied) (State, Action) {
	s.Known.Version, s.Known.Record, s.Doubt = e.Version, e.Write.Record, false
	switch s.Phase {
	case Held:
		return s.use(e.Write.Record)
	case Lost:
		if !s.Known.Lost() {
			s.Phase = Held
		}
	case Returning:
		s.Phase = Released
	}
	return s, Action{}
}

func (s State) use(r Record) (State, Action) {
	b := r.block()
	if b.Size() == 0 {
		return s, Action{}
	}
	s.Greatest = max(s.Greatest, b.To)
	return s, Action{Kind: Use, Block: b}
}

// lose stops the use: what the owner has reserved may be reserved again.
func lose(s State) (State, Action) {
	switch s.Phase {
	case Reading, Held, Losing, Lost:
		s.Phase, s.Doubt = Losing, false
		return s, Action{Kind: Stop}
	case Returning:
		s.Phase = Released
	}
	return s, Action{}
}

// seen returns the state after a read. If the version is another than the known one, the store can't apply any write in
// doubt any more. A record of this owner's under another version is such a write.
func seen(s State, v View) (State, Action) {
	switch s.Phase {
	case Losing, Stopping, Released:
		return s, Action{}
	}
	changed := v.Version != s.Known.Version
	mine := v.Mine && changed
	if v.Version < s.Known.Version || s.Phase == Held && v.Last < s.Greatest {
		return lose(s)
	}
	doubt, otherEra := s.Doubt, v.StoreEra != s.Known.StoreEra
	v.Mine, v.By = false, ""
	s.Known, s.Doubt = v, doubt && !changed
	switch s.Phase {
	case Reading:
		if s.Phase = Held; v.Lost() {
			s.Phase = Lost
			return s, Action{Kind: Stop}
		}
	case Held:
		switch {
		case v.Lost():
			s.Phase = Lost
			return s, Action{Kind: Stop}
		case otherEra: // an operator has resumed meanwhile; nothing below that is given back
			return s, Action{Kind: Stop}
		case mine:
			return s.use(v.Record)
		}
	case Lost:
		switch {
		case v.Last < s.Greatest:
			return s, s.commit(Record{Last: s.Greatest, Era: v.Era})
		case !v.Lost():
			s.Phase = Held
		}
	case Returning:
		switch {
		case otherEra, doubt && !mine: // it may have given back, and others have reserved the same numbers
			s.Phase = Released
		case mine:
			return s.returnsToo(v.block())
		default:
			return due(s)
		}
	}
	return s, Action{}
}

// returnsToo gives back a block, too, that the owner did not know that it had.
func (s State) returnsToo(b Block) (State, Action) {
	if b.Size() > 0 {
		s.Unused = [2]Block{join(s.Unused[0], s.Unused[1]), b}
	}
	return due(s)
}

// join returns two blocks as one if nothing is between them, and else the second, the only one that can be given back.
func join(a, b Block) Block {
	if b.Size() == 0 || a.Size() > 0 && a.To+1 == b.From {
		return Block{a.From, max(a.To, b.To)}
	}
	return b
}

// Resume returns the record with which an operator has a counter go on above a number, after the store has lost data.
// A *ResumeError is returned when it is not lost, somebody has reserved a greater number, or the limits of the present
// time do not allow the number, above which there might then be none.
func Resume(v View, after int64, l Limits) (Record, error) {
	if !v.Lost() || after < v.Last || after > l.Last || after == math.MaxInt64 {
		return Record{}, &ResumeError{After: after, Last: v.Last, Most: min(l.Last, math.MaxInt64-1), Lost: v.Lost()}
	}
	return Record{Last: after, Era: v.StoreEra}, nil
}
