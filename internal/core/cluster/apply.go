package cluster

// Outcome is what an entry's command did.
type Outcome struct {
	Result Result
	Why    string // why the command was refused, for people; empty otherwise
}

// Result is the kind of an Outcome. The zero value is Unchanged.
type Result uint8

// The results. Commands are idempotent: a repeated command leaves the value unchanged.
const (
	Unchanged Result = iota // the command had nothing to do
	Applied                 // the command changed the value
	Refused                 // the command does not fit the value, which is unchanged
)

func (r Result) String() string { return [...]string{"unchanged", "applied", "refused"}[r] }

var (
	applied   = Outcome{Result: Applied}
	unchanged = Outcome{Result: Unchanged}
)

func refused(why string) Outcome { return Outcome{Result: Refused, Why: why} }

// Apply applies the entry's command to v, and returns the next value and the outcome. It does not change v. The
// caller passes entries in ascending order of position; Apply does not check that.
func Apply(v Value, e Entry) (Value, Outcome) {
	v.position = e.Position
	v.entries++
	out := e.Command.apply(&v)
	return v, out
}

// Replay applies the entries of a log to a value. It does what Apply does, with less than half the cost where many
// entries come together: it keeps no value that nobody has asked for. It is not safe for concurrent use.
type Replay struct{ v Value }

// NewReplay returns a Replay that begins at v, which it does not change.
func NewReplay(v Value) *Replay {
	r := &Replay{v}
	r.Value()
	return r
}

// Apply applies an entry, as the function Apply does.
func (r *Replay) Apply(e Entry) (out Outcome) {
	r.v, out = Apply(r.v, e)
	return out
}

// Entries returns what Value().Entries() would.
func (r *Replay) Entries() int64 { return r.v.entries }

// Value returns the value that the entries have led to. It does not change any more.
func (r *Replay) Value() Value {
	v := r.v
	v.peers.edit, v.joins.edit = nil, nil
	e := new(edit)
	r.v.peers.edit, r.v.joins.edit = e, e
	return v
}

func (c PrepareJoin) apply(v *Value) Outcome {
	switch {
	case v.peers.has(c.Joiner) || v.joins.has(c.Joiner):
		return unchanged
	case v.expelled.has(c.Joiner): // a late command; one that is refused stands in line
		return unchanged
	case v.peers.len() == 0:
		v.set(c.Joiner, peer{joined: v.position, watches: c.Joiner, watcher: c.Joiner})
		v.assign(c.Joiner)
		v.allocateAll()
		return applied
	case v.peers.marked() == 0:
		return refused("a join is pending at every member or next to it")
	}
	target, t := v.peers.atMarked(int(v.position % int64(v.peers.marked())))
	v.hang(c.Joiner, target, *t)
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
	v.joins = v.joins.without(c.Joiner)
	t := v.peer(j.Target)
	watcher := t.watcher // the target itself, when it is alone
	t.joiner, t.watcher = "", c.Joiner
	v.set(j.Target, t)
	v.set(c.Joiner, peer{joined: v.position, watches: j.Target, watcher: watcher})
	w := v.peer(watcher)
	w.watches = c.Joiner
	v.set(watcher, w)
	v.assign(c.Joiner)
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
	v.forget(v.peer(p.watches).joiner) // the target of that joiner gets another watcher
	v.unassign(c.Member)
	watches, watcher := p.watches, p.watcher
	v.peers = v.peers.without(c.Member)
	if watcher != c.Member {
		x := v.peer(watches)
		x.watcher = watcher
		v.set(watches, x)
		w := v.peer(watcher)
		w.watches = watches
		v.set(watcher, w)
	}
	for name, s := range v.sequencers.all() {
		if w := s.want(c.Member); w != nil {
			v.sequencers = v.sequencers.put(name, s.detach(w))
		} else if s.drained.has(c.Member) {
			s.drained = s.drained.without(c.Member)
			v.sequencers = v.sequencers.put(name, s)
		}
	}
	v.assign()
	v.allocateAll()
	return applied
}

// maxExpelled is how many expelled IDs a value remembers: those of a process that reads of it hours later, and yet
// few enough for a checkpoint.
const maxExpelled = 256

func (c Expel) apply(v *Value) Outcome {
	switch {
	case v.expelled.has(c.Member):
		return unchanged
	case Leave{Member: c.Member}.apply(v) == unchanged:
		return refused("there is no member or joiner of this ID")
	}
	v.expelled = v.expelled.put(c.Member, v.position)
	v.expulsions = v.expulsions.put(v.position, c.Member)
	if v.expulsions.len() > maxExpelled {
		first, oldest := v.expulsions.at(0)
		v.expelled, v.expulsions = v.expelled.without(oldest), v.expulsions.without(first)
	}
	return applied
}

func (c Skipped) apply(v *Value) Outcome {
	v.skipped = v.skipped.put(v.position, c.Entry)
	return applied
}

func (PeerGC) apply(*Value) Outcome { return unchanged }

func (AskClocks) apply(*Value) Outcome { return unchanged }

// peer returns the peer of a member. It panics when id is no member.
func (v *Value) peer(id string) peer {
	p, _ := v.peers.get(id)
	return *p
}

// set makes p the peer of a member, and marks it if the member is a candidate.
func (v *Value) set(id string, p peer) {
	v.peers = v.peers.putMarked(id, &p, v.free(id, &p))
}

// free reports whether a member, whose peer is p, is a candidate.
func (v *Value) free(id string, p *peer) bool {
	if p.joiner != "" {
		return false
	}
	next, ok := v.peers.get(p.watches)
	return p.watches == id || ok && next.joiner == ""
}

// hang makes a member, whose peer is t, the target of a joiner.
func (v *Value) hang(joiner, target string, t peer) {
	v.joins = v.joins.put(joiner, Join{Target: target})
	t.joiner = joiner
	v.set(target, t)
	v.peers = v.peers.mark(t.watcher, false)
}

// forget drops the pending join of a joiner, if there is one.
func (v *Value) forget(joiner string) {
	j, ok := v.joins.get(joiner)
	if !ok {
		return
	}
	v.joins = v.joins.without(joiner)
	t := v.peer(j.Target)
	t.joiner = ""
	v.set(j.Target, t)
	if w := v.peer(t.watcher); w.joiner == "" {
		v.peers = v.peers.mark(t.watcher, v.free(t.watcher, &w))
	}
}
