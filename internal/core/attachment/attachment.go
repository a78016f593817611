// Package attachment decides what a member does about its node ID in one sequencer: claim the one that it is
// granted, use it, decline it for another, use it up, or give it back. Package fence, not this one, makes IDs
// unique: a wrong decision here costs availability, or keeps a node ID from others.
//
// Step is a pure function, without clock, store or goroutine, so that a test can explore every order of events.
// Package peer drives it: it passes what it observes, does the action that Step returns, and passes the
// outcome.
package attachment

// State is what a member knows of its node IDs in one sequencer. It is a value: Step takes one and returns the
// next. The zero value has no tenure and no grant.
type State struct {
	Tenures [2]Tenure // the one in use, and its successor or predecessor
	Grant   Grant     // at the last Look
	Alone   bool      // the member declined the node ID of Grant and got it again: there is no other
	Behind  int       // how many node IDs in a row it declined, see ClockBehind and Lasting
}

// Tenure is the time for which a member has a node ID, from its claim until the member gives it back.
type Tenure struct {
	Phase  Phase
	Node   int64
	Member string // the member ID under whose session it was claimed
	Lost   bool   // its horizon can't be extended any more
}

// Phase is the phase of a tenure. The zero value is Free.
type Phase uint8

// The phases.
const (
	Free     Phase = iota // the slot has no tenure
	Claimed               // the member makes no ID under it yet: the clock must reach its floor first
	Used                  // the member makes IDs under it, and extends its horizon
	Expiring              // the member makes IDs under it up to its horizon, and does not extend that
	Stopped               // the member makes no ID under it any more, and must give it back
)

func (p Phase) String() string {
	return [...]string{"free", "claimed", "used", "expiring", "stopped"}[p]
}

// Grant is what the cluster's value gives the member.
type Grant struct {
	Kind   Kind
	Node   int64  // the node ID while Granted, else 0
	Member string // the member's present ID
}

// Kind is the kind of a Grant. The zero value is Rejoining.
type Kind uint8

// The kinds of grant.
const (
	Rejoining Kind = iota // no grant yet, or no longer: the member is about to join or attach
	InLine                // no grant yet: the member waits in line
	Granted               // the member has a node ID
	Unwanted              // no grant: the member was detached
	Destroyed             // no grant ever again: the sequencer was destroyed
)

// Event is what happens to the member.
type Event interface{ event() }

