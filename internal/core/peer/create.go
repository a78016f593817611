package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn/internal/core/attachment"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
)

// EnsureSequencer creates a sequencer unless it exists, attaches to it, and waits for the outcome: this member
// may use a node ID, or Ready says why it can't yet. Another call with the same definition returns the same
// Sequencer.
//
// A *cluster.NameError is returned when the name is not allowed, an *ExistsError when the sequencer exists with
// another definition, a *cluster.PrefixError when another sequencer has its prefix, an *EarlyError when its IDs would
// stay too small for long, firn.ErrLifetime when the layout's time is over or has not begun, and other errors when the
// definition is not valid, or when ctx or the member has ended.
func (m *Member) EnsureSequencer(ctx context.Context, name string, d cluster.Definition) (*Sequencer, error) {
	if err := mustBe(name, d, false); err != nil {
		return nil, err
	}
	v, _, err := m.create(ctx, name, d, false, 0)
	if err != nil {
		return nil, err
	}
	s, err := m.attach(ctx, name, v)
	if err == nil {
		s.update(func(st *status) { st.ensured = true })
	}
	return s, err
}

// Attach attaches to an existing sequencer, whatever its definition, and waits as EnsureSequencer does. It
// attaches a detached handle again and returns it. ErrNoSequencer is returned when the log, read to its end, has
// no sequencer of this name, ErrUnfit when the member's options do not fit its definition, and other errors when
// ctx or the member has ended.
func (m *Member) Attach(ctx context.Context, name string) (*Sequencer, error) {
	return m.attachIf(ctx, name, m.latest, func(cluster.Definition) error { return nil })
}

// AttachOnDemand is Attach for a caller that wants an ID and did not ask to attach; names that don't exist cost the
// store as little as with Lookup. ErrExplicit is returned, and nothing changes, when the sequencer's definition demands
// an explicit attach.
func (m *Member) AttachOnDemand(ctx context.Context, name string) (*Sequencer, error) {
	return m.attachIf(ctx, name, m.find, func(d cluster.Definition) error {
		if d.Attach == cluster.AttachExplicit {
			return fmt.Errorf("%w: %q", ErrExplicit, name)
		}
		return nil
	})
}

// attachIf attaches if allowed agrees to the definition of the sequencer that look finds.
func (m *Member) attachIf(ctx context.Context, name string, look func(context.Context, string) (cluster.Sequencer,
	error), allowed func(cluster.Definition) error,
) (*Sequencer, error) {
	if s, ok := m.Sequencer(name); ok {
		if err := allowed(s.definition); err != nil {
			return nil, err
		}
		return s.attached(ctx)
	}
	v, err := look(ctx, name)
	if err == nil {
		err = allowed(v.Definition())
	}
	if err != nil {
		return nil, err
	}
	return m.attach(ctx, name, v)
}

// Create creates a sequencer without attaching to it, and reports whether it is new. It is for an operator, who knows
// that a counter of this name has given no numbers which the store has lost; if it has ever lost data, a counter
// that is new, without After, gives none before ResumeCounter. A *cluster.QuotaError is returned
// when it is, and one of the quotas is reached; the log decides that, so no two members exceed one together. The other
// errors are those of EnsureSequencer.
func (m *Member) Create(ctx context.Context, name string, d cluster.Definition,
	quotas ...cluster.Quota,
) (created bool, err error) {
	_, created, err = m.create(ctx, name, d, true, 0, quotas...)
	return created, err
}

// CreateReserving is Create, and reserves so many node IDs for cluster.Later before any member has one. A
// *RefusedError is also returned when the sequencer exists, and another number is reserved for that; a
// *cluster.ReserveError when it has fewer node IDs; and the errors of Reserve. After these last ones the sequencer may
// be there, and another call goes on.
func (m *Member) CreateReserving(ctx context.Context, name string, d cluster.Definition, count int64,
	quotas ...cluster.Quota,
) (created bool, err error) {
	q, created, err := m.create(ctx, name, d, true, count, quotas...)
	if err == nil && !created {
		q, err = m.latest(ctx, name)
	}
	if err != nil {
		return created, err
	}
	there := 0
	if r := q.Reservation(cluster.Later); r != nil {
		there = len(r.Nodes)
	}
	if int64(there) != count {
		return created, &RefusedError{cluster.CreateSequencer{}, fmt.Sprintf("%q exists, and %d of its node IDs are "+
			"reserved for %q, not %d; use it as it is, or reserve others", name, there, cluster.Later, count)}
	}
	_, _, err = m.Reserve(ctx, name, cluster.Reserving{For: cluster.Later, Count: count})
	return created, err
}

// Sequencers returns, ordered by name, the sequencers that this member was ever attached to and that were not
// destroyed. Value has all sequencers of the cluster.
func (m *Member) Sequencers() []*Sequencer {
	return slices.DeleteFunc(m.registry.all(), func(s *Sequencer) bool { return s.status.Load().destroyed() })
}

// Sequencer returns the sequencer of a name if this member was ever attached to it, and false otherwise. It does
// not ask the store.
func (m *Member) Sequencer(name string) (*Sequencer, bool) {
	s := m.registry.find(name)
	return s, s != nil && !s.status.Load().destroyed()
}

