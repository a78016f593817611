package member

import (
	"fmt"

	"github.com/firn-id/firn/cluster"
)

// attaches is what the member owes the log so that it is attached where it wants to be.
func (m *Member) attaches(v cluster.Value, id string) []cluster.Command {
	m.mu.Lock()
	defer m.mu.Unlock()
	var owed []cluster.Command
	for name, s := range m.sequencers {
		if v, ok := s.in(v); ok && !v.Attached(id) {
			owed = append(owed, cluster.Attach{Sequencer: name, Member: id, Nodes: m.options.Nodes})
		}
	}
	return owed
}

// in is this sequencer in a value. One of the same name with another definition is another one: IDs of both could be
// the same.
func (s *Sequencer) in(v cluster.Value) (cluster.Sequencer, bool) {
	found, ok := v.Sequencer(s.name)
	if !ok || !found.Definition().Equal(s.definition) {
		return cluster.Sequencer{}, false
	}
	return found, true
}

// phase is where a member stands with a sequencer.
type phase uint8

const (
	rejoining phase = iota // it has no say at present; what is written down may be used up
	inLine                 // it has no node ID, and gives back the one that it had in this life
	destroyed              // nobody has
	granted                // it has a node ID
)

// grant is what the value gives a member.
type grant struct {
	phase phase
	life  *life
	node  int64 // in line: the place there
}

// grant tells the sequencers what the value gives them.
func (m *Member) grant() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sequencers {
		v, ok := s.in(m.value)
		node, has := v.Node(m.life.id)
		switch {
		case !ok && m.value.IsMember(m.life.id):
			s.tell(grant{phase: destroyed}, ErrDestroyed)
		case has:
			s.tell(grant{phase: granted, life: m.life, node: node}, nil)
		case v.Attached(m.life.id):
			place, line := 0, v.Waiting()
			for place < len(line) && line[place] != m.life.id {
				place++
			}
			s.tell(grant{phase: inLine, life: m.life, node: int64(place)}, fmt.Errorf("%w: %s, and this member has place %d in line", ErrWaiting, s.taken(v), place+1))
		default:
			s.tell(grant{phase: rejoining}, errRejoining)
		}
	}
}

// taken says why there is no node ID for this member.
func (s *Sequencer) taken(v cluster.Sequencer) string {
	switch r := s.m.options.Nodes; {
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

// tell passes on what the value gives, if that is news.
func (s *Sequencer) tell(g grant, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.granted == g {
		return
	}
	s.granted = g
	if why != nil {
		s.say(why)
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
}

func (s *Sequencer) grant() grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted
}
