package cluster

// Outcome is what came of an entry.
type Outcome struct {
	Result Result
	Why    string // of a refusal, for people; empty otherwise
}

// Result is the kind of an outcome.
type Result uint8

// The results. Each command is idempotent: repeated, it leaves the value unchanged.
const (
	Unchanged Result = iota // there was nothing to do
	Applied                 // the value is another now
	Refused                 // its sender was wrong about the value; it is unchanged
)

func (r Result) String() string { return [...]string{"unchanged", "applied", "refused"}[r] }

var (
	applied   = Outcome{Result: Applied}
	unchanged = Outcome{Result: Unchanged}
)

func refused(why string) Outcome { return Outcome{Result: Refused, Why: why} }

// Apply returns the value that the next entry leads to, and what came of its command. The value given to
// it stays as it is. Positions must ascend; it takes the entry's as it comes.
func Apply(v Value, e Entry) (Value, Outcome) {
	v.position = e.Position
	v.entries++
	out := e.Command.apply(&v)
	return v, out
}

func (c PrepareJoin) apply(v *Value) Outcome {
	switch {
	case v.peers.has(c.Joiner) || v.joins.has(c.Joiner):
		return unchanged
	case v.peers.len() == 0:
		v.peers = v.peers.put(c.Joiner, peer{joined: v.position, watches: c.Joiner, watcher: c.Joiner})
		v.consider(c.Joiner)
		v.allocateAll()
		return applied
	case v.candidates.len() == 0:
		return refused("a join is pending at every member or next to it")
	}
	target, _ := v.candidates.at(int(v.position % int64(v.candidates.len())))
	v.joins = v.joins.put(c.Joiner, Join{Target: target})
	v.setJoiner(target, c.Joiner)
	return applied
}

func (c NotifyWatchers) apply(v *Value) Outcome {
	j, ok := v.joins.get(c.Joiner)
	if !ok || j.Accepted {
		return unchanged
	}
	j.Accepted = true
	v.joins = v.joins.put(c.Joiner, j)
	return applied
}

func (c AcceptJoin) apply(v *Value) Outcome {
	j, ok := v.joins.get(c.Joiner)
	if !ok || !j.Accepted {
		return unchanged
	}
	t, _ := v.peers.get(j.Target)
	watcher := t.watcher
	v.joins = v.joins.without(c.Joiner)
	t.joiner, t.watcher = "", c.Joiner
	v.peers = v.peers.put(j.Target, t)
	w, _ := v.peers.get(watcher) // the target itself, when it was alone
	w.watches = c.Joiner
	v.peers = v.peers.put(watcher, w)
	v.peers = v.peers.put(c.Joiner, peer{joined: v.position, watches: j.Target, watcher: watcher})
	v.consider(j.Target, watcher, c.Joiner)
	v.allocateAll()
	return applied
}

func (c AbortJoin) apply(v *Value) Outcome {
	if !v.joins.has(c.Joiner) {
		return unchanged
	}
	v.forget(c.Joiner)
	return applied
}

func (c Leave) apply(v *Value) Outcome {
	if v.joins.has(c.Member) {
		v.forget(c.Member)
		return applied
	}
	p, ok := v.peers.get(c.Member)
	if !ok {
		return unchanged
	}
	v.forget(p.joiner)
	if next, _ := v.peers.get(p.watches); next.joiner != "" {
		v.forget(next.joiner) // its watcher changes
	}
	v.peers = v.peers.without(c.Member)
	v.candidates = v.candidates.without(c.Member)
	if p.watcher != c.Member {
		w, _ := v.peers.get(p.watcher)
		w.watches = p.watches
		v.peers = v.peers.put(p.watcher, w)
		x, _ := v.peers.get(p.watches)
		x.watcher = p.watcher
		v.peers = v.peers.put(p.watches, x)
		v.consider(p.watcher)
	}
	for name, s := range v.sequencers.all() {
		if s.wanting.has(c.Member) {
			v.sequencers = v.sequencers.put(name, s.detach(c.Member))
		}
	}
	v.allocateAll()
	return applied
}

func (PeerGC) apply(*Value) Outcome { return unchanged }

// setJoiner makes a member the target of a joiner, or of none.
func (v *Value) setJoiner(target, joiner string) {
	t, _ := v.peers.get(target)
	t.joiner = joiner
	v.peers = v.peers.put(target, t)
	v.consider(target, t.watcher)
}

// forget drops a pending join; there may be none.
func (v *Value) forget(joiner string) {
	if j, ok := v.joins.get(joiner); ok {
		v.joins = v.joins.without(joiner)
		v.setJoiner(j.Target, "")
	}
}

// consider puts members on the list of candidates, or takes them off it.
func (v *Value) consider(members ...string) {
	for _, id := range members {
		p, _ := v.peers.get(id)
		next, _ := v.peers.get(p.watches)
		switch free := p.joiner == "" && next.joiner == ""; {
		case free == v.candidates.has(id):
		case free:
			v.candidates = v.candidates.put(id, struct{}{})
		default:
			v.candidates = v.candidates.without(id)
		}
	}
}
