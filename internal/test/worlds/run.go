package main

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// Result is what became of a world.
type Result struct {
	Seed       uint64
	Steps      Steps
	Served     int           // of the members that lived in the end
	Settled    time.Duration // how long it took until all was well again
	Failures   []Failure     `json:",omitempty"`
	Transcript []string      `json:",omitempty"`
}

// Steps count what happened: a step is a call of the store, a log entry that a member replays, an ID, or an event of
// the plan.
type Steps struct{ Calls, Entries, IDs, Events int64 }

// Add adds the steps of another world.
func (s *Steps) Add(o Steps) {
	s.Calls, s.Entries, s.IDs, s.Events = s.Calls+o.Calls, s.Entries+o.Entries, s.IDs+o.IDs, s.Events+o.Events
}

// All is how many there are.
func (s Steps) All() int64 { return s.Calls + s.Entries + s.IDs + s.Events }

// world is a plan that is carried out.
type world struct {
	Plan
	ctx       context.Context
	begun     time.Time
	services  map[cluster.Region]*memstore.Service // one, or one for each region
	machines  []*machine
	byName    map[string]*machine
	processes []*process // all that ever ran
	backup    memstore.Backup
	down      bool // the store
	verbs     sync.WaitGroup

	faulty         atomic.Bool
	calls, entries atomic.Int64

	mu         sync.Mutex // guards what follows
	seen       *seen
	counted    *counted
	borrowers  int // how many there were
	transcript []line
	result     Result
}

// machine is where processes run, one after the other.
type machine struct {
	Machine
	off     atomic.Int64 // by how much its clock is ahead
	calls   atomic.Uint64
	process *process // nil: none runs
	starts  int
	cut     bool
	lag     time.Duration
	stale   []*handle // of processes that left
}

// process is a member with its way to the store. It is a store itself, which notes sessions and counts.
type process struct {
	*memstore.Client
	*machine
	world   *world
	name    string
	member  *peer.Member
	session atomic.Pointer[memstore.Session]
	journal *bytes.Buffer // nil: it keeps none
	ended   string        // why it may give no number any more; guarded by world.mu

	mu      sync.Mutex
	handles map[string][]*handle // by the name of the sequencer; the last is the present one
}

// handle is a sequencer as a process knows it.
type handle struct {
	*peer.Sequencer
	process *process
	lane    lane
	local   *peer.Local
	over    string // why it may give no ID any more; guarded by world.mu
	turns   int    // how often IDs were taken; guarded by world.mu
}

func (p *process) Traits() store.Traits { return store.Traits{Shared: p.Shared} }

// OpenSession notes the session, so that it can be ended.
func (p *process) OpenSession(ctx context.Context, ttl time.Duration) (store.Session, error) {
	s, err := p.Client.OpenSession(ctx, ttl)
	if session, ok := s.(*memstore.Session); ok && err == nil {
		p.session.Store(session)
	}
	return s, err
}

// Follow counts the entries.
func (p *process) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		for b, err := range p.Client.Follow(ctx, after) {
			p.world.entries.Add(int64(len(b.Entries)))
			if !yield(b, err) {
				return
			}
		}
	}
}

// simulate carries out a plan, in a bubble of its own. The result has a transcript if something fails, or with verbose.
func simulate(t *testing.T, p Plan, verbose bool) (r Result) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			Plan: p, ctx: t.Context(), begun: time.Now(), services: map[cluster.Region]*memstore.Service{},
			byName: map[string]*machine{}, seen: newSeen(), counted: newCounted(), result: Result{Seed: p.Seed},
		}
		for _, c := range p.Machines {
			m := &machine{Machine: c}
			m.off.Store(int64(c.Ahead))
			if w.services[c.Region] == nil {
				w.services[c.Region] = memstore.NewService()
				w.services[c.Region].Inject(w.fault)
			}
			w.machines, w.byName[c.Name] = append(w.machines, m), m
		}
		for _, e := range p.Events {
			time.Sleep(time.Until(w.begun.Add(e.At)))
			w.tell(e.String)
			w.do(e)
			w.result.Steps.Events++
		}
		time.Sleep(time.Until(w.begun.Add(p.Calm)))
		w.calm()
		w.settle()
		w.end()
		w.replay()
		w.result.Steps.Calls, w.result.Steps.Entries, w.result.Steps.IDs = w.calls.Load(), w.entries.Load(), w.seen.ids
		if verbose || len(w.result.Failures) > 0 {
			w.result.Transcript = w.tells()
		}
		r = w.result
	})
	return r
}

func (w *world) fault(c memstore.Call) memstore.Fault {
	w.calls.Add(1)
	m := w.byName[c.Client]
	n := m.calls.Add(1)
	if !w.faulty.Load() {
		return memstore.Fault{}
	}
	return w.Faults.of(w.Seed, c.Client, n)
}

func (w *world) now() time.Duration { return time.Since(w.begun) }

