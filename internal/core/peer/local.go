package peer

import (
	"context"

	"github.com/firn-id/firn"
)

// Local makes the IDs of a Sequencer for one goroutine, see firn.Local: in less time than Sequencer.Next, under one
// node ID for as long as that is in use. Sequencer.Local makes a Local; the zero value does not work. It is not safe
// for concurrent use: each goroutine has its own. There is nothing to close.
type Local struct {
	s         *Sequencer
	generator *firn.Generator // of which it took last; nil: of none
	local     *firn.Local     // of generator
	quick     *firn.Local     // the same, for the shortest way to an ID; nil if the member keeps a journal
}

// Local returns a Local of the sequencer. It goes on when the node ID changes.
func (s *Sequencer) Local() *Local { return &Local{s: s} }

// Next returns the next ID. It waits and fails as Sequencer.Next does.
func (l *Local) Next(ctx context.Context) (id firn.ID, err error) {
	if l.quick != nil {
		if id, err := l.quick.TryNext(); err == nil {
			return l.s.scatter(id), nil
		}
	}
	err = l.s.take(func(g *firn.Generator) (err error) {
		l.use(g)
		id, err = l.local.Next(ctx)
		return err
	})
	if l.s.m.journal != nil && err == nil {
		l.s.noteGiven(id)
	}
	return l.s.scatter(id), err
}

// use has the Local take from a generator.
func (l *Local) use(g *firn.Generator) {
	if l.generator == g {
		return
	}
	l.generator, l.local = g, g.Local()
	if l.s.m.journal == nil {
		l.quick = l.local
	}
}
