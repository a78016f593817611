package fence

import "github.com/firn-id/firn/store"

// Phase says where an owner stands with its node ID.
type Phase uint8

// The phases, in the order in which an owner goes through them.
const (
	Claiming  Phase = iota // it has read the keys and tries to take the node ID
	Failed                 // another owner was faster
	Held                   // it owns the node ID and can extend
	Lost                   // it can never extend again; what is written down it may use up
	Stopping               // it wants to leave: nothing may be written before the generator has stopped
	Releasing              // the generator has stopped; the end of its use is being written
	Released               // it is gone
)

func (p Phase) String() string {
	return [...]string{"claiming", "failed", "held", "lost", "stopping", "releasing", "released"}[p]
}

// State is one owner's hold on a node ID, as far as the owner knows. Times are Unix
// milliseconds. A State is a value: Step takes one and returns the next.
type State struct {
	Phase Phase

	// Floor and Horizon enclose the stretch of ID time that the owner may use, Horizon
	// excluded. The store has confirmed that the horizon, or a later one, is written down:
	// nobody else will ever be given an instant before it.
	Floor, Horizon int64

	// End is, when releasing, where the use of the stretch ended.
	End int64

	// Live and Reported are the versions of the two keys as this owner wrote them, and,
	// while claiming, as it read them. Live is zero when the key is not ours.
	Live, Reported store.Version
}

// Limits bound the horizons that Step asks for, in milliseconds.
type Limits struct {
	Window  int64 // how far ahead of the clock a horizon is written
	MaxStep int64 // how much further than the time that has passed a horizon may move at once
}

// View is what a read of the two keys of a node ID showed.
type View struct {
	Live     store.Version // zero when nobody is known to hold the node ID
	LiveMine bool          // the live key carries this owner's operation ID

	Reported     store.Version // zero when the node ID was never used
	ReportedMine bool          // the horizon carries this owner's operation ID
	Horizon      int64         // zero when the node ID was never used
}

// Write is a transaction: if both keys have these versions, then put this horizon and
// change the live key.
type Write struct {
	IfLive, IfReported store.Version
	Live               Change
	Horizon            int64
}

// Change is what a Write does with the live key.
type Change uint8

// The changes.
const (
	Keep Change = iota
	Take
	Drop
)

// Event is what happens to an owner.
type Event interface{ event() }

// The events.
type (
	// Due means that it is time to write: to claim, to extend, to release.
	Due struct {
		Now     int64 // what the owner's clock shows
		Elapsed int64 // how long ago, by the monotonic clock, the last horizon was written
	}
	// Applied is the answer that a write was applied. Its puts have this version.
	Applied struct {
		Write   Write
		Version store.Version
	}
	// Conflict is the answer that a condition did not hold.
	Conflict struct{}
	// Doubt is no answer, or one that leaves open whether the write was or will be applied.
	Doubt struct{}
	// Seen is what the read after a conflict showed.
	Seen struct{ View View }
	// Leave means that the owner wants to give the node ID back.
	Leave struct{}
	// Stopped means that the generator has stopped for good, and where its use ended.
	Stopped struct{ End int64 }
)

func (Due) event()      {}
func (Applied) event()  {}
func (Conflict) event() {}
func (Doubt) event()    {}
func (Seen) event()     {}
func (Leave) event()    {}
func (Stopped) event()  {}

// Action is what an owner is to do after a step.
type Action struct {
	Kind  Kind
	Write Write // what to commit
}

// Kind is the kind of an Action.
type Kind uint8

// The kinds of action.
const (
	Nothing Kind = iota
	Commit       // commit Write, and step with Applied, Conflict or Doubt; with none when it was refused
	Look         // read both keys at one moment, and step with Seen
	Stop         // stop the generator, and step with Stopped
)

// Begin is the state of an owner that wants the node ID whose keys it has read. The horizon
// written there is its floor.
func Begin(v View) State {
	return State{Phase: Claiming, Floor: v.Horizon, Horizon: v.Horizon, Reported: v.Reported}
}

// Step is the protocol. It is a pure function: what it is given it does not change, and
// what it returns follows from that alone.
//
// The horizon in the state moves in two places only, on Applied and on Seen: the store has then
// shown that it is written. Doubt changes nothing; whatever is written next goes out under the
// same versions, so that at most one of the two can ever be applied.
func Step(s State, e Event, l Limits) (State, Action) {
	switch e := e.(type) {
	case Due:
		return s, due(s, e, l)
	case Applied:
		return applied(s, e), Action{}
	case Conflict:
		return s, Action{Kind: Look}
	case Seen:
		return settled(s, e.View), Action{}
	case Leave:
		switch s.Phase {
		case Claiming:
			s.Phase = Failed
		case Held, Lost:
			s.Phase = Stopping
			return s, Action{Kind: Stop}
		}
	case Stopped:
		s.Phase = Releasing
		s.End = max(e.End, s.Floor)
		if s.Live == 0 { // lost: nothing can be written any more
			s.Phase = Released
		}
	case Doubt:
	}
	return s, Action{}
}

// due is what to write now.
func due(s State, e Due, l Limits) Action {
	w := Write{IfLive: s.Live, IfReported: s.Reported}
	switch s.Phase {
	case Claiming:
		w.Live = Take
		w.Horizon = max(e.Now, s.Floor) + l.Window
	case Held:
		w.Horizon = min(e.Now+l.Window, s.Horizon+e.Elapsed+l.MaxStep)
		if w.Horizon <= s.Horizon {
			return Action{}
		}
	case Releasing:
		w.Live = Drop
		w.Horizon = s.End
	default:
		return Action{}
	}
	return Action{Kind: Commit, Write: w}
}

// applied is the state once a write is known to be in the store.
func applied(s State, e Applied) State {
	s.Reported = e.Version
	switch s.Phase {
	case Claiming:
		s.Phase = Held
		s.Live = e.Version
		s.Horizon = e.Write.Horizon
	case Held:
		s.Horizon = e.Write.Horizon
	case Releasing:
		s.Phase = Released
	}
	return s
}

// settled is the state once a read after a conflict has shown what became of the writes that
// were in doubt: none of them can be applied any more.
func settled(s State, v View) State {
	stillLive := v.Live != 0 && v.Live == s.Live
	if s.Phase == Claiming && v.LiveMine {
		s.Live, stillLive = v.Live, true
	}
	if v.ReportedMine {
		s.Reported = v.Reported
	}
	switch s.Phase {
	case Claiming, Held:
		if v.ReportedMine {
			s.Horizon = max(s.Horizon, v.Horizon)
		}
		switch {
		case v.ReportedMine && stillLive:
			s.Phase = Held
		case s.Phase == Claiming && !v.ReportedMine:
			s.Phase = Failed
		default:
			s.Phase, s.Live = Lost, 0
		}
	case Releasing:
		if !v.ReportedMine || !stillLive {
			s.Phase = Released
		}
	}
	return s
}