// The events.
type (
	// Look says what the member observes. It is due after every change, and after every other event.
	Look struct {
		Grant   Grant
		Tenures [2]Sight // of the tenures in State
	}
	// TookIt says that the member has claimed the node ID of State.Grant.
	TookIt struct{}
	// HeldByOther says that the claim failed: another fence holds the node ID.
	HeldByOther struct {
		Lasting bool // it has no session, and so no end that could be waited for
	}
	// ClockBehind says that the claim failed: the floor of the node ID is too far ahead of the clock.
	ClockBehind struct{}
	// Declined says that the log has the decline, and whether the member got the same node ID again.
	Declined struct{ Same bool }
	// NotUsed says that the member can't make IDs under the tenure now.
	NotUsed struct{ Slot int }
	// Returned says that the member has given a tenure back, or can't any more.
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

// Action is what the member must do after a step. Before that, it stops the generators of all tenures that are
// Stopped. When the action fails without an event, the member looks again after a pause.
type Action struct {
	Kind ActionKind
	Slot int // the slot of the tenure, for Use and Return
}

// ActionKind is the kind of an Action. The zero value is Wait.
type ActionKind uint8

// The kinds of action.
const (
	Wait    ActionKind = iota // wait until something changes
	Claim                     // claim the node ID of the grant, and step with TookIt, HeldByOther or ClockBehind
	Decline                   // ask the log for another node ID than that of the grant, and step with Declined
	Use                       // make IDs under the tenure, above all earlier ones; step with NotUsed if that fails
	Return                    // give the node ID back, and step with Returned
)

func (k ActionKind) String() string {
	return [...]string{"wait", "claim", "decline", "use", "return"}[k]
}

// MostDeclines is how many node IDs in a row a member declines because their floors are ahead of its clock. After
// that, the clock must be wrong.
const MostDeclines = 8

// Step is the protocol: what a member does about its node ID. Its results depend on its arguments alone.
func Step(s State, e Event) (State, Action) {
	switch e := e.(type) {
	case Look:
		return look(s, e)
	case TookIt:
		s.Tenures[s.find(Free)] = Tenure{Phase: Claimed, Node: s.Grant.Node, Member: s.Grant.Member}
		s.Alone, s.Behind = false, 0
	case HeldByOther:
		if e.Lasting {
			return s.tryAnother()
		}
		// The holder may be this member, under a session that has not ended yet.
		if i := s.find(Expiring); i >= 0 && s.Tenures[i].Node == s.Grant.Node && !s.Tenures[i].Lost {
			s.Tenures[i].Phase = Stopped
		}
	case ClockBehind:
		return s.tryAnother()
	case Declined:
		s.Alone = e.Same
	case NotUsed:
		s.Tenures[e.Slot].Phase = Claimed
	case Returned:
		s.Tenures[e.Slot] = Tenure{}
	}
	return s, Action{}
}

// tryAnother has the member decline a node ID that it can't claim, unless there is no other, or it has declined many.
func (s State) tryAnother() (State, Action) {
	if s.Alone || s.Behind >= MostDeclines {
		return s, Action{}
	}
	s.Behind++
	return s, Action{Kind: Decline}
}

// look returns what follows from a Look.
func look(s State, v Look) (State, Action) {
	if v.Grant != s.Grant {
		s.Alone = false
	}
	s.Grant = v.Grant
	for i := range s.Tenures {
		t := &s.Tenures[i]
		t.Lost = v.Tenures[i].Lost && t.Phase != Free
		t.Phase = s.phase(*t, v.Tenures[i].Over)
	}
	claimed, stopped, expiring := s.find(Claimed), s.find(Stopped), s.find(Expiring)
	switch {
	case claimed >= 0 && v.Tenures[claimed].Due:
		if other := 1 - claimed; s.Tenures[other].Phase != Free {
			s.Tenures[other].Phase = Stopped
		}
		s.Tenures[claimed].Phase = Used
		return s, Action{Use, claimed}
	case stopped >= 0: // before the next claim, which then always has a slot
		return s, Action{Return, stopped}
	case v.Grant.Kind != Granted:
		return s, Action{Kind: Wait}
	case claimed >= 0, s.find(Used) >= 0:
		return s, Action{Kind: Wait}
	case expiring >= 0 && s.granted(s.Tenures[expiring]) && !s.Alone:
		// The fence was lost. The member can claim another node ID while this one has time left.
		return s, Action{Kind: Decline}
	default:
		return s, Action{Kind: Claim}
	}
}

// phase returns the phase of a tenure after a Look.
func (s *State) phase(t Tenure, over bool) Phase {
	extendable := s.granted(t) && !t.Lost
	switch {
	case t.Phase == Free || t.Phase == Stopped:
		return t.Phase
	case s.revoked(t), !extendable && (over || t.Phase == Claimed):
		return Stopped
	case t.Phase == Claimed:
		return Claimed
	case extendable:
		return Used
	default:
		return Expiring
	}
}

// granted reports whether the grant is of the node ID of t, to the member ID of t.
func (s *State) granted(t Tenure) bool {
	return s.Grant == Grant{Kind: Granted, Node: t.Node, Member: t.Member}
}

// revoked reports whether the member must give t back at once. While in line, it may use up the time under a
// former member ID.
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

// InUse returns the slot of the tenure under which the member makes IDs, and -1 when there is none.
func (s *State) InUse() int { return max(s.find(Used), s.find(Expiring)) }

// Extended reports whether the member extends the horizon of the tenure in use.
func (s *State) Extended() bool { return s.find(Used) >= 0 }

// Latest returns the slot of the latest claimed tenure that is not stopped, and -1 when there is none.
func (s *State) Latest() int {
	if i := s.find(Claimed); i >= 0 {
		return i
	}
	return s.InUse()
}

// Empty reports whether the member has no tenure and no grant to claim one.
func (s *State) Empty() bool { return s.Tenures == [2]Tenure{} && s.Grant.Kind != Granted }
