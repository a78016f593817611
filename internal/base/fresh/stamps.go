package fresh

import "slices"

// Stamps are the stamps of a writer's writes of one key, each of which carries one of its own. By them the writer knows
// its writes again after a lost answer, and tells them from those of a copy of itself. The zero value has none. Stamps
// are not safe for concurrent use.
type Stamps struct {
	sent []string // of the write that was settled last, and of those since, the oldest first
}

// stampLength is how long a stamp is: 65 bits.
const stampLength = 13

// mostStamps is how many are kept. Where the store gives no answers for hours, the oldest but the one that was settled
// are forgotten; a write that was among them then counts as one of a copy.
const mostStamps = 4096

// Next returns the stamp of a write that is about to be sent.
func (s *Stamps) Next() string {
	stamp := Text()[:stampLength]
	if len(s.sent) >= mostStamps {
		s.sent = slices.Delete(slices.Clone(s.sent), 1, 2) // not the one that was settled last
	}
	s.sent = append(s.sent, stamp)
	return stamp
}

// Sent reports whether a write with this stamp is the one that was settled last, or was sent since.
func (s *Stamps) Sent(stamp string) bool { return slices.Contains(s.sent, stamp) }

// Settle notes that the store has applied the write with this stamp, so that it applies none of the others that were
// sent.
func (s *Stamps) Settle(stamp string) { s.sent = []string{stamp} }

// Clone returns what a copy of the process has.
func (s *Stamps) Clone() Stamps { return Stamps{slices.Clone(s.sent)} }
