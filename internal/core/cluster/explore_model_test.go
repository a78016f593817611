package cluster

import (
	"fmt"
	"strings"
)

// world is a log, and the live peers that replay it. What every live peer has applied is folded into one value, so
// that a world is small however long its log has become. It is comparable.
//
// A command that changes nothing leaves no trace here: to have sent it is to have done nothing.
type world struct {
	base  number // the value at the slowest live peer
	n     uint8  // how many entries come after it
	log   [lag]entry
	peers [most]live // by ID
	late  entry      // a command that its sender has sent and that has not reached the log; noEntry: none
	left  budget     // of what may yet go wrong
}

// lag is how far the slowest live peer may be behind the log: until it has caught up, nothing more is appended.
const lag = 16

const noEntry = ^entry(0)

// live is a running peer, under its current ID: how much of the log it has applied, and some flags. Zero: there is
// none.
type live uint16

const (
	running    live = 1 << 8 << iota
	pulsing         // its session lives: no peer takes it for dead
	evicted         // it was a member, and has seen that it no longer is
	collecting      // it can't join, has seen its own peer-gc, and removes dead members
	deaf            // it has lost the watch on a joiner; under broken rules only
)

func (p live) at() uint8         { return uint8(p) }
func (p live) is(flag live) bool { return p&flag != 0 }

// budget is how often what may go wrong still may.
type budget struct {
	crashes   uint8 // a peer ends; its pulse ends at once, or it was slow before
	losses    uint8 // a peer's pulse ends while it goes on; then it finds out, and comes back under a new ID
	comebacks uint8 // a peer starts again after a crash
	aborts    uint8 // a joiner loses its patience
	lates     uint8 // a command is late: meanwhile its sender goes on, or crashes
	verbs     uint8 // an operator expels, drains or moves
	declines  uint8 // a member can't use a node ID
	leaves    uint8 // a peer leaves by itself: it says so, and ends
	mistakes  uint8 // a joiner takes a peer for dead that did not answer its call in time
}

// scope is what is explored.
type scope struct {
	peers  int
	budget budget
	lag    uint8
	nodes  int64 // of a sequencer that they attach to and detach from; 0: there is none
	policy bool  // half of the members serve that sequencer, the others another one
}

// move is what happened, for traces.
type move struct {
	who  uint8
	what string
	e    entry
}

func (m move) String() string {
	s := "a peer that is gone"
	if m.e != noEntry && m.e.op() >= opExpel && m.who == nobody {
		s = "an operator"
	}
	if m.who != nobody {
		s = letters[m.who]
	}
	s += " " + m.what
	if m.e != noEntry {
		s += fmt.Sprintf(" %s %v", m.e.command().Name(), m.e.command())
	}
	return s
}

// pulses are the IDs that are not taken for dead.
func (w *world) pulses() (pulses ids) {
	for id, p := range w.peers {
		if p.is(pulsing) {
			pulses |= 1 << id
		}
	}
	return pulses
}

// values are those at each place of the log.
func (t *table) along(w *world) (values [lag + 1]number) {
	values[0] = w.base
	for i := range w.n {
		values[i+1] = t.after(values[i], w.log[i])
	}
	return values
}

// model enumerates what can happen.
type model struct {
	*table
	scope
	held  bool // a peer could not append before the slowest one had caught up
	visit func(m move, next world, due bool)
}

// next calls visit with everything that can happen in a world. What is due happens sooner or later: a peer that
// can always do it does it at some time. For a peer without a pulse only finding that out is due.
func (m *model) next(w world) {
	values := m.along(&w)
	pulses := w.pulses()
	runs := 0
	for id := range uint8(most) {
		if p := w.peers[id]; p.is(running) {
			runs++
			m.steps(w, id, &values)
			m.sends(w, id, &values, pulses)
			m.fails(w, id, &values)
		}
	}
	if runs < m.peers && w.left.comebacks > 0 {
		n := w
		n.left.comebacks--
		m.start(n, "starts after a crash", false)
	}
	if w.left.verbs > 0 && w.n < m.lag {
		m.operates(w, &values)
	}
	if w.late != noEntry && w.n < m.lag {
		n := w
		n.late = noEntry
		m.append(n, w.late.sender(), w.late, &values, "was late to append", false)
	}
}

