package cluster

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"unicode"
)

// Reservation is node IDs that no member gets: something else uses them, such as a database that makes IDs. It is
// immutable.
type Reservation struct {
	For   string // what uses them; it identifies the reservation within its sequencer
	Since int64  // the position of its Reserve
	nodes []int64
}

// Nodes returns the node IDs, in ascending order. The caller does not change them.
func (r *Reservation) Nodes() []int64 { return r.nodes }

// MaxReserved is how many node IDs one Reserve can take.
const MaxReserved = 1024

// Reservations yields the reservations in the order of their Reserve.
func (s Sequencer) Reservations() iter.Seq[*Reservation] { return values(s.reserved) }

// Reservation returns the reservation for a purpose, or nil.
func (s Sequencer) Reservation(purpose string) *Reservation {
	for _, r := range s.reserved.all() {
		if r.For == purpose {
			return r
		}
	}
	return nil
}

// reservedFor returns the reservation that has a node ID, or nil.
func (s Sequencer) reservedFor(node int64) *Reservation {
	for _, r := range s.reserved.all() {
		if _, ok := slices.BinarySearch(r.nodes, node); ok {
			return r
		}
	}
	return nil
}

// withheld returns how many node IDs are reserved.
func (s Sequencer) withheld() (n int64) {
	for _, r := range s.reserved.all() {
		n += int64(len(r.nodes))
	}
	return n
}

func (c Reserve) validate() error {
	switch {
	case c.Nodes == nil && (c.Count < 1 || c.Count > MaxReserved):
		return fmt.Errorf(`a "count" of %d; want 1 to %d`, c.Count, MaxReserved)
	case c.Nodes != nil && c.Count != 0:
		return errors.New(`"count" beside "from" and "to"; want one of the two`)
	case c.Nodes != nil && (c.Nodes.From < 0 || c.Nodes.To < c.Nodes.From || c.Nodes.To-c.Nodes.From >= MaxReserved):
		return fmt.Errorf(`node IDs from %d to %d; want 0 <= "from" <= "to", and at most %d of them`, c.Nodes.From,
			c.Nodes.To, MaxReserved)
	}
	return checkReservation(c.Sequencer, c.Created, c.For)
}

func (c Release) validate() error { return checkReservation(c.Sequencer, c.Created, c.For) }

func checkReservation(sequencer string, created int64, purpose string) error {
	for _, r := range purpose {
		if !unicode.IsPrint(r) {
			return fmt.Errorf(`"for" is %.120q; want printable characters`, purpose)
		}
	}
	return errors.Join(DestroySequencer{sequencer, created}.validate(), checkID("for", purpose))
}

func (c Reserve) apply(v *Value) Outcome {
	return v.changeReservations(c.Sequencer, c.Created, func(s Sequencer) (Sequencer, Outcome) {
		if r := s.Reservation(c.For); r != nil {
			if c.matches(r) {
				return s, unchanged
			}
			return s, refused(fmt.Sprintf("%d node IDs are reserved for that, %d to %d", len(r.nodes), r.nodes[0],
				r.nodes[len(r.nodes)-1]))
		}
		r := &Reservation{For: c.For, Since: v.position}
		var out Outcome
		if c.Nodes == nil {
			s.free, r.nodes, out = s.free.takeLast(c.Count)
		} else {
			s.free, r.nodes, out = s.takeNamed(*c.Nodes)
		}
		if out.Result == Applied {
			s.reserved = s.reserved.put(r.Since, r)
		}
		return s, out
	})
}

// matches reports whether a reservation is what the command asks for.
func (c Reserve) matches(r *Reservation) bool {
	if c.Nodes == nil {
		return c.Count == int64(len(r.nodes))
	}
	last := len(r.nodes) - 1
	return r.nodes[0] == c.Nodes.From && r.nodes[last] == c.Nodes.To && c.Nodes.Size() == int64(len(r.nodes))
}

// takeNamed takes all node IDs of a range from the free list.
func (s Sequencer) takeNamed(nodes Range) (rest freeList, taken []int64, out Outcome) {
	if all := s.NodeIDs(); nodes.From < all.From || nodes.To > all.To {
		return s.free, nil, refused(fmt.Sprintf("there are no node IDs %d to %d; want some of %d to %d", nodes.From,
			nodes.To, all.From, all.To))
	}
	rest = s.free
	for node := nodes.From; node <= nodes.To; node++ {
		if holder, held := s.nodes.get(node); held {
			return s.free, nil, refused(fmt.Sprintf("the member %s has the node ID %d", holder, node))
		}
		if r := s.reservedFor(node); r != nil {
			return s.free, nil, refused(fmt.Sprintf("the node ID %d is reserved for %q", node, r.For))
		}
		rest, _, _ = rest.take(&Range{From: node, To: node})
		taken = append(taken, node)
	}
	return rest, taken, applied
}

// takeLast takes so many node IDs: the highest of those that were never used, and then those that are the longest free.
func (l freeList) takeLast(count int64) (rest freeList, taken []int64, out Outcome) {
	rest = l
	for int64(len(taken)) < count {
		within := new(Range)
		if n := rest.fresh.len(); n > 0 {
			_, last := rest.fresh.at(n - 1)
			*within = Range{From: last, To: last}
		} else {
			within = nil
		}
		var node int64
		var ok bool
		if rest, node, ok = rest.take(within); !ok {
			return l, nil, refused(fmt.Sprintf("only %d node IDs are free", len(taken)))
		}
		taken = append(taken, node)
	}
	slices.Sort(taken)
	return rest, taken, applied
}

func (c Release) apply(v *Value) Outcome {
	return v.changeReservations(c.Sequencer, c.Created, func(s Sequencer) (Sequencer, Outcome) {
		r := s.Reservation(c.For)
		if r == nil {
			return s, unchanged
		}
		s.reserved = s.reserved.without(r.Since)
		for _, node := range r.nodes {
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

// reservedJSON is a reservation in a checkpoint.
type reservedJSON struct {
	For   string  `json:"for"`
	Since int64   `json:"since"`
	Nodes []int64 `json:"nodes"` // rising
}

func (s *restored) restoreReserved(r sequencerCheckpoint) error {
	since := s.created
	for _, j := range r.Reserved {
		if err := checkReservation("s", 0, j.For); err != nil {
			return err
		}
		if j.Since <= since || s.Reservation(j.For) != nil || len(j.Nodes) == 0 || len(j.Nodes) > MaxReserved ||
			!slices.IsSorted(j.Nodes) {
			return fmt.Errorf("a reservation for %q at %d; want rising positions, each purpose once, and 1 to %d rising "+
				"node IDs", j.For, j.Since, MaxReserved)
		}
		since = j.Since
		for _, node := range j.Nodes {
			if err := s.account(node); err != nil {
				return err
			}
		}
		s.reserved = s.reserved.put(j.Since, &Reservation{For: j.For, Since: j.Since, nodes: j.Nodes})
	}
	return nil
}
