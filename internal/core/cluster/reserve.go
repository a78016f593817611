package cluster

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/firn-id/firn"
)

// Reservation is node IDs that no member gets: something else uses them, such as a database that makes IDs. It is
// immutable.
type Reservation struct {
	For   string  `json:"for"`          // what uses them; it identifies the reservation within its sequencer
	At    int64   `json:"at,omitempty"` // when it was asked for, as Reserving has it
	Since int64   `json:"since"`        // the position of the entry that made it
	Nodes []int64 `json:"nodes"`        // rising; nobody changes them
}

// Reserving asks for a Reservation: of Count node IDs, the highest of those for Later, then the highest that were never
// used, and then the longest free; or of Nodes, none of which a member or a purpose other than
// Later may have.
type Reserving struct {
	For   string  `json:"for"`             // 1 to 100 bytes of text without control characters
	At    int64   `json:"at,omitempty"`    // when, in Unix milliseconds by the sender's clock, for people; 0: unknown
	Count int64   `json:"count,omitempty"` // 1 to MaxReserved, or 0 with Nodes
	Nodes []int64 `json:"nodes,omitempty"` // rising, at most MaxReserved
}

// Reserve keeps node IDs for something else than members. Where there is a reservation for the same purpose, it
// changes nothing. Created is as in DestroySequencer.
type Reserve struct {
	Sequencer string `json:"sequencer"`
	Created   int64  `json:"created,omitempty"`
	Reserving
}

// Release ends the Reserve that was at the position Since. What had the node IDs has stopped: they are free. Created is
// as in DestroySequencer.
type Release struct {
	Sequencer string `json:"sequencer"`
	Created   int64  `json:"created,omitempty"`
	For       string `json:"for"`
	Since     int64  `json:"since"`
}

// Name returns reserve.
func (Reserve) Name() string { return "reserve" }

// Name returns release.
func (Release) Name() string { return "release" }

// MaxReserved is how many node IDs one reservation can have.
const MaxReserved = 1024

// Later is the purpose of node IDs that nothing uses yet. A Reserve for another purpose takes its node IDs from there
// first, and the last of them ends it.
const Later = "later"

// Reservations yields the reservations in the order of their purposes.
func (s Sequencer) Reservations() iter.Seq[*Reservation] { return values(s.reserved) }

// Reservation returns the reservation for a purpose, or nil.
func (s Sequencer) Reservation(purpose string) *Reservation {
	r, _ := s.reserved.get(purpose)
	return r
}

// ReservedFor returns the reservation that has a node ID, or nil.
func (s Sequencer) ReservedFor(node int64) *Reservation {
	for _, r := range s.reserved.all() {
		if _, ok := slices.BinarySearch(r.Nodes, node); ok {
			return r
		}
	}
	return nil
}

// Unused reports whether no member has a node ID, and nothing else either: it may be one for Later.
func (s Sequencer) Unused(node int64) bool {
	_, held := s.nodes.get(node)
	r := s.ReservedFor(node)
	return s.NodeIDs().Holds(node) && !held && (r == nil || r.For == Later)
}

// Reserved returns how many node IDs are reserved.
func (s Sequencer) Reserved() (n int64) {
	for _, r := range s.reserved.all() {
		n += int64(len(r.Nodes))
	}
	return n
}

// UsedUntil returns the instant before which the IDs of a reservation were made, the greatest of which is given. An
// error is returned when that is not an ID of one of its node IDs, or the IDs are scattered: the greatest is not the
// latest then.
func (s Sequencer) UsedUntil(r *Reservation, greatest firn.ID) (time.Time, error) {
	if s.definition.Scattered {
		return time.Time{},
			errors.New("the greatest scattered ID is not the latest one; want until when they were made")
	}
	layout := s.definition.IDLayout()
	at, err := layout.Time(greatest)
	if err != nil {
		return at, err
	}
	node, err := layout.NodeID(greatest)
	if _, ok := slices.BinarySearch(r.Nodes, node); err == nil && !ok {
		err = fmt.Errorf("the ID %d is of the node ID %d; want one of %v, which are reserved for %q", greatest, node,
			r.Nodes, r.For)
	}
	return at.Add(layout.Tick), err
}

func (c Reserve) validate() error {
	return errors.Join(DestroySequencer{c.Sequencer, c.Created}.validate(), c.Validate())
}

func (c Release) validate() error {
	if c.Since < 0 {
		return fmt.Errorf("reserved at the position %d; want 0 or more", c.Since)
	}
	return errors.Join(DestroySequencer{c.Sequencer, c.Created}.validate(), checkPurpose(c.For))
}

// Validate returns an error when a field has another value than it may have.
func (r Reserving) Validate() error {
	switch {
	case r.Nodes == nil && (r.Count < 1 || r.Count > MaxReserved):
		return fmt.Errorf(`a "count" of %d; want 1 to %d`, r.Count, MaxReserved)
	case r.Nodes != nil && r.Count != 0:
		return errors.New(`"count" beside "nodes"; want one of the two`)
	case r.Nodes != nil && !areNodes(r.Nodes):
		return fmt.Errorf(`"nodes" is %.120s; want 1 to %d rising node IDs`, fmt.Sprint(r.Nodes), MaxReserved)
	case r.At < 0 || r.At > 253402300799999: // 9999-12-31
		return fmt.Errorf(`"at" is %d; want Unix milliseconds, or 0 for unknown`, r.At)
	}
	return checkPurpose(r.For)
}

func areNodes(nodes []int64) bool {
	rising := len(nodes) > 0 && len(nodes) <= MaxReserved && nodes[0] >= 0
	for i := 1; i < len(nodes); i++ {
		rising = rising && nodes[i-1] < nodes[i]
	}
	return rising
}

