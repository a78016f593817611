package member

import (
	"fmt"
	"slices"

	"github.com/firn-id/firn/cluster"
)

// attaches is what the member owes the log so that it is attached where it wants to be, and nowhere else.
func (m *Member) attaches(v cluster.Value, id string) []cluster.Command {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leaving { // which takes it out everywhere
		return nil
	}
	var owed []cluster.Command
	for name, q := range v.Sequencers() {
		wanted, holds := false, false
		if s := m.sequencers[name]; s != nil && s.created.Load() == q.Created() {
			wanted, holds = s.wants()
		}
		switch attached := q.Attached(id); {
		case wanted && !attached:
			owed = append(owed, cluster.Attach{Sequencer: name, Member: id, Nodes: m.options.wish(name, q.Definition())})
		case attached && !wanted && !holds: // whoever comes next finds the node ID free
			owed = append(owed, cluster.Detach{Sequencer: name, Member: id})
		}
	}
	return owed
}

// wants tells whether the sequencer wants a node ID, and whether it holds one.
func (s *Sequencer) wants() (wanted, holds bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted, s.holds
}

// in is this sequencer in a value, and false when there is none or another of its name.
func (s *Sequencer) in(v cluster.Value) (cluster.Sequencer, bool) {
	found, ok := v.Sequencer(s.name)
	if !ok || found.Created() != s.created.Load() {
		return cluster.Sequencer{}, false
	}
	return found, true
}

// grant is what a member is given.
type grant struct {
	kind        grantKind
	incarnation *incarnation
	node        int64 // granted
	place       int64 // in line, from 1
}

type grantKind uint8

const (
	rejoining grantKind = iota // it has no say at present; what is written down may be used up
	inLine                     // it has no node ID, and gives back the one that it had in this incarnation
	unwanted                   // it wants none
	destroyed                  // nobody has
	granted                    // it has a node ID
)

// grant tells the sequencers what the value gives them.
func (m *Member) grant() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sequencers {
		if s.awaitsLog(m.value) {
			continue
		}
		v, ok := s.in(m.value)
		node, has := v.Node(m.incarnation.id)
		switch {
		case !ok:
			s.tell(grant{kind: destroyed}, ErrDestroyed)
		case has:
			s.tell(grant{kind: granted, incarnation: m.incarnation, node: node}, nil)
		case v.Attached(m.incarnation.id):
			place := slices.Index(v.Waiting(), m.incarnation.id) + 1
			s.tell(grant{kind: inLine, incarnation: m.incarnation, place: int64(place)},
				fmt.Errorf("%w: %s, and this member has place %d in line; it takes over by itself when others detach or leave", ErrWaiting, s.taken(v), place))
		default:
			s.tell(grant{}, errRejoining)
		}
	}
}

// taken says why there is no node ID for this member.
func (s *Sequencer) taken(v cluster.Sequencer) string {
	switch r := s.m.options.wish(s.name, s.definition); {
	case r != nil && r.From == r.To:
		return fmt.Sprintf("node ID %d is held", r.From)
	case r != nil:
		return fmt.Sprintf("all %d of them, %d to %d, are held", r.To-r.From+1, r.From, r.To)
	case v.Free() == 0:
		return fmt.Sprintf("all %d of them, 0 to %d, are held; the sequencer is at capacity", s.definition.Capacity(), s.definition.Capacity()-1)
	default:
		return fmt.Sprintf("%d are held, which is as many as its allocation allows", s.definition.Capacity()-v.Free())
	}
}

// tell passes on what it is given, if that is news, and why there are no IDs because of it.
func (s *Sequencer) tell(g grant, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked(g, why)
}

func (s *Sequencer) tellLocked(g grant, why error) {
	if !s.wanted && g.kind != destroyed {
		g, why = grant{kind: unwanted}, ErrDetached
	}
	if s.granted == g || s.granted.kind == destroyed {
		return
	}
	s.granted = g
	if why != nil {
		s.say(why)
	}
	s.showLocked()
	s.poke()
}

// poke has the sequencer's goroutine look again.
func (s *Sequencer) poke() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// begin is what it is given now. From then on it holds something, if it may claim.
func (s *Sequencer) begin() grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = s.holds || s.granted.kind == granted
	return s.granted
}

func (s *Sequencer) grant() grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted
}
