package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/journal"
	"github.com/firn-id/firn/internal/core/peer"
)

// Failure is a rule that does not hold.
type Failure struct {
	Rule string
	At   string // by the simulated clock
	Text string
}

func (f Failure) String() string { return fmt.Sprintf("%s, at %s: %s", f.Rule, f.At, f.Text) }

// lane is what an ID came from, but for the node ID: a process, a sequencer's name and a layout. Generations that share
// a layout share lanes: what is asked of IDs holds across generations.
type lane struct {
	by, sequencer string
	layout        firn.Layout
	local         bool // a Local gives its IDs, which has an order of its own
	jumps         bool // several give its IDs, so that they are not noted in the order in which they were made
}

func newLane(by string, s *peer.Sequencer) lane {
	l := s.Layout()
	l.Epoch = l.Epoch.UTC() // so that layouts can be compared
	return lane{by: by, sequencer: s.Name(), layout: l}
}

// node is a node ID of a layout of a name.
type node struct {
	sequencer string
	layout    firn.Layout
	id        int64
}

// seen is all IDs that were given. A journal tells more: here, nobody knows when a process has become an owner again.
type seen struct {
	ids  int64
	by   map[string]map[firn.ID]string // who gave it, for each name
	used map[node]*use
}

// use is who used which tick of a node ID, and the last ID that each gave.
type use struct {
	ticks map[int64]string
	last  map[giver]firn.ID
}

// giver is a process, or the Locals of one.
type giver struct {
	by    string
	local bool
}

func newSeen() *seen {
	return &seen{by: map[string]map[firn.ID]string{}, used: map[node]*use{}}
}

// note notes an ID, as it was before it was scattered and as it was given. It returns the rule that it breaks.
func (s *seen) note(l lane, made, given firn.ID) (rule, text string) {
	s.ids++
	parts, err := l.layout.Decompose(made)
	if err != nil {
		return "an ID has the layout of its sequencer",
			fmt.Sprintf("%s gives %d of %s: %v", l.by, given, l.sequencer, err)
	}
	of := s.by[l.sequencer]
	if of == nil {
		of = map[firn.ID]string{}
		s.by[l.sequencer] = of
	}
	n := node{l.sequencer, l.layout, parts.Node}
	u := s.used[n]
	if u == nil {
		u = &use{ticks: map[int64]string{}, last: map[giver]firn.ID{}}
		s.used[n] = u
	}
	who := func() string {
		return fmt.Sprintf("%s gives %d of %s (node ID %d, tick %d)", l.by, given, l.sequencer, parts.Node, parts.Tick)
	}
	if by, twice := of[given]; twice {
		return "no ID comes twice", fmt.Sprintf("%s, which %s gave before", who(), by)
	}
	if by, used := u.ticks[parts.Tick]; used && by != l.by {
		return "an instant of a node ID has one owner", fmt.Sprintf("%s; %s has given IDs of that tick", who(), by)
	}
	g := giver{l.by, l.local}
	if last, has := u.last[g]; has && made <= last && !l.jumps {
		return "the IDs of a node ID ascend", fmt.Sprintf("%s after %d", who(), last)
	}
	of[given], u.ticks[parts.Tick], u.last[g] = l.by, l.by, made
	return "", ""
}

// calm ends all trouble.
func (w *world) calm() {
	w.tell(func() string { return "all trouble ends" })
	w.faulty.Store(false)
	w.down = false
	right := w.right()
	for _, m := range w.machines {
		m.cut, m.lag = false, 0
		m.off.Store(right + int64(m.Ahead))
		if m.process != nil {
			m.process.Lag(0)
		}
	}
	w.connect()
}

// right is by how much all clocks are ahead in the end: by the steps that all took.
func (w *world) right() (off int64) {
	for _, e := range w.Events {
		if e.Kind == StepAll {
			off += int64(e.For)
		}
	}
	return off
}

// bound is how long it may take in the end until all is well: the sessions and horizons of the dead have to pass, and
// whoever waits for an ID time that is ahead waits for a clock that approaches the right time at an eighth.
const bound = 2*time.Minute + 9*furthest

// late is for how long something may still come that was under way when all trouble ended: a call of the store whose
// caller has given up, and then the news of it.
func (w *world) late() time.Duration {
	var lag time.Duration
	for _, e := range w.Events {
		if e.Kind == Lag {
			lag = max(lag, e.For)
		}
	}
	return w.Faults.Longest + lag
}

