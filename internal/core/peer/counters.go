package peer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/store"
)

// counters are those of a member by their names. Their methods are safe for concurrent use.
type counters struct {
	found atomic.Pointer[map[string]*Counter] // an immutable copy of all; nil: none

	mu  sync.Mutex // guards all
	all map[string]*Counter
}

// find returns the counter of a name, and nil if there is none.
func (c *counters) find(name string) *Counter {
	if found := c.found.Load(); found != nil { // without a lock: every call for a number runs this
		return (*found)[name]
	}
	return nil
}

// show has find see a change. mu is held.
func (c *counters) show() { c.found.Store(new(maps.Clone(c.all))) }

func (c *counters) list() []*Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.all))
}

// tellCounters tells the counters of what the cluster's value has of them.
func (p *player) tellCounters() {
	for _, c := range p.counters.list() {
		q, ok := p.value.Sequencer(c.name)
		adopted := ok && c.adopt(q)
		switch created := c.created.Load(); { // after that: createAgain may adopt it at the same time
		case adopted:
			c.poke()
		case created == 0 && !ok && c.ensured.Load(): // it is created again
		case !ok && created <= p.value.Position(), ok && q.Created() > created:
			c.end(ErrDestroyed)
		}
	}
}

// Counters returns the handles of counters that have not ended, by name.
func (m *Member) Counters() []*Counter {
	all := slices.DeleteFunc(m.counters.list(), func(c *Counter) bool { return c.ctx.Err() != nil })
	slices.SortFunc(all, func(a, b *Counter) int { return strings.Compare(a.name, b.name) })
	return all
}

// loseCounters has no counter give numbers here after the store has lost data.
func (p *player) loseCounters() {
	for _, c := range p.counters.list() {
		c.owner.Load().Lose()
	}
}

// tellLoss has no counter give numbers anywhere after the store has lost data, before an operator resumes it. The
// member need not know of one: it may have forgotten, or the store has lost it.
func (p *player) tellLoss(ctx context.Context) {
	err := p.insist(ctx, "the store has lost data; can't have counters stop at present", func() error {
		return counter.Tell(ctx, p.store)
	})
	if err != nil {
		return // the member leaves, or the counters tell it themselves
	}
	for _, c := range p.counters.list() {
		c.owner.Load().Told()
		c.poke()
	}
}

// forgetCounters has the counters look for theirs in the log again.
func (p *player) forgetCounters() {
	for _, c := range p.counters.list() {
		c.created.Store(0)
		if c.ensured.Load() {
			p.registry.serve(func() { c.createAgain(c.ctx) })
		}
	}
}

// createAgain creates the counter after a loss. What it has reserved is not given again: its record is raised before
// anybody claims.
func (c *Counter) createAgain(ctx context.Context) {
	done := func() bool { return c.created.Load() != 0 }
	if c.m.createAgain(ctx, c.name, c.definition, done, c.adopt) {
		c.poke()
	}
}

// abandonCounters ends the use of all blocks, with which a copy of this process may go on.
func (m *Member) abandonCounters() {
	for _, c := range m.counters.list() {
		o := c.owner.Load()
		c.renew()
		o.Abandon()
		c.poke()
	}
}

// CounterRecord returns what the store has of a counter now. The error is that of the store.
func (m *Member) CounterRecord(ctx context.Context, name string) (v counter.View, err error) {
	err = m.insist(ctx, "can't read a counter at present", func() (err error) {
		v, _, err = counter.Read(ctx, m.store, counter.Key(name))
		return err
	})
	return v, err
}

// mostCounters is of how many counters a member tells in its pulse: all members read those of all.
const mostCounters = 32

// countings returns how far this member is with its counters, at most mostCounters; those that have stopped come after
// others, which may give numbers.
func (m *Member) countings() map[string]Counting {
	all := map[string]Counting{}
	for _, lost := range []bool{false, true} {
		for _, c := range m.Counters() {
			if is := c.Counting(); is.Lost == lost && len(all) < mostCounters {
				all[c.name] = is
			}
		}
	}
	return all
}

// mayCount reports whether a member may give numbers of a counter that it does not know to be lost. It does not tell of
// all counters if it has many.
func (v Vitals) mayCount(name string) bool {
	is, told := v.Counters[name]
	if told || len(v.Counters) < mostCounters {
		return is.mayGive()
	}
	for _, is := range v.Counters {
		if is.Lost {
			return false // so it tells of all that are not
		}
	}
	return true
}

// mayGive reports whether there are numbers that a member may give, as far as it is with a counter.
func (c Counting) mayGive() bool { return c.Reserved > 0 && !c.Lost }

// ResumeCounter has a counter go on above a number, after its store has lost data. It is for an operator who knows that
// nobody was given a greater one. ErrNoSequencer and a *KindError are returned as by OpenCounter, a
// *counter.ResumeError when the counter is not lost, a greater number is known to be reserved, or the present time has
// no numbers as great, and an *InUseError while a member that has not noticed the loss may still give numbers.
func (m *Member) ResumeCounter(ctx context.Context, name string, after firn.ID) error {
	v, err := m.latest(ctx, name)
	if err == nil {
		err = mustBe(name, v.Definition(), true)
	}
	if err != nil {
		return err
	}
	rule, err := counter.RuleOf(v.Definition())
	if err != nil {
		return err
	}
	limits := rule.Limits(m.now(), int64(after))
	if err := m.mayResume(ctx, name, int64(after), limits); err != nil {
		return err
	}
	doubt := false
	err = m.insist(ctx, "can't resume a counter at present", func() error {
		err := counter.ResumeAfter(ctx, m.store, counter.Key(name), int64(after), limits)
		if e, ok := errors.AsType[*counter.ResumeError](err); ok && doubt && !e.Lost {
			return nil // it was applied
		}
		doubt = doubt || errors.Is(err, store.ErrAmbiguous)
		return err
	})
	for _, c := range m.counters.list() {
		c.poke()
	}
	return err
}

// mayResume returns an error when a counter can't go on above a number, or one of the living still gives numbers as if
// the store had lost nothing.
func (m *Member) mayResume(ctx context.Context, name string, after int64, l counter.Limits) error {
	return m.insist(ctx, "can't read who uses a counter at present", func() error {
		v, _, err := counter.Read(ctx, m.store, counter.Key(name))
		if err == nil {
			_, err = counter.Resume(v, after, l)
		}
		if err != nil {
			return err
		}
		living, err := m.Pulses(ctx)
		for id, p := range living {
			counts := p.Vitals.mayCount(name)
			if id == m.ID() { // whose pulse may be from before it noticed; its handle is there until it gives no more
				c := m.counters.find(name)
				counts = c != nil && c.Counting().mayGive()
			}
			if counts {
				return &InUseError{Name: name, Node: cmp.Or(p.Owner, id)}
			}
		}
		return err
	})
}
