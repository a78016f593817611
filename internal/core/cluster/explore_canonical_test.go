package cluster

import (
	"cmp"
	"slices"
)

// canonical makes worlds equal that differ only in what can never matter again: entries that every live peer has
// applied, who sent what it has seen since, and which ID is which. Peers are alike but for the order of their IDs, by
// which a prepare finds its target; as it may find any, that does not matter either.
func (m *model) canonical(w world) world {
	m.fold(&w)
	var best world
	for i, turn := range m.turnsOf(w.base) {
		this := w
		this.base = turn.named
		this.rename(turn.names)
		if i == 0 || this.compare(&best) < 0 {
			best = this
		}
	}
	return best
}

// fold takes what every live peer has applied into the base, and forgets what is over.
func (m *model) fold(w *world) {
	values := m.along(w)
	pulses := w.pulses()
	first := w.n
	for id, p := range w.peers {
		if p.is(running) {
			first = min(first, p.at())
			k := m.values[values[p.at()]]
			if everybody := k.members | k.pending; everybody.has(uint8(id)) || everybody&^pulses == 0 {
				w.peers[id] &^= collecting
			}
		}
	}
	waits := func(e entry, at uint8) bool { // whether its sender is yet to apply it
		return e.sender() != nobody && w.peers[e.sender()].is(running) && w.peers[e.sender()].at() <= at
	}
	old := *w
	w.log, w.n = [lag]entry{}, 0
	var moved [lag + 1]uint8
	for i := first; i <= old.n; i++ {
		moved[i] = w.n
		if i == old.n {
			break
		}
		e := old.log[i]
		if !waits(e, i) {
			e = e.by(nobody)
		}
		if e.op() != opGC || e.sender() != nobody { // it is something to its sender only
			w.log[w.n] = e
			w.n++
		}
	}
	if w.late != noEntry && !old.peers[w.late.sender()%most].is(running) {
		if w.late = w.late.by(nobody); w.late.op() == opGC {
			w.late = noEntry
		}
	}
	for id, p := range w.peers {
		if p.is(running) {
			w.peers[id] = p&^0xff | live(moved[p.at()])
		}
	}
	w.base = values[first]
}

// rename gives the IDs that have no name yet one by where they turn up next, and all that are left by what they do.
func (w *world) rename(names [most + 1]uint8) {
	given := uint8(0)
	for _, name := range names {
		if name != nobody {
			given++
		}
	}
	give := func(id uint8) {
		if id != nobody && names[id] == nobody {
			names[id] = given
			given++
		}
	}
	log := append(w.log[:w.n:w.n], w.late)
	for _, e := range log {
		if e != noEntry {
			give(e.about())
			if e.op() == opPrepare {
				give(e.target())
			}
			give(e.sender())
		}
	}
	var rest []uint8
	for id, p := range w.peers {
		if p != 0 && names[id] == nobody {
			rest = append(rest, uint8(id))
		}
	}
	slices.SortFunc(rest, func(a, b uint8) int { return cmp.Compare(w.peers[a], w.peers[b]) })
	for _, id := range rest {
		give(id)
	}
	for i := range w.n {
		w.log[i] = w.log[i].renamed(&names)
	}
	if w.late != noEntry {
		w.late = w.late.renamed(&names)
	}
	old := w.peers
	w.peers = [most]live{}
	for id, p := range old {
		if p != 0 {
			w.peers[names[id]] = p
		}
	}
}

func (w *world) compare(other *world) int {
	return cmp.Or(
		slices.Compare(w.log[:], other.log[:]),
		slices.Compare(w.peers[:], other.peers[:]),
		cmp.Compare(w.late, other.late),
	)
}