// settle waits until the cluster is well again, and everybody serves.
func (w *world) settle() {
	began := time.Now()
	w.verbs.Wait()
	time.Sleep(w.late())
	for {
		synctest.Wait() // all have heard of what has just happened
		err := w.wrong()
		if err == nil {
			break
		}
		if time.Since(began) > bound {
			w.fail("in the end all is well", "%v after %v", err, bound)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	var all sync.WaitGroup
	for _, p := range w.living() {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(w.ctx, bound)
			defer cancel()
			s, err := p.member.EnsureSequencer(ctx, final, last)
			for ; errors.Is(err, peer.ErrNotReady) &&
				ctx.Err() == nil; s, err = p.member.EnsureSequencer(ctx, final, last) {
				time.Sleep(100 * time.Millisecond) // it has just found that the store has lost data
			}
			if err != nil {
				w.fail("in the end all is well", "%s can't attach to a new sequencer: %v", p.name, err)
				return
			}
			for h := p.handle(s); w.takeOf(h, 3) != nil; time.Sleep(50 * time.Millisecond) {
				if ctx.Err() != nil {
					w.fail("in the end all is well", "%s gives no ID of a new sequencer: %v", p.name, s.Ready())
					return
				}
			}
		})
	}
	all.Wait()
	w.recount()
	w.result.Settled = time.Since(began)
	w.result.Served = len(w.living())
}

// living are the processes that run and were not expelled.
func (w *world) living() (all []*process) {
	for _, m := range w.machines {
		if p := m.process; p != nil && !errors.Is(p.member.Err(), peer.ErrExpelled) {
			all = append(all, p)
		}
	}
	return all
}

// wrong returns what is missing so that all is well in each cluster.
func (w *world) wrong() error {
	for region := range w.services {
		living := slices.DeleteFunc(w.living(), func(p *process) bool { return p.Region != region })
		if err := w.wrongAmong(living); err != nil {
			return err
		}
	}
	return nil
}

// wrongAmong returns what is missing so that exactly those that live in a cluster are its members, have come to the
// same value, and serve what that grants them.
func (w *world) wrongAmong(living []*process) error {
	var first []byte
	for _, p := range living {
		v, id := p.member.Value(), p.member.ID()
		if err := p.member.Ready(); err != nil {
			return fmt.Errorf("%s is not ready: %w", p.name, err)
		}
		if v.Size() != len(living) {
			return fmt.Errorf("%s, %s, has the members %v, and %d live", p.name, id, v.Members(), len(living))
		}
		for joiner := range v.Joins() {
			return fmt.Errorf("%s has the join of %s pending", p.name, joiner)
		}
		value, err := cluster.EncodeCheckpoint(v)
		if err != nil {
			return err
		}
		if first == nil {
			first = value
		}
		if !bytes.Equal(first, value) {
			return fmt.Errorf("%s has come to the value\n%s\n%s to\n%s", p.name, value, living[0].name, first)
		}
		if err := w.unserved(p, v, id); err != nil {
			return err
		}
	}
	return nil
}

// unserved returns of which sequencer a process gives no IDs, though it has been granted a node ID, or could be.
func (w *world) unserved(p *process, v cluster.Value, id string) error {
	for name, q := range v.Sequencers() {
		node, held := q.Node(id)
		switch {
		case q.Attached(id) && !held && q.Free() > 0 && q.Allocation().Kind == cluster.AllocateAll &&
			p.Wish == nil && len(v.Policy()) == 0:
			return fmt.Errorf("%s waits for a node ID of %s, and %d are free", p.name, name, q.Free())
		case !held:
			continue
		}
		s, ok := p.member.Sequencer(name)
		if !ok {
			return fmt.Errorf("%s has no handle of %s, of which it holds %d", p.name, name, node)
		}
		var early *peer.EarlyError
		err := w.takeOf(p.handle(s), 1)
		if errors.As(err, &early) { // another generation came in between when it was created
			continue
		}
		if err != nil {
			return fmt.Errorf("%s holds the node ID %d of %s and gives no ID: %w", p.name, node, name, err)
		}
		if have := s.State(); have.Phase != peer.Attached {
			return fmt.Errorf("%s holds the node ID %d of %s and is %v", p.name, node, name, have)
		}
	}
	return nil
}

// end has everybody leave. Goroutines that are left then fail the bubble.
func (w *world) end() {
	for _, m := range w.machines {
		w.stop(m, false)
	}
	w.verbs.Wait()
	for _, m := range w.machines {
		for _, h := range m.stale {
			_ = w.takeOf(h, 1)
		}
	}
}

// replay checks the journals against the model of the proof.
func (w *world) replay() {
	var files []journal.File
	for _, p := range w.processes {
		if p.journal != nil {
			files = append(files, journal.File{Name: p.name, Reader: bytes.NewReader(p.journal.Bytes())})
		}
	}
	r, err := journal.Check(files...)
	if err != nil {
		w.fail("journals can be read", "%v", err)
	}
	for _, v := range r.Violations {
		if w.Loses && v.Rule == "Apply" {
			continue // a store that was set back while nobody reached it is noticed by none
		}
		w.fail("a step of the model: "+v.Rule, "%v", v)
	}
}
