package peer

import (
	"context"
	"fmt"
	"slices"

	"github.com/firn-id/firn/internal/core/cluster"
)

// RefusedError is returned when the log has a command of an operator, but the cluster refuses it: it does not fit
// the value, and changes nothing.
type RefusedError struct {
	Command cluster.Command
	Why     string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Command.Name(), e.Why) }

type askerKey struct{}

// AskedBy returns a context for calls that change the cluster: the entries of the log that they append say, for people,
// who asked for them. See cluster.Entry.
func AskedBy(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, askerKey{}, who)
}

// asker returns who asked for what is done for a context; empty: nobody said.
func asker(ctx context.Context) string {
	who, _ := ctx.Value(askerKey{}).(string)
	return who
}

// Expel removes a member or joiner, given by its member ID, from the cluster. Its process stops making IDs as soon as
// it reads of that, gives back its node IDs, and ends with ErrExpelled; it can come back when it is started again. A
// process that does not read the log may use the time that it had reserved: nobody else gets that time.
//
// Like the other commands of an operator, Expel returns once this member has replayed the outcome. A *RefusedError is
// returned when the cluster refuses the command, and other errors when an argument is not valid, or when ctx or the
// member has ended; in the last case the command may take effect all the same.
func (m *Member) Expel(ctx context.Context, id string) error {
	_, err := m.order(ctx, func(by string) cluster.Command { return cluster.Expel{Member: id, By: by} })
	return err
}

// Drain detaches a member, given by its member ID, from a sequencer, and keeps it detached until Undrain: its calls
// for IDs return ErrDrained, and no Attach undoes that. It stays drained when it joins again under another member ID,
// but not when its process is started again.
//
// ErrNoSequencer is returned when no sequencer has this name; the other errors are those of Expel.
func (m *Member) Drain(ctx context.Context, sequencer, id string) error {
	return m.orderFor(ctx, cluster.Drain{Sequencer: sequencer, Member: id}, sequencer)
}

// Undrain ends a Drain. The member attaches again by itself if it was attached before, or was asked to attach since.
// The errors are those of Drain.
func (m *Member) Undrain(ctx context.Context, sequencer, id string) error {
	return m.orderFor(ctx, cluster.Undrain{Sequencer: sequencer, Member: id}, sequencer)
}

// Move gives a node ID of a sequencer to an attached member, given by its member ID. The former holder stops first,
// and gets another node ID if the allocation and the definition leave it one; if it does not read the log, the new
// holder can use the node ID once the session of the former has ended. The errors are those of Drain.
func (m *Member) Move(ctx context.Context, sequencer string, node int64, to string) error {
	return m.orderFor(ctx, cluster.Move{Sequencer: sequencer, Node: node, To: to}, sequencer)
}

// Allocate changes how many of the attached members get a node ID of a sequencer. Its definition stays as it was
// created. The errors are those of Drain.
func (m *Member) Allocate(ctx context.Context, sequencer string, a cluster.Allocation) error {
	q, err := m.latest(ctx, sequencer)
	if err != nil {
		return err
	}
	return m.orderFor(ctx, cluster.Allocate{Sequencer: sequencer, Created: q.Created(), Allocation: a}, sequencer)
}

// SetPolicy shares the members out among sequencers: each member attaches to all of them, and serves the one that the
// cluster assigns to it. SetPolicy replaces the former policy; without shares, no policy is in force. It returns the
// errors of Drain.
func (m *Member) SetPolicy(ctx context.Context, shares []cluster.Share) error {
	var sequencers []string
	for _, share := range shares {
		sequencers = append(sequencers, share.Sequencer)
	}
	return m.orderFor(ctx, cluster.SetPolicy{Shares: shares}, sequencers...)
}

// orderFor is order for a command about sequencers. It names the one that the cluster does not know.
func (m *Member) orderFor(ctx context.Context, c cluster.Command, sequencers ...string) error {
	v, err := m.order(ctx, func(string) cluster.Command { return c })
	if err == nil || v.Position() == 0 {
		return err
	}
	for _, name := range sequencers {
		if _, there := v.Sequencer(name); !there {
			return fmt.Errorf("%w: %q", ErrNoSequencer, name)
		}
	}
	return err
}

// order has the log take a command of an operator, and returns the value that it led to.
func (m *Member) order(ctx context.Context, command func(by string) cluster.Command) (cluster.Value, error) {
	if _, err := m.catchUp(ctx); err != nil { // a log that it does not know gets a floor first, see rollback.go
		return cluster.Value{}, err
	}
	for {
		o, err := m.do(ctx, command)
		switch {
		case err != nil:
			return cluster.Value{}, err
		case o.missed: // it may be there twice then: commands are idempotent
		case o.Result == cluster.Refused:
			return o.value, &RefusedError{Command: command(m.ID()), Why: o.Why}
		default:
			return o.value, nil
		}
	}
}

