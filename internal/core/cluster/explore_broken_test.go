package cluster

import (
	"slices"
	"testing"
)

// brokenRules are rules that are wrong in one point each. The exploration must find out: else it proves nothing.
var brokenRules = []struct {
	name  string
	scope scope
	rules rules
}{
	{
		"the watch on a joiner is in the one slot that a change of neighbours overwrites",
		scope{peers: 4, lag: 3, budget: budget{crashes: 2}},
		rules{oneSlot: true},
	},
	{
		"nobody watches a joiner",
		scope{peers: 2, lag: 3, budget: budget{crashes: 1}},
		rules{watches: func(v Value, id string) []string {
			return slices.DeleteFunc(Watches(v, id), func(id string) bool { return v.joins.has(id) })
		}},
	},
	{
		"a joiner does not watch its target",
		scope{peers: 2, lag: 3, budget: budget{crashes: 1}},
		rules{watches: func(v Value, id string) []string {
			if v.joins.has(id) {
				return nil
			}
			return Watches(v, id)
		}},
	},
	{
		"no peer-gc",
		scope{peers: 3, lag: 3, budget: budget{crashes: 2}},
		rules{noGC: true},
	},
	{
		"a member that a joiner takes for dead, though it lives, does not start again",
		scope{peers: 2, lag: 3, budget: budget{mistakes: 1}},
		rules{stays: true},
	},
	{
		"a leave forgets no join at the member that leaves",
		scope{peers: 3, lag: 3, budget: budget{crashes: 1}},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			next, out := Apply(v, e)
			if c, ok := e.Command.(Leave); ok {
				if p, ok := v.peers.get(c.Member); ok && p.joiner != "" {
					j, _ := v.joins.get(p.joiner)
					next.joins = next.joins.put(p.joiner, j)
				}
			}
			return next, out
		}},
	},
	{
		"an accept leaves the target with its old watcher",
		scope{peers: 4, lag: 3},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			next, out := Apply(v, e)
			if c, ok := e.Command.(AcceptJoin); ok && out == applied {
				j, _ := v.joins.get(c.Joiner)
				before, _ := v.peers.get(j.Target)
				after := next.peer(j.Target)
				after.watcher = before.watcher
				next.set(j.Target, after)
			}
			return next, out
		}},
	},
	{
		"a target may get a second joiner",
		scope{peers: 3, lag: 3},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			next, out := Apply(v, e)
			for id, p := range next.peers.all() {
				next.peers = next.peers.putMarked(id, p, true)
			}
			return next, out
		}},
	},
	{
		"an abort that comes after the join takes the member out",
		scope{peers: 2, lag: 3, budget: budget{aborts: 1}},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			if c, ok := e.Command.(AbortJoin); ok {
				e.Command = Leave{Member: c.Joiner}
			}
			return Apply(v, e)
		}},
	},
	{
		"a member that is alone accepts nobody",
		scope{peers: 2, lag: 3},
		rules{duties: func(v Value, id string) []Command {
			if v.Size() == 1 && v.IsMember(id) {
				return nil
			}
			return dutiesOrJoin(v, id)
		}},
	},
	{
		"an accept forgets the join, so that joining never ends",
		scope{peers: 2, lag: 3},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			if c, ok := e.Command.(AcceptJoin); ok {
				e.Command = AbortJoin(c)
			}
			return Apply(v, e)
		}},
	},
	{
		"a dead joiner can't be taken out",
		scope{peers: 2, lag: 3, budget: budget{crashes: 1}},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			if c, ok := e.Command.(Leave); ok && v.joins.has(c.Member) {
				e.Command = PeerGC{c.Member}
			}
			return Apply(v, e)
		}},
	},
	{
		"a value depends on more than it shows",
		scope{peers: 3, lag: 3, budget: budget{crashes: 1}},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			if c, ok := e.Command.(AcceptJoin); ok && e.Position%7 == 3 {
				e.Command = AbortJoin(c)
			}
			return Apply(v, e)
		}},
	},
	{
		"a node ID that was detached from is free twice",
		scope{peers: 3, lag: 3, nodes: 2},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			next, out := Apply(v, e)
			if c, ok := e.Command.(Detach); ok && out == applied {
				s, _ := v.sequencers.get(c.Sequencer)
				if node, has := s.Node(c.Member); has {
					s, _ = next.sequencers.get(c.Sequencer)
					s.free = s.free.give(node)
					next.sequencers = next.sequencers.put(c.Sequencer, s)
				}
			}
			return next, out
		}},
	},
	{
		"an expelled joiner joins by a command that was late",
		scope{peers: 2, lag: 3, budget: budget{lates: 1, verbs: 1}},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			if c, ok := e.Command.(PrepareJoin); ok && v.Expelled(c.Joiner) {
				expelled := v.expelled
				v.expelled = tree[string, int64]{}
				next, out := Apply(v, e)
				next.expelled = expelled
				return next, out
			}
			return Apply(v, e)
		}},
	},
	{
		"a drained member attaches",
		scope{peers: 2, lag: 2, budget: budget{verbs: 1}, nodes: 2},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			c, ok := e.Command.(Attach)
			s, _ := v.sequencers.get(watchedSequencer)
			if !ok || !s.Drained(c.Member) {
				return Apply(v, e)
			}
			drained := s.drained
			s.drained = tree[string, struct{}]{}
			v.sequencers = v.sequencers.put(watchedSequencer, s)
			next, out := Apply(v, e)
			s, _ = next.sequencers.get(watchedSequencer)
			s.drained = drained
			next.sequencers = next.sequencers.put(watchedSequencer, s)
			return next, out
		}},
	},
	{
		"a move leaves its node ID with the former holder, too",
		scope{peers: 2, lag: 2, budget: budget{verbs: 1}, nodes: 2},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			next, out := Apply(v, e)
			if c, ok := e.Command.(Move); ok && out == applied {
				before, _ := v.sequencers.get(watchedSequencer)
				if holder, ok := before.nodes.get(c.Node); ok {
					s, _ := next.sequencers.get(watchedSequencer)
					w, _ := before.wanting.get(holder)
					s.wanting = s.wanting.put(holder, w)
					next.sequencers = next.sequencers.put(watchedSequencer, s)
				}
			}
			return next, out
		}},
	},
	{
		"a member that wants a node ID has none, and one is free",
		scope{peers: 2, lag: 2, nodes: 2},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			next, out := Apply(v, e)
			s, _ := v.sequencers.get(watchedSequencer)
			if c, ok := e.Command.(Attach); ok && out == applied && s.holding.len() > 0 {
				s = s.attach(&want{member: c.Member, since: e.Position, node: noNode})
				next.sequencers = next.sequencers.put(watchedSequencer, s)
			}
			return next, out
		}},
	},
	{
		"a member serves no sequencer of the policy after a join",
		scope{peers: 2, lag: 2, budget: budget{crashes: 1}, nodes: 2, policy: true},
		rules{apply: func(v Value, e Entry) (Value, Outcome) {
			next, out := Apply(v, e)
			if _, ok := e.Command.(AcceptJoin); ok && out == applied {
				for member := range next.assigned.all() {
					next.unassign(member)
					break
				}
			}
			return next, out
		}},
	},
}

// TestExploreFindsBrokenRules tests the exploration itself.
func TestExploreFindsBrokenRules(t *testing.T) {
	for _, c := range brokenRules {
		t.Run(c.name, func(t *testing.T) {
			if _, wrong := explore(c.scope, realRules()); wrong != nil {
				t.Fatalf("the real rules:\n%s", wrong)
			}
			r := c.rules
			if r.apply == nil {
				r.apply = Apply
			}
			if r.watches == nil {
				r.watches = Watches
			}
			if r.duties == nil {
				r.duties = dutiesOrJoin
			}
			x, wrong := explore(c.scope, r)
			if wrong == nil {
				t.Fatalf("not found in %d worlds", len(x.worlds))
			}
			t.Logf("found in %d worlds:\n%s", len(x.worlds), wrong)
		})
	}
}
