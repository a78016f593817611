package peer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/core/attachment"
	"github.com/firn-id/firn/internal/core/cluster"
)

// attaches returns the commands that attach the member where it wants to be, and detach it elsewhere.
func (p *player) attaches(v cluster.Value, id string) []cluster.Command {
	if p.registry.leaving() { // which detaches it everywhere
		return nil
	}
	var owed []cluster.Command
	for name, q := range v.Sequencers() {
		st := new(status)
		if s := p.registry.find(name); s != nil {
			if now := s.status.Load(); now.created == q.Created() {
				st = now
			}
		}
		switch attached, drained := q.Attached(id), p.drained(name, q, id); {
		case drained && !q.Drained(id): // under a former member ID
			owed = append(owed, cluster.Drain{Sequencer: name, Member: id})
		case drained:
		case st.wanted && !attached:
			owed = append(owed, cluster.Attach{
				Sequencer: name, Member: id, Nodes: p.options.wish(name, q.Definition()),
			})
		case attached && !st.wanted && st.state.Empty(): // the next member to attach finds the node ID free
			owed = append(owed, cluster.Detach{Sequencer: name, Member: id})
		}
	}
	return owed
}

// in returns this sequencer as a value has it, and false when the value has none or another of its name.
func (s *Sequencer) in(v cluster.Value) (cluster.Sequencer, bool) {
	found, ok := v.Sequencer(s.name)
	if !ok || found.Created() != s.status.Load().created {
		return cluster.Sequencer{}, false
	}
	return found, true
}

// grant is the node ID that the cluster's value gives this member in a sequencer.
type grant struct {
	kind        attachment.Kind
	incarnation *incarnation
	node        int64  // granted
	place       int64  // in line, from 1
	serves      string // in line: the sequencer that the cluster's policy has the member serve instead
	drained     bool   // unwanted: by an operator
}

// plain returns the grant as package attachment knows it.
func (g grant) plain() attachment.Grant {
	plain := attachment.Grant{Kind: g.kind, Node: g.node}
	if g.incarnation != nil {
		plain.Member = g.incarnation.id
	}
	return plain
}

// grant tells the sequencers their grants by the value.
func (p *player) grant(ctx context.Context) {
	for _, s := range p.registry.all() {
		if s.awaitsLog(p.value) {
			continue
		}
		p.renew(ctx, s.fences.Window)
		v, ok := s.in(p.value)
		node, held := v.Node(p.incarnation.id)
		_, drained := p.drains[s.name] // also while it joins again
		switch {
		case !ok:
			s.tell(grant{kind: attachment.Destroyed}, ErrDestroyed)
		case held:
			s.tell(grant{kind: attachment.Granted, incarnation: p.incarnation, node: node}, nil)
		case v.Attached(p.incarnation.id):
			s.tell(p.inLine(s, v))
		case drained:
			s.tell(grant{kind: attachment.Unwanted, drained: true}, ErrDrained)
		default:
			s.tell(grant{}, errRejoining)
		}
	}
}

// inLine returns the grant of a member that is attached and has no node ID, and why it has none.
func (p *player) inLine(s *Sequencer, v cluster.Sequencer) (grant, error) {
	g := grant{
		kind: attachment.InLine, incarnation: p.incarnation,
		place: int64(v.Place(p.incarnation.id)),
	}
	policy := p.value.Policy()
	serves, ok := p.value.Assigned(p.incarnation.id)
	if ok && serves != s.name && slices.ContainsFunc(policy, func(share cluster.Share) bool {
		return share.Sequencer == s.name
	}) {
		g.serves = serves
		return g, fmt.Errorf("%w: the cluster's policy (%s) has this member serve %q; it takes over by itself when "+
			"members come and go and the policy needs it here",
			ErrWaiting, policyText(policy), serves)
	}
	return g, fmt.Errorf("%w: %s, and this member has place %d in line; it takes over by itself when others detach "+
		"or leave", ErrWaiting, s.taken(v), g.place)
}

// policyText returns a policy for people, such as "75% for a, the rest for b".
func policyText(policy []cluster.Share) string {
	var shares []string
	for _, share := range policy {
		if share.Percent == 0 {
			shares = append(shares, "the rest for "+share.Sequencer)
		} else {
			shares = append(shares, fmt.Sprintf("%d%% for %s", share.Percent, share.Sequencer))
		}
	}
	return strings.Join(shares, ", ")
}

// taken returns why there is no node ID for this member.
func (s *Sequencer) taken(v cluster.Sequencer) string {
	held := "held"
	if v.Reserved() > 0 {
		held = "held or reserved"
	}
	switch r := s.m.options.wish(s.name, s.definition); {
	case r != nil && r.From == r.To:
		if reserved := v.ReservedFor(r.From); reserved != nil {
			return fmt.Sprintf("node ID %d is reserved for %q", r.From, reserved.For)
		}
		return fmt.Sprintf("node ID %d is held", r.From)
	case r != nil:
		return fmt.Sprintf("all %d of them, %d to %d, are %s", r.To-r.From+1, r.From, r.To, held)
	case v.Free() == 0:
		nodes := v.NodeIDs()
		return fmt.Sprintf("all %d of them, %d to %d, are %s; the sequencer is at capacity", nodes.Size(),
			nodes.From, nodes.To, held)
	default:
		return fmt.Sprintf("its allocation allows %d, and members have them", v.Taken())
	}
}

// tell notes a new grant, and why that leaves callers without IDs; nil: it does not.
func (s *Sequencer) tell(g grant, why error) {
	s.updateIf(func(st *status) bool { return s.tellLocked(st, g, why) })
}

func (s *Sequencer) tellLocked(st *status, g grant, why error) (news bool) {
	if !st.wanted && g.kind != attachment.Destroyed {
		g, why = grant{kind: attachment.Unwanted}, ErrDetached
	}
	if st.granted == g || st.granted.kind == attachment.Destroyed {
		return false
	}
	st.granted = g
	if why != nil {
		st.why = why
	}
	s.poke()
	return true
}