func checkPurpose(purpose string) error {
	if strings.ContainsFunc(purpose, unicode.IsControl) { // of what is printable, programs have different ideas
		return fmt.Errorf(`"for" is %.120q; want no control characters`, purpose)
	}
	return checkID("for", purpose)
}

func (c Reserve) apply(v *Value) Outcome {
	return v.changeReservations(c.Sequencer, c.Created, func(s Sequencer) (Sequencer, Outcome) {
		return s.reserve(c.Reserving, v.position)
	})
}

// reserve takes node IDs from the free list.
func (s Sequencer) reserve(c Reserving, position int64) (Sequencer, Outcome) {
	if r := s.Reservation(c.For); r != nil {
		if c.Nodes == nil && c.Count == int64(len(r.Nodes)) || slices.Equal(c.Nodes, r.Nodes) {
			return s, unchanged
		}
		return s, refused(fmt.Sprintf("%d node IDs are reserved for that, %d to %d", len(r.Nodes), r.Nodes[0],
			r.Nodes[len(r.Nodes)-1]))
	}
	r := &Reservation{For: c.For, At: c.At, Since: position, Nodes: c.Nodes}
	var rest Sequencer
	var out Outcome
	if c.Nodes == nil {
		rest, r.Nodes, out = s.takeLast(c.Count)
	} else {
		rest, out = s.takeNamed(c.Nodes)
	}
	if out != applied {
		return s, out
	}
	rest.reserved = rest.reserved.put(r.For, r)
	return rest, applied
}

// kept returns the node IDs that are reserved for Later.
func (s Sequencer) kept() []int64 {
	if r := s.Reservation(Later); r != nil {
		return r.Nodes
	}
	return nil
}

// keep leaves only these of the node IDs that are reserved for Later.
func (s Sequencer) keep(nodes []int64) Sequencer {
	r := s.Reservation(Later)
	switch {
	case r == nil || len(nodes) == len(r.Nodes):
	case len(nodes) == 0:
		s.reserved = s.reserved.without(Later)
	default:
		less := *r
		less.Nodes = nodes
		s.reserved = s.reserved.put(Later, &less)
	}
	return s
}

// takeNamed takes these node IDs, from those for Later or the free ones.
func (s Sequencer) takeNamed(nodes []int64) (Sequencer, Outcome) {
	all, kept := s.NodeIDs(), slices.Clone(s.kept())
	for _, node := range nodes {
		holder, held := s.nodes.get(node)
		switch r := s.ReservedFor(node); {
		case !all.Holds(node):
			return s, refused(fmt.Sprintf("there is no node ID %d; want %d to %d", node, all.From, all.To))
		case held:
			return s, refused(fmt.Sprintf("the member %s has the node ID %d", holder, node))
		case r == nil:
			s.free, _, _ = s.free.take(&Range{From: node, To: node})
		case r.For == Later:
			at, _ := slices.BinarySearch(kept, node)
			kept = slices.Delete(kept, at, at+1)
		default:
			return s, refused(fmt.Sprintf("the node ID %d is reserved for %q", node, r.For))
		}
	}
	return s.keep(kept), applied
}

// takeLast takes so many node IDs, see Reserving.
func (s Sequencer) takeLast(count int64) (_ Sequencer, taken []int64, _ Outcome) {
	kept := s.kept()
	left := max(len(kept)-int(count), 0)
	taken = slices.Clone(kept[left:])
	s = s.keep(slices.Clip(kept[:left]))
	for int64(len(taken)) < count {
		within := new(Range)
		if n := s.free.fresh.len(); n > 0 {
			_, last := s.free.fresh.at(n - 1)
			*within = Range{From: last, To: last}
		} else {
			within = nil
		}
		var node int64
		var ok bool
		if s.free, node, ok = s.free.take(within); !ok {
			return s, nil, refused(fmt.Sprintf("only %d node IDs are free", len(taken)))
		}
		taken = append(taken, node)
	}
	slices.Sort(taken)
	return s, taken, applied
}

func (c Release) apply(v *Value) Outcome {
	return v.changeReservations(c.Sequencer, c.Created, func(s Sequencer) (Sequencer, Outcome) {
		r := s.Reservation(c.For)
		if r == nil || r.Since != c.Since {
			return s, unchanged
		}
		s.reserved = s.reserved.without(r.For)
		for _, node := range r.Nodes {
			s.free = s.free.give(node)
		}
		return s, applied
	})
}

// changeReservations changes those of a sequencer, and allocates its node IDs again. Created is that of the command.
func (v *Value) changeReservations(name string, created int64, do func(Sequencer) (Sequencer, Outcome)) Outcome {
	switch s, ok := v.sequencers.get(name); {
	case !ok:
		return refused(noSequencer)
	case s.definition.Claimed():
		return refused(noNodeIDs)
	case created != 0 && created != s.created:
		return refused(otherGeneration)
	default:
		s, out := do(s)
		if out == applied {
			v.sequencers = v.sequencers.put(name, s.allocate(v.peers.len()))
		}
		return out
	}
}

func (s *restored) restoreReserved(r sequencerCheckpoint, position int64) error {
	for _, j := range r.Reserved {
		if err := (Reserving{For: j.For, At: j.At, Nodes: append([]int64{}, j.Nodes...)}).Validate(); err != nil {
			return err
		}
		if s.Reservation(j.For) != nil || j.Since < s.created || j.Since > position {
			return fmt.Errorf("a reservation for %q, made at %d; want each purpose once, and %d to %d", j.For, j.Since,
				s.created, position)
		}
		for _, node := range j.Nodes {
			if err := s.account(node); err != nil {
				return err
			}
		}
		s.reserved = s.reserved.put(j.For, &j)
	}
	return nil
}
