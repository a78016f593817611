package peer

import (
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/journal"
)

// note writes a line about this sequencer into the member's journal.
func (s *Sequencer) note(l journal.Line) {
	l.Sequencer = s.name
	s.m.journal.Write(l)
}

// noteGiven notes IDs of one node ID that a caller is about to get, before they are scattered: a line for each run
// without a gap.
func (s *Sequencer) noteGiven(ids ...firn.ID) {
	stride := firn.ID(1) // between one ID of a node ID and the next
	if s.layout.NodeLowest {
		stride = firn.ID(s.layout.NodeIDs())
	}
	for n := 1; len(ids) > 0; ids, n = ids[n:], 1 {
		for n < len(ids) && ids[n] == ids[n-1]+stride {
			n++
		}
		first, last := ids[0], ids[n-1]
		node, _ := s.layout.NodeID(first) // the layout has made them
		from, _ := s.layout.Time(first)
		until, _ := s.layout.Time(last)
		s.note(journal.Line{
			Do: journal.Given, Node: node, First: int64(first), Last: int64(last), Count: int64(n),
			From: from.UnixMilli(), Until: until.Add(s.layout.Tick + time.Millisecond - 1).UnixMilli(),
		})
	}
}
