package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/core/peer"
)

// patient is how long a verb is waited for.
const patient = 20 * time.Second

// call has a member do something that may take a while.
func (w *world) call(m *machine, e Event) {
	p := m.process
	if p == nil {
		return
	}
	v := verb{Event: e, world: w, process: p, had: w.handles(e.Sequencer)}
	if other := w.byName[e.Other]; other != nil {
		v.other = other.process
	}
	w.verbs.Go(func() {
		ctx, cancel := context.WithTimeout(w.ctx, patient)
		defer cancel()
		began := w.now()
		err := p.member.Wait(ctx)
		if err == nil {
			err = v.do(ctx)
		}
		w.tell(func() string {
			done := "it is done"
			if err != nil {
				done = err.Error()
			}
			return fmt.Sprintf("   (since %s: %v) %s", stamp(began), e, done)
		})
	})
}

// verb is an event that a member has to do.
type verb struct {
	Event
	world   *world
	process *process
	other   *process  // nil: none, or it does not run
	had     []*handle // what everybody had of the sequencer when it was told to
}

func (v verb) do(ctx context.Context) error {
	var whom string
	if v.other != nil {
		whom = v.other.member.ID()
	}
	switch m, e := v.process.member, v.Event; e.Kind {
	case Count:
		return v.process.count(ctx, e.Count)
	case Ensure:
		return v.ensure(ctx)
	case Replace:
		if err := v.destroy(ctx); err != nil {
			return err
		}
		return v.ensure(ctx)
	case Attach:
		return v.process.got(m.Attach(ctx, e.Sequencer))
	case Create:
		_, err := m.Create(ctx, e.Sequencer, v.world.Definitions[e.Definition])
		return err
	case Detach:
		s, ok := m.Sequencer(e.Sequencer)
		if !ok {
			return peer.ErrNoSequencer
		}
		return s.Detach(ctx)
	case Destroy:
		return v.destroy(ctx)
	case Drain:
		return m.Drain(ctx, e.Sequencer, whom)
	case Undrain:
		return m.Undrain(ctx, e.Sequencer, whom)
	case Move:
		return m.Move(ctx, e.Sequencer, e.Count, whom)
	case Allocate:
		return m.Allocate(ctx, e.Sequencer, e.Allocation)
	case Borrow:
		return v.borrow(ctx)
	case Keep:
		return v.keep(ctx)
	case Import:
		return v.giveLate(ctx)
	case Policy:
		return m.SetPolicy(ctx, e.Shares)
	case Expel:
		return m.Expel(ctx, whom)
	default:
		return fmt.Errorf("there is no event %q", e.Kind)
	}
}

func (v verb) ensure(ctx context.Context) error {
	m := v.process.member
	s, err := m.EnsureSequencer(ctx, v.Sequencer, v.world.Definitions[v.Definition])
	if errors.Is(err, peer.ErrSequencerExists) {
		s, err = m.Attach(ctx, v.Sequencer)
	}
	return v.process.got(s, err)
}

// got notes the handle that a verb returned.
func (p *process) got(s *peer.Sequencer, err error) error {
	if s != nil {
		p.handle(s)
	}
	return err
}

// destroy destroys a sequencer. Once that has returned, no handle may give an ID of it that somebody had before.
func (v verb) destroy(ctx context.Context) error {
	w := v.world
	err := v.process.member.Destroy(ctx, v.Sequencer)
	if err == nil && w.Right {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, h := range v.had {
			h.over = "after " + v.process.name + " has destroyed it"
		}
	}
	return err
}

// handles are all that any process has of a sequencer, or had.
func (w *world) handles(sequencer string) (all []*handle) {
	for _, p := range w.processes {
		all = append(all, p.all(sequencer)...)
	}
	return all
}