// operates is what an operator may append: any verb that changes something at the end of the log.
func (m *model) operates(w world, values *[lag + 1]number) {
	w.left.verbs--
	last := values[w.n]
	for id := range uint8(most) {
		for op := opExpel; op <= opRelease; op++ {
			if op >= opKeep && id > 0 {
				break
			}
			for node := range uint8(max(m.nodes, 1)) {
				e, any := newEntry(op, id, node), op == opMove || op == opKeep || op == opReserve
				if (any || node == 0) && m.after(last, e) != last {
					n := w
					n.log[n.n] = e
					n.n++
					m.visit(move{nobody, "appends", e}, n, false)
				}
			}
		}
	}
}

// start brings a peer up under a new ID: one that is nowhere to be found.
func (m *model) start(w world, what string, due bool) {
	used := m.used(&w)
	for id := range uint8(most) {
		if !used.has(id) {
			w.peers[id] = running | pulsing
			m.visit(move{id, what, noEntry}, w, due)
			return
		}
	}
	panic("too few IDs for the exploration")
}

func (m *model) used(w *world) ids {
	k := m.values[w.base]
	used := k.members | k.pending | k.expelled
	for id, p := range w.peers {
		if p != 0 {
			used |= 1 << id
		}
	}
	for _, e := range append(w.log[:w.n:w.n], w.late) {
		if e != noEntry {
			used |= 1 << e.about()
		}
	}
	return used
}

// steps is that a peer applies its next entry.
func (m *model) steps(w world, id uint8, values *[lag + 1]number) {
	p := w.peers[id]
	if p.at() == w.n {
		return
	}
	e := w.log[p.at()]
	before, after := m.values[values[p.at()]], m.values[values[p.at()+1]]
	p++
	if e.op() == opGC && e.about() == id {
		p |= collecting
	}
	if before.members.has(id) && !after.members.has(id) {
		p |= evicted
		if p.is(pulsing) && e.op() != opExpel && m.budget.mistakes == 0 {
			m.fail("%s, a member with a pulse, was taken out by %v", letters[id], e.command())
		}
	}
	if m.oneSlot {
		switch b, a := before.joinerOf(id), after.joinerOf(id); {
		case a == 0 || a != b:
			p &^= deaf
		case before.watcherOf(id) != after.watcherOf(id):
			p |= deaf
		}
	}
	w.peers[id] = p
	if after.expelled.has(id) {
		w.peers[id] = 0
		m.visit(move{id, "is expelled and ends", e}, w, p.is(pulsing))
		return
	}
	m.visit(move{id, "applies", e}, w, p.is(pulsing))
}

func (k *known) joinerOf(watcher uint8) ids { return k.watches[watcher] & k.pending }

func (k *known) watcherOf(member uint8) uint8 {
	for id, watched := range k.ring {
		if k.members.has(uint8(id)) && watched == member {
			return uint8(id)
		}
	}
	return nobody
}

// sends is what a peer may append at the value that it has reached.
func (m *model) sends(w world, id uint8, values *[lag + 1]number, pulses ids) {
	p := w.peers[id]
	if w.n == m.lag {
		m.held = true
		return
	}
	k := m.values[values[p.at()]]
	if !p.is(evicted) {
		for _, duty := range k.duties[id] {
			m.send(w, id, duty, values, "appends", p.is(pulsing))
		}
	}
	watches := k.watches[id] &^ pulses
	if p.is(deaf) {
		watches &^= k.pending
	}
	everybody := k.members | k.pending
	dead := everybody &^ pulses
	outside := k.members != 0 && !everybody.has(id)
	if outside && p.is(collecting) {
		watches |= dead
	}
	for other := range uint8(most) {
		if watches.has(other) {
			m.send(w, id, newEntry(opLeave, other, nobody), values, "finds it dead and appends", p.is(pulsing))
		}
	}
	// With nobody dead it would do nothing: it is sent all the same, and changes nothing.
	if outside && len(k.candidates) == 0 && !p.is(collecting) && dead != 0 && !m.noGC {
		m.send(w, id, newEntry(opGC, id, nobody), values, "can't get in and appends", p.is(pulsing))
	}
	if w.left.mistakes > 0 && !k.members.has(id) && !p.is(evicted) {
		for other := range uint8(most) {
			if everybody.has(other) && other != id && !watches.has(other) {
				n := w
				n.left.mistakes--
				m.send(n, id, newEntry(opLeave, other, nobody), values, "hears nothing of it and appends", false)
			}
		}
	}
	if k.pending.has(id) && w.left.aborts > 0 {
		n := w
		n.left.aborts--
		m.send(n, id, newEntry(opAbort, id, nobody), values, "loses its patience and appends", false)
	}
	if m.nodes > 0 && k.members.has(id) {
		switch {
		case k.attached.has(id):
			m.send(w, id, newEntry(opDetach, id, nobody), values, "appends", false)
		default: // in vain, if it is drained
			m.send(w, id, newEntry(opAttach, id, nobody), values, "appends", false)
		}
	}
	for node := range uint8(m.nodes) {
		if k.held[id]>>node&1 != 0 && w.left.declines > 0 {
			n := w
			n.left.declines--
			m.send(n, id, newEntry(opDecline, id, node), values, "can't use it and appends", false)
		}
	}
}

