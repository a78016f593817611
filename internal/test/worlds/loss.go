package main

import (
	"fmt"
	"time"
)

// lose has the store lose writes, under the assumptions that docs/proof.md lists: nothing of before is under way, and
// somebody who has read more than the store still has reaches it.
func (m *maker) lose() {
	m.keep(Event{Kind: Faultless})
	m.keep(Event{Kind: Resume})
	m.down = false
	for _, c := range m.Machines {
		m.cut[c.Name] = false
		m.keep(Event{Kind: Heal, Machine: c.Name})
		m.keep(Event{Kind: Lag, Machine: c.Name})
		m.keep(Event{Kind: Start, Machine: c.Name})
		m.up[c.Name] = true
	}
	if m.chance(2) {
		m.keep(Event{Kind: Backup})
	}
	m.quietly(40 * time.Second)
	for _, c := range m.Machines { // an operator's call that was under way may have expelled somebody
		m.keep(Event{Kind: Start, Machine: c.Name})
	}
	m.quietly(10 * time.Second)
	wrong, off := m.misset()
	m.marks()
	ahead, after := m.unused(), 5*time.Second
	if m.losses == 1 && m.chance(2) {
		ahead = 0
	}
	if ahead > 0 {
		if off == 0 {
			m.someGo()
		}
		after = pick(m, 5*time.Second, 20*time.Second, time.Minute)
	}
	m.keep(Event{Kind: SetBack, Count: ahead})
	m.newcomers()
	for m.losses < 12 && m.chance(2) { // versions are 64 bits
		m.loseAgain()
		m.newcomers()
	}
	m.quietly(after)
	if off != 0 {
		m.keep(Event{Kind: Step, Machine: wrong, For: -off})
	}
	m.keep(Event{Kind: Faulty})
}

// loseAgain has the store lose writes once more, at any moment of the wait after a loss or soon after it: all of them,
// or those since the first floor had just been written. Versions go on where none ever were.
func (m *maker) loseAgain() {
	again := m.chance(2)
	if again {
		m.now += m.upTo(100 * time.Millisecond)
		m.keep(Event{Kind: Backup})
	}
	m.quietly(time.Millisecond + m.upTo(pick(m, 200*time.Millisecond, 3*time.Second, 20*time.Second, time.Minute)))
	if again {
		m.marks()
	}
	m.keep(Event{Kind: SetBack, Count: m.unused()})
}

// marks has all write to the log, and read it, so that they have seen more than is in a backup.
func (m *maker) marks() {
	for _, c := range m.Machines {
		m.keep(Event{Kind: Create, Machine: c.Name, Sequencer: fmt.Sprint("marks-", len(m.Events))})
	}
	m.quietly(2 * time.Second)
}

// unused is by how many versions a store has to go on to have those that no store had before, whatever backup it is set
// back to.
func (m *maker) unused() int64 {
	m.losses++
	return 1_000_000_000 << (2 * m.losses)
}

// misset sets a clock wrong, if there are enough others to refuse it. All then stay, and reach the store: a clock that
// nobody is there to refuse is believed, and one that was refused may settle no floor when it is left alone.
func (m *maker) misset() (machine string, off time.Duration) {
	if len(m.Machines) < 3 || m.chance(2) {
		return "", 0
	}
	machine, off = pick(m, m.Machines[1:]...).Name, pick(m, -time.Hour, -30*time.Second, 30*time.Second, furthest)
	m.keep(Event{Kind: Step, Machine: machine, For: off})
	m.keep(Event{Kind: Leave, Machine: machine}) // one that runs on keeps its ID time
	m.now += time.Second
	m.keep(Event{Kind: Start, Machine: machine})
	m.quietly(20 * time.Second)
	return machine, off
}

// someGo has some crash or be out of reach while the store loses writes. One of the others notices that. Versions must
// not come again then: those that are out of reach would take other owners' for their own.
func (m *maker) someGo() {
	for _, c := range m.Machines[1:] {
		switch m.IntN(4) {
		case 0:
			m.add(Event{Kind: Expire, Machine: c.Name})
			m.add(Event{Kind: Crash, Machine: c.Name})
			m.up[c.Name] = false
		case 1:
			m.now += m.upTo(time.Second)
			m.add(Event{Kind: CutOff, Machine: c.Name})
			m.cut[c.Name] = true
		}
	}
}

// newcomers are started right after a loss, while the others write the floor or wait for it.
func (m *maker) newcomers() {
	for _, c := range m.Machines {
		if !m.up[c.Name] && m.chance(2) {
			m.now += m.upTo(pick(m, 50*time.Millisecond, 5*time.Second))
			m.start(c.Name)
		}
	}
}
