package fence

import "github.com/firn-id/firn/store"

// Phase is the phase of an owner's hold on its node ID. The zero value is Claiming.
type Phase uint8

// The phases, in the order in which an owner goes through them.
const (
	Claiming  Phase = iota // the owner has read the keys and tries to claim the node ID
	Failed                 // another owner was faster
	Held                   // it owns the node ID and can extend
	Lost                   // it can never extend again, but may use the time up to its horizon
	Stopping               // it wants to release, and writes nothing before the generator has stopped
	Releasing              // the generator has stopped, and the owner writes the end of the use
	Released               // it has no hold any more
)

func (p Phase) String() string {
	return [...]string{"claiming", "failed", "held", "lost", "stopping", "releasing", "released"}[p]
}

// State is one owner's hold on a node ID, as far as the owner knows. Times are Unix
// milliseconds. A State is a value: Step takes one and returns the next.
type State struct {
	Phase Phase

	// Floor and Horizon bound the ID time that the owner may use, Horizon excluded. The store has confirmed the
	// horizon, or a later one: no later owner gets an instant before it, except after a release.
	Floor, Horizon int64

	// End is, while releasing, the instant at which the use ended.
	End int64

	// Live and Reported are the versions of the two keys as this owner wrote them, and, while claiming, as it
	// read them. Live is zero when the live key is not this owner's.
	Live, Reported store.Version

	// Copied: another process holds the node ID as this owner. One of the two is a copy of the other, made by the
	// snapshot of a machine for instance, or this one was set back to an earlier state. What the owner has reserved,
	// the other one uses too, so the use must end at once. The phase is Lost, Failed or Released.
	Copied bool
}

// Limits bounds the horizons that Step asks for, in milliseconds.
type Limits struct {
	Window  int64 // how far a horizon lies ahead of the clock
	MaxStep int64 // how much more than the elapsed time a horizon may move at once
}

// View is the two keys of a node ID, read at one moment; those of readView are for a write under both versions alone.
type View struct {
	Live     store.Version // zero when nobody holds the node ID
	LiveMine bool          // the live key carries this owner's operation ID

	Reported     store.Version // zero when the node ID was never used
	ReportedMine bool          // this owner has sent the write that put the horizon
	ReportedCopy bool          // it has not, and the horizon carries its operation ID: a copy of it has
	Horizon      int64         // zero when the node ID was never used

	LiveBy, ReportedBy, ReportedStamp string // what else the keys carry; Step does not look at it
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
	// Due means that it is time to claim, extend or release.
	Due struct {
		Now     int64 // by the owner's clock, in Unix milliseconds
		Elapsed int64 // milliseconds since the last horizon was written, by the monotonic clock
	}
	// Applied means that the store has applied a write, under this version.
	Applied struct {
		Write   Write
		Version store.Version
	}
	// Conflict means that a condition of a write did not hold.
	Conflict struct{}
	// Doubt means that the store may have applied a write, or may still apply it.
	Doubt struct{}
	// Seen carries what the read after a conflict showed.
	Seen struct{ View View }
	// Leave means that the owner wants to release the node ID.
	Leave struct{}
	// Stopped means that the generator has stopped for good, and that the use ended at End.
	Stopped struct{ End int64 }
)

func (Due) event()      {}
func (Applied) event()  {}
func (Conflict) event() {}
func (Doubt) event()    {}
func (Seen) event()     {}
func (Leave) event()    {}
func (Stopped) event()  {}

// Action is what an owner must do after a step.
type Action struct {
	Kind  Kind
	Write Write // for Commit
}

// Kind is the kind of an Action. The zero value is Nothing.
type Kind uint8

// The kinds of action.
const (
	Nothing Kind = iota
	Commit       // commit Write, and step with Applied, Conflict or Doubt; with no event if the store refused it
	Look         // read both keys at one moment, and step with Seen
	Stop         // stop the generator, and step with Stopped
)

// Begin returns the first state of an owner that has read a node ID's keys to claim it. The horizon in them is
// its floor.
func Begin(v View) State {
	return State{Phase: Claiming, Floor: v.Horizon, Horizon: v.Horizon, Reported: v.Reported}
}

// Step is the protocol. It is a pure function: it does not change its arguments, and its results depend on them
// alone.
//
// The horizon in the state moves on Applied and Seen only: the store has then shown that it is written. Doubt
// changes nothing: the next write goes out under the same versions, so that the store can apply at most one of
// the two.
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
		if s.Live == 0 { // lost: it can't write any more
			s.Phase = Released
		}
	case Doubt:
	}
	return s, Action{}
}

// due returns the write that is due, if any.
func due(s State, e Due, l Limits) Action {
	w := Write{IfLive: s.Live, IfReported: s.Reported}
	switch s.Phase {
	case Claiming:
		w.Live = Take
		// No further ahead of the clock than any other, or at the floor: nothing lies in between. A floor after a loss
		// of data rests on that, see member.
		w.Horizon = max(e.Now+l.Window, s.Floor)
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

// applied returns the state after the store has confirmed a write.
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

// settled returns the state after the read that follows a conflict. The read shows the outcome of all writes in
// doubt: the store can't apply any of them any more.
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
		s.Copied = v.ReportedCopy
		switch {
		case v.ReportedMine && stillLive:
			s.Phase = Held
		case s.Phase == Claiming && !v.ReportedMine:
			s.Phase = Failed
		default:
			s.Phase, s.Live = Lost, 0
		}
	case Releasing:
		s.Copied = v.ReportedCopy
		if !v.ReportedMine || !stillLive {
			s.Phase = Released
		}
	}
	return s
}
