package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store/memstore"
)

// maker makes a plan. It follows, roughly, who runs and who is cut off, so that what it has happen makes sense.
type maker struct {
	*rand.Rand
	Plan
	now  time.Duration
	up   map[string]bool
	cut  map[string]bool
	down bool // the store
	off  map[string]time.Duration

	apart  bool // there are two regions
	losses int  // how often the store was set back
}

var sequencers = []string{"orders", "users"}

// random returns the plan of a seed.
func random(seed uint64) Plan {
	m := &maker{
		Rand: rand.New(rand.NewPCG(seed, 5)),
		Plan: Plan{Seed: seed},
		up:   map[string]bool{}, cut: map[string]bool{}, off: map[string]time.Duration{},
	}
	m.Loses = m.chance(4)
	m.Right = !m.Loses && m.chance(2)
	m.apart = !m.Loses && m.chance(6)
	m.Journals, m.Strict, m.Timed = m.chance(2), m.chance(2), m.chance(2)
	m.machines()
	m.definitions()
	m.Checkpoint = pick[int64](m, 10, 40, 200, 1000)
	if !m.chance(6) {
		m.Faults = Faults{
			OneIn: pick[uint64](m, 4, 8, 20), Longest: pick(m, 20*time.Millisecond, time.Second, 8*time.Second),
			Outcomes: []memstore.Outcome{
				memstore.Answered, memstore.FailBefore, memstore.FailAfter,
				memstore.ApplyLate,
			},
		}
	}
	m.begin()
	lost := 0
	for range 150 + m.IntN(250) {
		if m.Loses && lost < 2 && m.chance(100) {
			lost++
			m.lose()
		}
		m.pause()
		m.event()
	}
	if m.Loses && lost == 0 {
		m.lose()
	}
	m.Calm = m.now
	return m.Plan
}

func (m *maker) chance(n int) bool { return m.IntN(n) == 0 }

func pick[T any](m *maker, from ...T) T { return from[m.IntN(len(from))] }

func (m *maker) upTo(d time.Duration) time.Duration { return time.Duration(m.Int64N(int64(d))) }

func (m *maker) machines() {
	ttl, window := pick(m, 2*time.Second, 5*time.Second, 12*time.Second),
		pick(m, 2*time.Second, 4*time.Second, 10*time.Second)
	if m.Loses { // long ones: what is reserved has to lie beyond what clocks may differ by
		window = pick(m, 4*time.Second, 10*time.Second, 30*time.Second)
	}
	for i := range 2 + m.IntN(4) {
		c := Machine{Name: fmt.Sprint("n", i+1), TTL: ttl, Window: window}
		if !m.Loses && m.chance(4) {
			c.Window = pick(m, 2*time.Second, 4*time.Second, 10*time.Second)
		}
		if m.chance(8) {
			c.Wish = pick(m, &cluster.Range{From: 0, To: 0}, &cluster.Range{From: 1, To: 3})
		}
		if m.chance(8) {
			c.Order = peer.WaitForIDs
		}
		if m.apart { // with shares of the node IDs of different sizes
			c.Wish, c.Region = nil, [...]cluster.Region{{Number: 2, Of: 8}, {Number: 3, Of: 4}}[i%2]
		}
		if m.Loses {
			c.Shared, c.Ahead = true, m.upTo(8*time.Second)-4*time.Second
		}
		m.Machines = append(m.Machines, c)
	}
}