// create makes sure that the sequencer exists with this definition, and reports whether it is new. Founds says that the
// numbers of a counter that is new may begin, and later how many node IDs of a sequencer that is new are reserved.
func (m *Member) create(ctx context.Context, name string, d cluster.Definition, founds bool, later int64,
	quotas ...cluster.Quota,
) (cluster.Sequencer, bool, error) {
	var none cluster.Sequencer
	if err := cluster.CheckName(name); err != nil {
		return none, false, err
	}
	if err := m.options.ValidateFor(name, d); err != nil {
		return none, false, err
	}
	if s, ok := m.Sequencer(name); ok && s.definition.Equal(d) {
		if q, there := s.in(m.Value()); there {
			return q, false, nil
		}
	}
	c := m.creates(name, d, quotas, later)
	v, err := m.beforeCreate(ctx, c)
	for created := false; err == nil; {
		switch q, ok := v.Sequencer(name); {
		case ok && !q.Definition().Equal(d):
			return none, false, &ExistsError{Name: name, InForce: q.Definition(), Wanted: d}
		case ok:
			return q, created, nil
		}
		if err := c.Check(v); err != nil {
			return none, false, err
		}
		if early := m.checkNew(ctx, name, d, founds); early != nil {
			if v, err = m.catchUp(ctx); err == nil {
				if _, ok := v.Sequencer(name); ok { // it was created meanwhile: the horizons are its own
					continue
				}
				err = early
			}
			return none, false, err
		}
		var o outcome
		o, err = m.do(ctx, func(string) cluster.Command { return c })
		created = o.Result == cluster.Applied
		v = o.value
		if o.missed {
			v, err = m.catchUp(ctx)
		}
	}
	return none, false, err
}

// beforeCreate returns a value as of now. Where this member's own refuses the sequencer, that costs the store as little
// as a name that does not exist, as such calls may be many; what was destroyed in the last second may be in the way
// then.
func (m *Member) beforeCreate(ctx context.Context, c cluster.CreateSequencer) (cluster.Value, error) {
	refuses := func(v cluster.Value) bool {
		_, there := v.Sequencer(c.Sequencer)
		return !there && c.Check(v) != nil
	}
	if refuses(m.Value()) {
		if _, err := m.find(ctx, c.Sequencer); err != nil && !errors.Is(err, ErrNoSequencer) {
			return cluster.Value{}, err
		}
		if v := m.Value(); refuses(v) {
			return v, nil
		}
	}
	return m.catchUp(ctx)
}

// creates returns the command that creates a sequencer which ValidateFor allows, with so many node IDs for later.
func (m *Member) creates(name string, d cluster.Definition, quotas []cluster.Quota,
	later int64,
) cluster.CreateSequencer {
	reserve := m.lostOf(name, d)
	if later > 0 && !slices.ContainsFunc(reserve, func(r cluster.Reserving) bool { return r.For == cluster.Later }) {
		reserve = append(reserve, cluster.Reserving{For: cluster.Later, At: m.now().UnixMilli(), Count: later})
	}
	start := int64(0)
	if nodes, _ := m.options.Region.Nodes(d); nodes.Size() > 0 {
		start = m.options.Start(nodes)
	}
	return cluster.CreateSequencer{
		Sequencer: name, Definition: d, Region: m.options.Region, Start: start,
		SolePrefix: d.Prefix != "", Quotas: quotas, Reserve: reserve,
	}
}

// checkNew refuses a definition that could make no ID now.
func (m *Member) checkNew(ctx context.Context, name string, d cluster.Definition, founds bool) error {
	warning, err := d.Check(m.now())
	if err != nil {
		return fmt.Errorf("the sequencer %q: %w", name, err)
	}
	if warning != "" {
		m.log.Warn("a sequencer is created that does not last long", "sequencer", name, "warning", warning)
	}
	return m.insist(ctx, "can't read what was there before", func() error {
		i, _, err := m.readGeneration(ctx, name)
		if err == nil {
			err = i.checkKind(name, d)
		}
		switch {
		case err != nil:
			return err
		case d.Claimed():
			return m.checkClaimed(ctx, name, d, founds)
		}
		horizon, _, err := m.horizons(ctx, name)
		if err != nil {
			return err
		}
		_, err = m.above(d, i.successor(i.Created+1, d).closed(horizon))
		return err
	})
}

// checkClaimed refuses a definition whose numbers would be smaller than those before, and may found the counter.
func (m *Member) checkClaimed(ctx context.Context, name string, d cluster.Definition, founds bool) error {
	rule, err := counter.RuleOf(d)
	if err != nil {
		return err
	}
	v, _, err := counter.Read(ctx, m.store, counter.Key(name))
	if err == nil {
		err = counter.Fits(v, rule, m.now())
	}
	if err == nil && founds {
		err = counter.Found(ctx, m.store, counter.Key(name), int64(d.After))
	}
	return err
}

// attach has the player attach the member to this sequencer.
func (m *Member) attach(ctx context.Context, name string, v cluster.Sequencer) (*Sequencer, error) {
	if err := mustBe(name, v.Definition(), false); err != nil {
		return nil, err
	}
	if err := m.Fit(name, v.Definition()); err != nil {
		return nil, err
	}
	s, err := m.handle(name, v, asker(ctx))
	if err != nil {
		return nil, err
	}
	return s.attached(ctx)
}

// Fit returns an ErrUnfit when the member's options do not fit the definition of a sequencer, and else nil.
func (m *Member) Fit(name string, d cluster.Definition) error {
	if err := m.options.ValidateFor(name, d); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	return nil
}

// handle returns the member's handle of this sequencer, or a new one, for which who has asked.
func (m *Member) handle(name string, v cluster.Sequencer, who string) (*Sequencer, error) {
	return m.registry.replace(name, func(s *Sequencer) *Sequencer {
		if s != nil && (s.adopt(v) || s.status.Load().created >= v.Created()) {
			return s
		}
		if s != nil { // this may be known here before the player notes it
			s.tell(grant{kind: attachment.Destroyed}, ErrDestroyed)
		}
		s = m.newSequencer(name, v)
		s.asker.Store(&who)
		return s
	}, func(s *Sequencer) { s.run(m.serving) })
}