// apply applies an entry, does at once what that has this member do, and returns an ErrExpelled when it has the member
// end.
func (p *player) apply(r *cluster.Replay, e cluster.Entry) (cluster.Outcome, error) {
	if c, ok := e.Command.(cluster.Move); ok {
		before := r.Value()
		out := r.Apply(e)
		p.yield(c, before, r.Value())
		return out, nil
	}
	out := r.Apply(e)
	switch c := e.Command.(type) {
	case cluster.Expel:
		if slices.Contains(p.ids, c.Member) && r.Value().Expelled(c.Member) {
			return out, fmt.Errorf("%w; it was member %s, and member %s carried it out", ErrExpelled, c.Member, c.By)
		}
	case cluster.Drain:
		p.noteDrain(c.Sequencer, c.Member, r.Value())
	case cluster.Undrain:
		p.noteDrain(c.Sequencer, c.Member, r.Value())
	case cluster.AskClocks:
		p.heard(newQuestion(r.Value(), e.Position, c.By))
	case cluster.PeerGC:
		p.called(c.By, r.Value())
	}
	return out, nil
}

// skipTo does what apply has the member do, for entries that a checkpoint has replaced.
func (p *player) skipTo(v cluster.Value) error {
	for name := range v.Sequencers() {
		for _, id := range p.ids {
			p.noteDrain(name, id, v)
		}
	}
	if i := slices.IndexFunc(p.ids, v.Expelled); i >= 0 {
		return fmt.Errorf("%w; it was member %s", ErrExpelled, p.ids[i])
	}
	return nil
}

// yield stops the use of a node ID that was moved to another member. That one waits for it; and where the two exchange
// node IDs, each would wait for the other otherwise.
func (p *player) yield(c cluster.Move, before, after cluster.Value) {
	if p.incarnation == nil {
		return
	}
	was, _ := before.Sequencer(c.Sequencer)
	is, _ := after.Sequencer(c.Sequencer)
	if !holds(was, p.incarnation.id, c.Node) || holds(is, p.incarnation.id, c.Node) {
		return
	}
	s, ok := p.Sequencer(c.Sequencer)
	if !ok {
		return
	}
	for _, t := range s.status.Load().tenures {
		if t.fence != nil && t.fence.Node() == c.Node {
			s.withdraw(t, errMoved)
		}
	}
}

// holds reports whether a member has that node ID.
func holds(q cluster.Sequencer, member string, node int64) bool {
	its, ok := q.Node(member)
	return ok && its == node
}

// goAway ends the sequencers at once, gives their node IDs back, and leaves the cluster, in which the member may be
// under another ID by now.
func (p *player) goAway(ctx context.Context, why error) {
	p.registry.leave()
	p.release(why)
	p.registry.serving.Wait()
	p.leaveCluster(ctx)
}

// drain is a drain of this member.
type drain struct {
	created int64  // the generation of the sequencer; 0: not known yet, after the store lost data
	as      string // the member ID under which the cluster's value has it
}

// noteDrain notes whether the value has this member drained of a sequencer, under an ID that it has or had.
func (p *player) noteDrain(name, id string, v cluster.Value) {
	if q, ok := v.Sequencer(name); ok && v.IsMember(id) && slices.Contains(p.ids, id) {
		p.drained(name, q, id)
	}
}

// drained reports whether this member, under this ID, is or must be drained of a sequencer. A drain outlives the
// member ID: it ends when the value has it undone under the ID that it was for.
func (p *player) drained(name string, q cluster.Sequencer, id string) bool {
	d, was := p.drains[name]
	switch {
	case q.Drained(id):
		p.drains[name] = drain{created: q.Created(), as: id}
		return true
	case !was:
		return false
	case d.as == id, d.created != 0 && d.created != q.Created():
		delete(p.drains, name)
		return false
	default:
		p.drains[name] = drain{created: q.Created(), as: d.as}
		return true
	}
}

// followPolicy attaches the member to the sequencers of the cluster's policy.
func (p *player) followPolicy(ctx context.Context) {
	if !p.value.IsMember(p.incarnation.id) {
		return
	}
	for _, share := range p.value.Policy() {
		q, ok := p.value.Sequencer(share.Sequencer)
		if _, has := p.Sequencer(share.Sequencer); !ok || has {
			continue
		}
		if err := p.Fit(share.Sequencer, q.Definition()); err != nil {
			p.troubles.note(ctx, "can't take part in a sequencer of the cluster's policy", err)
			continue
		}
		_, _ = p.handle(share.Sequencer, q, "") // an error says that the member leaves
	}
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*RefusedError) Reason() string { return "refused" }