// definitions are, of a world whose store loses writes or that has regions, one for each sequencer: others could make
// IDs that exist. Regions need a node ID each.
func (m *maker) definitions() {
	bits := pick(m, 4, 8, 22)
	scattered := m.chance(5)
	for range 6 {
		l := firn.Layout{
			Epoch: last.Layout.Epoch,
			Tick:  pick(m, time.Millisecond, time.Millisecond, 10*time.Millisecond), TimeBits: 41,
		}
		l.NodeBits = m.IntN(min(bits, 10) + 1)
		if m.apart {
			l.NodeBits = max(l.NodeBits, 3)
		}
		l.SequenceBits = bits - l.NodeBits
		if m.chance(4) {
			l.Epoch = l.Epoch.Add(-m.upTo(48 * time.Hour).Truncate(time.Second))
		}
		d := cluster.Define(l)
		d.Nodes = min(d.Nodes, pick[int64](m, 1, 2, 3, 8, 1024))
		if m.apart {
			d.Nodes = max(d.Nodes, 8)
		}
		if !m.Loses && m.chance(3) {
			d.Window = time.Second + m.upTo(4*time.Second)
		}
		if m.chance(5) {
			d.Allocation = m.allocation()
		}
		d.Scattered, d.RandomStart = scattered, m.chance(8)
		m.Definitions = append(m.Definitions, d)
	}
}

func (m *maker) allocation() cluster.Allocation {
	switch m.IntN(3) {
	case 0:
		return cluster.Allocation{Kind: cluster.AllocateCount, Count: 1 + m.Int64N(4)}
	case 1:
		return cluster.Allocation{Kind: cluster.AllocatePercent, Percent: 1 + m.Int64N(100)}
	default:
		return cluster.Allocation{}
	}
}

// definition is one for a sequencer.
func (m *maker) definition(sequencer string) int {
	if m.Loses || m.apart {
		return slices.Index(sequencers, sequencer)
	}
	return pick(m, 0, 0, 0, 1, 2, 3, 4, 5)
}

func (m *maker) add(e Event) {
	e.At = m.now
	m.Events = append(m.Events, e)
}

// keep adds an event that shrinking must leave in.
func (m *maker) keep(e Event) {
	e.Kept = true
	m.add(e)
}

func (m *maker) start(name string) {
	m.add(Event{Kind: Start, Machine: name})
	m.up[name], m.cut[name] = true, false
	for _, s := range sequencers {
		if m.Loses || !m.chance(4) {
			m.add(Event{Kind: Ensure, Machine: name, Sequencer: s, Definition: m.definition(s)})
		}
	}
}

// begin has most machines start.
func (m *maker) begin() {
	for i, c := range m.Machines {
		if i > 0 && m.chance(4) {
			continue
		}
		m.start(c.Name)
		if m.chance(2) {
			m.now += m.upTo(time.Second)
		}
	}
	m.now += m.upTo(3 * time.Second)
	m.add(Event{Kind: Faulty})
}

// pause lets time pass: none at all, some milliseconds, or long enough for others to notice.
func (m *maker) pause() {
	switch m.IntN(10) {
	case 0, 1, 2:
	case 3:
		m.now += m.upTo(3 * time.Second)
	case 4, 5, 6:
		m.now += m.upTo(300 * time.Millisecond)
	default:
		m.now += m.upTo(30 * time.Millisecond)
	}
}

// machine is one that runs, if there is any.
func (m *maker) machine() (string, bool) {
	var up []string
	for _, c := range m.Machines {
		if m.up[c.Name] {
			up = append(up, c.Name)
		}
	}
	if len(up) == 0 {
		return "", false
	}
	return pick(m, up...), true
}

func (m *maker) event() {
	name, ok := m.machine()
	switch {
	case m.chance(3) && ok:
		m.add(Event{Kind: Take, Machine: name, Sequencer: pick(m, sequencers...), Count: 1 + m.Int64N(160)})
	case m.chance(8) && ok && !m.apart:
		m.add(Event{Kind: Count, Machine: name, Count: 1 + m.Int64N(40)})
	case m.chance(4):
		m.add(Event{Kind: TakeAll, Count: 1 + m.Int64N(16)})
	case !ok, m.chance(5):
		m.trouble(name, ok)
	default:
		m.verb(name)
	}
}