// send appends a command, or has it be late, unless its sender waits for the same one.
func (m *model) send(w world, id uint8, e entry, values *[lag + 1]number, what string, due bool) {
	for _, sent := range w.log[w.peers[id].at():w.n] {
		if sent.sender() == id && sent.op() == e.op() && sent.about() == e.about() {
			return
		}
	}
	m.append(w, id, e, values, what, due)
	if w.late == noEntry && w.left.lates > 0 {
		w.left.lates--
		w.late = e.by(id)
		m.visit(move{id, "sends late", e}, w, false)
	}
}

// append puts a command into the log. A prepare may get each of the candidates, as its position has it.
func (m *model) append(w world, id uint8, e entry, values *[lag + 1]number, what string, due bool) {
	last := values[w.n]
	targets := []uint8{e.target()}
	if k := m.values[last]; e.op() == opPrepare && len(k.candidates) > 0 {
		targets = k.candidates
	}
	for _, target := range targets {
		n, sent := w, newEntry(e.op(), e.about(), target)
		if m.after(last, sent) != last || e.op() == opGC {
			n.log[n.n] = sent.by(id)
			n.n++
		}
		m.visit(move{id, what, sent}, n, due)
	}
}

// fails is what may go wrong with a peer.
func (m *model) fails(w world, id uint8, values *[lag + 1]number) {
	if w.left.crashes > 0 {
		n := w
		n.left.crashes--
		n.peers[id] = 0
		m.visit(move{id, "crashes", noEntry}, n, false)
	}
	if w.left.leaves > 0 && w.n < m.lag {
		n := w
		n.left.leaves--
		n.peers[id] = 0
		m.append(n, id, newEntry(opLeave, id, nobody), values, "leaves and appends", false)
	}
	if p := w.peers[id]; !p.is(pulsing) {
		w.peers[id] = 0
		if m.values[values[w.n]].expelled.has(id) {
			m.visit(move{id, "has no pulse, reads that it is expelled, and ends", noEntry}, w, true)
			return
		}
		m.start(w, "is "+letters[id]+", which has found that it has no pulse, and starts again", true)
	} else if p.is(evicted) && m.budget.mistakes > 0 && !m.stays {
		w.peers[id] = 0
		m.start(w, "is "+letters[id]+", which has read that it was taken out, and starts again", true)
	} else if w.left.losses > 0 {
		w.left.losses--
		w.peers[id] &^= pulsing
		m.visit(move{id, "loses its pulse, and lives", noEntry}, w, false)
	}
}

// good tells whether nobody owes anything: all live peers have applied everything and are members, and there is nobody
// else. If no peer is left there is nothing to be wished for.
func (m *model) good(w *world) bool {
	var alive ids
	for id, p := range w.peers {
		if p.is(running) {
			alive |= 1 << id
			if !p.is(pulsing) {
				return false
			}
		}
	}
	k := m.values[w.base]
	return alive == 0 || w.n == 0 && k.members == alive && k.pending == 0
}

// describe is the value at the end of the log, and how far each live peer is.
func (m *model) describe(w *world) string {
	values := m.along(w)
	parts := []string{m.values[values[w.n]].value.String()}
	for id, p := range w.peers {
		if !p.is(running) {
			continue
		}
		part := []string{fmt.Sprintf("%s at %d of %d", letters[id], p.at(), w.n)}
		for _, f := range []struct {
			is   bool
			name string
		}{
			{p.is(evicted), "evicted"},
			{p.is(collecting), "collecting"},
			{p.is(deaf), "deaf"},
			{!p.is(pulsing), "no pulse"},
		} {
			if f.is {
				part = append(part, f.name)
			}
		}
		parts = append(parts, strings.Join(part, ", "))
	}
	return strings.Join(parts, "; ")
}
