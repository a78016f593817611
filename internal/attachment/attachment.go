// Package attachment decides what a member does about its node ID in one sequencer: claim the one that it is granted,
// use it, decline it for another, use it up, give it back. It decides nothing about uniqueness, which is the fence's
// (see package fence): a wrong decision here costs availability, or keeps a node ID from others.
//
// Step is a pure function, without clock, store or goroutine, so that a test can put it through everything that can
// happen. Package member drives it: it says how things stand, does what Step answers, and says what came of it.
package attachment

// State is what a member has of one sequencer, as far as it knows. It is a value: Step takes one and returns the next.
// The zero value has nothing.
type State struct {
	Tenures [2]Tenure // the one in use, and the one that is to take its place or has made room for it
	Grant   Grant     // at the last Look
	Era     int64     // at the last Look
	Alone   bool      // the node ID of Grant was declined, and came back: there is no other
	Behind  int       // how many node IDs in a row were declined because the clock is behind their floors
}

// Tenure is the time for which a member has a node ID, from its claim until it is given back.
type Tenure struct {
	Phase  Phase
	Node   int64
	Member string // the member ID under whose session it was claimed
	Era    int64  // in which it was claimed
	Lost   bool   // its horizon can't be extended any more
}

// Phase says where a tenure stands.
type Phase uint8

// The phases.
const (
	Free     Phase = iota // there is no tenure in this slot
	Claimed               // no ID was made under it yet: the clock has to pass its floor
	Used                  // IDs are made under it, and its horizon is extended
	Expiring              // IDs are made under it up to its horizon, which is not extended
	Stopped               // no ID is made under it any more; it is to be given back
)

func (p Phase) String() string {
	return [...]string{"free", "claimed", "used", "expiring", "stopped"}[p]
}

// Grant is what the cluster's value gives the member.
type Grant struct {
	Kind   Kind
	Node   int64  // while Granted; else 0
	Member string // the member ID that it has now
}

// Kind is the kind of a Grant.
type Kind uint8

// The kinds of grant.
const (
	Rejoining Kind = iota // nothing yet, or not any more: the member is about to join or attach
	InLine                // all node IDs are taken
	Granted               // a node ID
	Unwanted              // nothing, because it was detached
	Destroyed             // nothing, for ever
)

// Event is what happens.
type Event interface{ event() }

// The events.
type (
	// Look says how things stand. It is due when they have changed, and after every other event.
	Look struct {
		Grant   Grant
		Era     int64    // how many steps of the clock were believed
		Stepped bool     // the clock has stepped ahead, and that was not believed yet
		Tenures [2]Sight // of the tenures of the state
	}
	// TookIt says that the node ID of the state's grant was claimed.
	TookIt struct{}
	// HeldByOther says that somebody holds the node ID that was to be claimed.
	HeldByOther struct{}
	// ClockBehind says that the floor of the node ID that was to be claimed is too far ahead of the clock.
	ClockBehind struct{}
	// Declined says that the log has the decline, and whether the same node ID came back.
	Declined struct{ Same bool }
	// NotUsed says that the tenure that was to be used can't make IDs now.
	NotUsed struct{ Slot int }
	// Returned says that a tenure was given back, or can't be any more.
	Returned struct{ Slot int }
)

func (Look) event()        {}
func (TookIt) event()      {}
func (HeldByOther) event() {}
func (ClockBehind) event() {}
func (Declined) event()    {}
func (NotUsed) event()     {}
func (Returned) event()    {}

// Sight is what a Look shows of one tenure.
type Sight struct {
	Due  bool // the clock has reached its floor
	Over bool // the clock has reached its horizon
	Lost bool // its horizon can't be extended any more
}

// Action is what the member is to do after a step. Before it does that, it stops the generators of all tenures that are
// Stopped. When it fails, there is no event: it looks again after a pause.
type Action struct {
	Kind ActionKind
	Slot int // of the tenure, for Use and Return
}

// ActionKind is the kind of an Action.
type ActionKind uint8

// The kinds of action.
const (
	Wait    ActionKind = iota // until something changes
	Believe                   // have the clock follow its step, unless other owners contradict it
	Claim                     // claim the node ID of the grant, and step with TookIt, HeldByOther or ClockBehind
	Decline                   // ask the log for another node ID than that of the grant, and step with Declined
	Use                       // make IDs under the tenure, above those that were made before; step with NotUsed if that fails
	Return                    // give the node ID back, and step with Returned
)

func (k ActionKind) String() string {
	return [...]string{"wait", "believe", "claim", "decline", "use", "return"}[k]
}

// MostDeclines is after how many node IDs whose floors are ahead of the clock it is clear that the clock is what is
// wrong.
const MostDeclines = 8