// trouble is what nobody asked for.
func (m *maker) trouble(name string, ok bool) {
	switch n := m.IntN(15); {
	case !ok || n <= 1:
		if name = pick(m, m.Machines...).Name; !m.up[name] || m.chance(3) { // it may have been expelled
			m.start(name)
		}
	case n == 2:
		m.add(Event{Kind: pick(m, Leave, Crash), Machine: name})
		m.up[name] = false
	case n <= 5:
		m.cut[name] = !m.cut[name]
		m.add(Event{Kind: map[bool]Kind{true: CutOff, false: Heal}[m.cut[name]], Machine: name})
	case n <= 8:
		m.add(Event{Kind: Expire, Machine: name})
	case n == 9, n == 10:
		m.add(Event{Kind: Lag, Machine: name, For: pick(m, 0, 50*time.Millisecond, 2*time.Second, 8*time.Second)})
	case n == 11:
		m.down = !m.down
		m.add(Event{Kind: map[bool]Kind{true: Stop, false: Resume}[m.down]})
	case n <= 13 && !m.Right && !m.Loses:
		m.step(name)
	case n == 14:
		other, _ := m.machine()
		m.add(Event{Kind: Expel, Machine: name, Other: other})
	}
}

// furthest is how far a clock gets ahead of the others: so long somebody may have to wait in the end.
const furthest = time.Minute

func (m *maker) step(name string) {
	if m.chance(6) {
		m.add(Event{Kind: StepAll, For: pick(m, -5*time.Second, 5*time.Second, 20*time.Second, time.Hour)})
		return
	}
	by := pick(m, -time.Hour, -30*time.Second, -9*time.Second, -time.Second, time.Second, 5*time.Second, 30*time.Second,
		-m.off[name], -m.off[name])
	by = min(by, furthest-m.off[name])
	m.off[name] += by
	m.add(Event{Kind: Step, Machine: name, For: by})
}

// verb is what members do and operators have them do.
func (m *maker) verb(name string) {
	e := Event{Machine: name, Sequencer: pick(m, sequencers...)}
	e.Other, _ = m.machine()
	switch n := m.IntN(23); {
	case n < 5:
		e.Kind, e.Definition = Ensure, m.definition(e.Sequencer)
	case n < 8:
		e.Kind = Attach
	case n < 11:
		e.Kind = Detach
	case n < 12:
		e.Kind, e.Definition = Create, m.definition(e.Sequencer)
	case n < 15:
		if e.Kind, e.Definition = pick(m, Destroy, Replace, Replace), m.definition(e.Sequencer); m.Loses || m.apart {
			e.Kind = Detach
		}
	case n < 16:
		e.Kind = Drain
	case n < 18:
		e.Kind = Undrain
	case n < 19:
		e.Kind, e.Count = Move, m.Int64N(4)
	case n < 20:
		e.Kind, e.Allocation = Allocate, m.allocation()
	case n < 22:
		e.Kind, e.Count, e.For = Borrow, 1+m.Int64N(40), m.upTo(8*time.Second)
		if m.chance(3) {
			e.Kind, e.Count, e.For = Keep, 1+m.Int64N(3), m.upTo(15*time.Second)
		}
		if m.Loses || m.apart {
			e.Kind = Attach
		} else if m.chance(2) {
			e.Kind = Import
		}
	default:
		e = Event{Kind: Policy, Machine: name}
		if m.chance(2) {
			e.Shares = []cluster.Share{
				{Sequencer: sequencers[0], Percent: 1 + m.Int64N(99)},
				{Sequencer: sequencers[1]},
			}
		}
	}
	m.add(e)
}

// quietly lets nothing happen for so long but IDs.
func (m *maker) quietly(d time.Duration) {
	for end := m.now + d; m.now < end; m.now += m.upTo(min(d/8, 2*time.Second)) {
		m.add(Event{Kind: TakeAll, Count: 1 + m.Int64N(16)})
	}
}