// fail notes that a rule is broken.
func (w *world) fail(rule, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(rule, fmt.Sprintf(format, args...))
}

func (w *world) failLocked(rule, text string) {
	if len(w.result.Failures) < 20 {
		w.result.Failures = append(w.result.Failures, Failure{Rule: rule, At: stamp(w.now()), Text: text})
		w.transcript = append(w.transcript, line{w.now(), func() string { return "!! " + rule + ": " + text }})
	}
}

// do has an event happen.
func (w *world) do(e Event) {
	m := w.byName[e.Machine]
	switch e.Kind {
	case Start:
		w.start(m)
	case Leave, Crash:
		w.stop(m, e.Kind == Crash)
	case CutOff, Heal:
		m.cut = e.Kind == CutOff
		w.connect()
	case Stop, Resume:
		w.down = e.Kind == Stop
		w.connect()
	case Lag:
		m.lag = e.For
		if m.process != nil {
			m.process.Lag(m.lag)
		}
	case Expire:
		if m.process != nil && m.process.session.Load() != nil {
			w.services[m.Region].Expire(m.process.session.Load())
		}
	case Step:
		m.off.Add(int64(e.For))
	case StepAll:
		for _, m := range w.machines {
			m.off.Add(int64(e.For))
		}
	case Take:
		w.take(m, e.Sequencer, e.Count)
	case TakeAll:
		for _, m := range w.machines {
			for _, s := range sequencers {
				w.take(m, s, e.Count)
			}
			if m.process != nil {
				m.process.countOn(e.Count)
			}
		}
	case Faulty, Faultless:
		w.faulty.Store(e.Kind == Faulty)
	case Backup:
		w.backup = w.services[cluster.Region{}].Backup()
	case SetBack:
		w.services[cluster.Region{}].RollBack(w.backup, store.Version(e.Count))
		w.backup = memstore.Backup{}
	default:
		w.call(m, e)
	}
}

func (w *world) start(m *machine) {
	if p := m.process; p != nil {
		if p.member.Err() == nil {
			return
		}
		w.stop(m, false) // it was expelled
	}
	m.starts++
	p := &process{
		Client: w.services[m.Region].Client(m.Name), machine: m, world: w, name: m.Name,
		handles: map[string][]*handle{},
	}
	if m.starts > 1 {
		p.name = fmt.Sprintf("%s (start %d)", m.Name, m.starts)
	}
	o := peer.Options{
		Region: m.Region, TTL: m.TTL, Window: m.Window, Owner: m.Name, Order: m.Order,
		CheckpointEvery: w.Checkpoint, Clock: firn.NewSteadyClockFrom(0, m.read),
		Start: func(nodes cluster.Range) int64 { return nodes.From + int64(w.Seed%uint64(nodes.Size())) },
	}
	if w.Journals {
		p.journal = new(bytes.Buffer)
		o.Journal = p.journal
	}
	w.processes = append(w.processes, p)
	if m.Wish != nil {
		o.Nodes = func(name string, d cluster.Definition) *cluster.Range {
			if m.Wish.To < d.Capacity() && name != final {
				return m.Wish
			}
			return nil
		}
	}
	var err error
	if p.member, err = peer.Start(func(context.Context) (store.Store, error) { return p, nil }, o); err != nil {
		w.fail("a member starts", "%s: %v", p.name, err)
		return
	}
	m.process, m.cut, m.lag = p, false, 0
	w.connect()
}

// read reads the machine's clocks.
func (m *machine) read() (wall, mono int64) {
	now := time.Now().UnixNano()
	return now + m.off.Load(), now - epoch.UnixNano()
}

// connect has everybody reach the store who is to.
func (w *world) connect() {
	for _, m := range w.machines {
		if m.process != nil {
			m.process.CutOff(m.cut || w.down)
		}
	}
}

// stop ends a process: it leaves, or nothing of it reaches the store any more.
func (w *world) stop(m *machine, crash bool) {
	p := m.process
	if p == nil {
		return
	}
	m.process = nil
	if crash {
		p.CutOff(true)
		_ = p.Close()
	}
	w.verbs.Go(func() {
		p.member.Leave()
		w.over(p, "after its member has left")
		if !crash {
			_ = p.Close()
		}
	})
	for _, all := range p.handles {
		m.stale = append(m.stale, all...)
	}
}

// over notes that a process gives no IDs any more.
func (w *world) over(p *process, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	p.ended = why
	for _, all := range p.handles {
		for _, h := range all {
			h.over = why
		}
	}
}

// handle notes a handle of a sequencer, and returns what is known of it.
func (p *process) handle(s *peer.Sequencer) *handle {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.handles[s.Name()] {
		if h.Sequencer == s {
			return h
		}
	}
	h := &handle{Sequencer: s, process: p, lane: newLane(p.name, s), local: s.Local()}
	p.handles[s.Name()] = append(p.handles[s.Name()], h)
	return h
}

func (p *process) all(sequencer string) []*handle {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.handles[sequencer]
}