// Step is the protocol: what a member does about its node ID. What it returns follows from its arguments alone.
func Step(s State, e Event) (State, Action) {
	switch e := e.(type) {
	case Look:
		return look(s, e)
	case TookIt:
		s.Tenures[s.find(Free)] = Tenure{Phase: Claimed, Node: s.Grant.Node, Member: s.Grant.Member, Era: s.Era}
		s.Alone, s.Behind = false, 0
	case HeldByOther:
		// It may be its own, from before a step of the clock or from a session that has not ended yet.
		if i := s.find(Expiring); i >= 0 && s.Tenures[i].Node == s.Grant.Node && !s.Tenures[i].Lost {
			s.Tenures[i].Phase = Stopped
		}
	case ClockBehind:
		if !s.Alone && s.Behind < MostDeclines {
			s.Behind++
			return s, Action{Kind: Decline}
		}
	case Declined:
		s.Alone = e.Same
	case NotUsed:
		s.Tenures[e.Slot].Phase = Claimed
	case Returned:
		s.Tenures[e.Slot] = Tenure{}
	}
	return s, Action{}
}

// look is what follows from how things stand.
func look(s State, v Look) (State, Action) {
	if v.Grant != s.Grant {
		s.Alone = false
	}
	s.Grant, s.Era = v.Grant, v.Era
	for i := range s.Tenures {
		t := &s.Tenures[i]
		t.Lost = v.Tenures[i].Lost && t.Phase != Free
		t.Phase = s.phase(*t, v.Tenures[i].Over, v.Stepped)
	}
	claimed, stopped, expiring := s.find(Claimed), s.find(Stopped), s.find(Expiring)
	switch {
	case claimed >= 0 && v.Tenures[claimed].Due && !v.Stepped:
		if other := 1 - claimed; s.Tenures[other].Phase != Free {
			s.Tenures[other].Phase = Stopped
		}
		s.Tenures[claimed].Phase = Used
		return s, Action{Use, claimed}
	case stopped >= 0: // before another is claimed: so there is always a slot for that
		return s, Action{Return, stopped}
	case v.Grant.Kind != Granted:
		return s, Action{Kind: Wait}
	case v.Stepped:
		return s, Action{Kind: Believe}
	case claimed >= 0, s.find(Used) >= 0:
		return s, Action{Kind: Wait}
	case expiring >= 0 && s.granted(s.Tenures[expiring]) && !s.Alone:
		// It was lost, or can't be extended as far at once as the clock has stepped. Another node ID can be used while
		// there is time left under this one.
		return s, Action{Kind: Decline}
	default:
		return s, Action{Kind: Claim}
	}
}

// phase is the phase of a tenure as things stand.
func (s *State) phase(t Tenure, over, stepped bool) Phase {
	extendable := s.granted(t) && t.Era == s.Era && !t.Lost
	switch {
	case t.Phase == Free || t.Phase == Stopped:
		return t.Phase
	case s.revoked(t), !extendable && (over || t.Phase == Claimed):
		return Stopped
	case t.Phase == Claimed:
		return Claimed
	case extendable && !stepped:
		return Used
	default:
		return Expiring
	}
}

// granted tells whether the grant is that of the node ID of t, under the session of t.
func (s *State) granted(t Tenure) bool {
	return s.Grant == Grant{Kind: Granted, Node: t.Node, Member: t.Member}
}

// revoked tells whether t is to be given back at once. Time that was written down under a former member ID may be used up
// in line.
func (s *State) revoked(t Tenure) bool {
	switch s.Grant.Kind {
	case Unwanted, Destroyed:
		return true
	case InLine:
		return t.Member == s.Grant.Member
	default:
		return false
	}
}

// find returns the slot of a tenure in this phase, and -1 when there is none.
func (s *State) find(p Phase) int {
	for i, t := range s.Tenures {
		if t.Phase == p {
			return i
		}
	}
	return -1
}

// InUse returns the slot of the tenure under which IDs are made, and -1 when there is none.
func (s *State) InUse() int { return max(s.find(Used), s.find(Expiring)) }

// Extended tells whether the horizon of the tenure in use is extended.
func (s *State) Extended() bool { return s.find(Used) >= 0 }

// Latest returns the slot of the tenure that was claimed last and is not stopped, and -1 when there is none.
func (s *State) Latest() int {
	if i := s.find(Claimed); i >= 0 {
		return i
	}
	return s.InUse()
}

// Empty tells whether it has no node ID and is not about to claim one either.
func (s *State) Empty() bool { return s.Tenures == [2]Tenure{} && s.Grant.Kind != Granted }
