package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// The exploration asks the real Apply, Watches and Duties, each of them once for each value and command: what they
// said is kept in a table, in which values have numbers. Positions and the order of joining play no part in
// membership, and are left out of what makes two values the same.

// rules are what is explored: the real ones, or broken ones that must be found out.
type rules struct {
	apply   func(Value, Entry) (Value, Outcome)
	watches func(Value, string) []string
	duties  func(Value, string) []Command
	noGC    bool // a joiner that can't get in does nothing about it
	stays   bool // a member that was taken out though it lives does not start again
	oneSlot bool // the watch on a joiner is lost when the watcher's own watcher changes
}

func realRules() rules { return rules{apply: Apply, watches: Watches, duties: dutiesOrJoin} }

// dutiesOrJoin are the duties of a member or pending joiner; anyone else joins.
func dutiesOrJoin(v Value, id string) []Command {
	if _, pending := v.Pending(id); !pending && !v.IsMember(id) {
		return []Command{PrepareJoin{Joiner: id}}
	}
	return Duties(v, id)
}

// most is how many IDs there are in a world at a time. They are numbers, and letters in a Value.
const (
	most   = 7
	nobody = most
)

var letters = [most]string{"a", "b", "c", "d", "e", "f", "g"}

func idOf(letter string) uint8 { return letter[0] - 'a' }

// entry is a command in a world's log, packed: what, by whom, about whom, and the target of a prepare. Others have a
// number there.
type entry uint16

type operation uint8

const (
	opPrepare operation = iota
	opNotify
	opAccept
	opAbort
	opLeave
	opGC
	opAttach
	opDecline // the target is the node ID
	opDetach
	opExpel // from here on: the verbs of an operator, which no peer owes
	opDrain
	opUndrain
	opMove    // the target is the node ID
	opKeep    // the target is the node ID; from here on it is about nobody
	opReserve // the target is the node ID
	opRelease
)

func newEntry(op operation, about, target uint8) entry {
	return entry(op)<<9 | entry(about)<<6 | entry(target)<<3 | nobody
}

func (e entry) op() operation { return operation(e >> 9) }
func (e entry) about() uint8  { return uint8(e >> 6 & 7) }
func (e entry) target() uint8 { return uint8(e >> 3 & 7) }
func (e entry) sender() uint8 { return uint8(e & 7) }

func (e entry) by(sender uint8) entry { return e&^7 | entry(sender) }

func (e entry) renamed(names *[most + 1]uint8) entry {
	target := e.target()
	if e.op() == opPrepare {
		target = names[target]
	}
	return newEntry(e.op(), names[e.about()], target).by(names[e.sender()])
}

// watchedSequencer is the one that there is, if there is one.
const watchedSequencer = "s"

func (e entry) command() Command {
	id, number := letters[e.about()], int64(e.target())
	return [...]Command{
		PrepareJoin{id},
		NotifyWatchers{id},
		AcceptJoin{id},
		AbortJoin{id},
		Leave{Member: id},
		PeerGC{id},
		Attach{Sequencer: watchedSequencer, Member: id},
		Decline{watchedSequencer, id, number},
		Detach{watchedSequencer, id},
		Expel{id, "operator"},
		Drain{watchedSequencer, id},
		Undrain{watchedSequencer, id},
		Move{watchedSequencer, number, id},
		Reserve{watchedSequencer, 0, Reserving{For: Later, Nodes: []int64{number}}},
		Reserve{watchedSequencer, 0, Reserving{For: "x", Nodes: []int64{number}}},
		Release{Sequencer: watchedSequencer, For: "x"}, // see applied
	}[e.op()]
}

// entryOf is the entry of a duty.
func entryOf(c Command) entry {
	switch c := c.(type) {
	case PrepareJoin:
		return newEntry(opPrepare, idOf(c.Joiner), nobody)
	case NotifyWatchers:
		return newEntry(opNotify, idOf(c.Joiner), nobody)
	case AcceptJoin:
		return newEntry(opAccept, idOf(c.Joiner), nobody)
	default:
		panic(fmt.Sprintf("a duty that the exploration does not know: %+v", c))
	}
}

// number is that of a value in the table.
type number uint16

const unknown = ^number(0)

// known is a value and what the rules said of it.
type known struct {
	value      Value
	other      *Value // one that looks the same, reached in another way
	key        string
	members    ids
	pending    ids
	attached   ids
	held       [most]uint8 // which node ID each has, as a set
	expelled   ids
	candidates []uint8
	watches    [most]ids
	ring       [most]uint8 // whom each watches in the ring
	duties     [most][]entry
	next       []number // by entry, without its sender
	turns      []turn
}

// turn is a way to name the IDs in a value by their place in it: members around the ring from one of them on,
// then the joiners in the order of their targets. All turns of a value lead to the same named one, and no other does.
type turn struct {
	named number
	names [most + 1]uint8 // nobody: has no name yet
}

// ids is a set.
type ids uint8

func (s ids) has(id uint8) bool { return s>>id&1 != 0 }

type table struct {
	rules
	byKey  map[string]number
	values []*known
	broken string // the first thing that was wrong with a value
}

func newTable(r rules) *table { return &table{rules: r, byKey: map[string]number{}} }

// number finds a value in the table, or puts it there.
func (t *table) number(v Value) number {
	key := keyOf(v)
	if n, ok := t.byKey[key]; ok {
		t.values[n].other = &v
		return n
	}
	k := &known{value: v, key: key, next: slices.Repeat([]number{unknown}, 1<<10)}
	for id, letter := range letters {
		_, pending := v.Pending(letter)
		if v.IsMember(letter) {
			k.members |= 1 << id
			k.ring[id] = uint8(id)
			if watched, ok := v.Watched(letter); ok {
				k.ring[id] = idOf(watched)
			}
		}
		if pending {
			k.pending |= 1 << id
		}
		if v.Expelled(letter) {
			k.expelled |= 1 << id
		}
		s, _ := v.Sequencer(watchedSequencer)
		if s.Attached(letter) {
			k.attached |= 1 << id
		}
		if node, ok := s.Node(letter); ok {
			k.held[id] = 1 << node
		}
		for _, watched := range t.watches(v, letter) {
			k.watches[id] |= 1 << idOf(watched)
		}
		for _, duty := range t.duties(v, letter) {
			k.duties[id] = append(k.duties[id], entryOf(duty))
		}
	}
	for i := range v.Candidates() {
		id, _ := v.peers.atMarked(i)
		k.candidates = append(k.candidates, idOf(id))
	}
	n := number(len(t.values))
	if n == unknown {
		panic("too many values for the exploration")
	}
	t.byKey[key] = n
	t.values = append(t.values, k)
	return n
}

// keyOf is everything in a value that can ever matter, and nothing else.
func keyOf(v Value) string {
	var b strings.Builder
	for id, p := range v.peers.all() {
		fmt.Fprintf(&b, "%s>%s<%s %s;", id, p.watches, p.watcher, p.joiner)
	}
	for id, j := range v.joins.all() {
		fmt.Fprintf(&b, "%s@%s %v;", id, j.Target, j.Accepted)
	}
	for i := range v.Candidates() {
		id, _ := v.peers.atMarked(i)
		b.WriteString(id)
	}
	for name, s := range v.sequencers.all() {
		c := s.checkpoint()
		fmt.Fprintf(&b, ";%s %v %v", name, c.Fresh, c.Freed)
		for _, w := range c.Wanting {
			node, _ := s.Node(w.Member)
			fmt.Fprintf(&b, " %s:%d %v", w.Member, node, w.Node != nil)
		}
		fmt.Fprintf(&b, " drained %v reserved", c.Drained)
		for _, reserved := range c.Reserved {
			fmt.Fprintf(&b, " %v for %s", reserved.Nodes, reserved.For)
		}
	}
	for id := range v.expelled.all() {
		b.WriteString(" without " + id)
	}
	if v.shares.len() > 0 { // then the order in which they joined matters, too
		for _, member := range v.Members() {
			serves, _ := v.Assigned(member)
			fmt.Fprintf(&b, " %s serves %s", member, serves)
		}
	}
	return b.String()
}

// after is the value that an entry leads to: the same, when it changes nothing. The position that a prepare needs for
// its target is found here; for all others any will do.
func (t *table) after(n number, e entry) number {
	k := t.values[n]
	to := &k.next[e>>3]
	if *to != unknown {
		return *to
	}
	next := t.applied(k.value, e)
	if again := keyOf(t.applied(k.value, e)); again != keyOf(next) || keyOf(k.value) != k.key {
		t.fail("%s %v: two members may come to %s and %s", k.value, e.command(), keyOf(next), again)
	}
	if wrong := unsound(next); wrong != "" {
		t.fail("%s, then %s %v leads to %s: %s", k.value, e.command().Name(), e.command(), keyOf(next), wrong)
		return n
	}
	*to = t.number(next)
	return *to
}

// unsound says what of the members or the node IDs can't be.
func unsound(v Value) string {
	for _, wrong := range []string{ringOf(v, v.Members()), nodesOf(v, v.Members()), verbsOf(v), policyOf(v)} {
		if wrong != "" {
			return wrong
		}
	}
	return ""
}

func (t *table) fail(format string, args ...any) {
	if t.broken == "" {
		t.broken = fmt.Sprintf(format, args...)
	}
}

func (t *table) applied(v Value, e entry) Value {
	position := v.position + 1
	if n := int64(v.Candidates()); e.op() == opPrepare && n > 0 && e.target() != nobody {
		for target, _ := v.peers.atMarked(int(position % n)); target != letters[e.target()]; {
			position++
			target, _ = v.peers.atMarked(int(position % n))
		}
	}
	c := e.command()
	if release, ok := c.(Release); ok { // of what is reserved there
		s, _ := v.Sequencer(watchedSequencer)
		if r := s.Reservation(release.For); r != nil {
			release.Since = r.Since
		}
		c = release
	}
	next, _ := t.apply(v, Entry{Position: position, Command: c})
	return next
}

// turnsOf are the ways to name a value's IDs by their places.
func (t *table) turnsOf(n number) []turn {
	k := t.values[n]
	if k.turns != nil {
		return k.turns
	}
	for first := range uint8(most) {
		if !k.members.has(first) && (k.members != 0 || first > 0) {
			continue
		}
		names, given := [most + 1]uint8{}, uint8(0)
		for id := range names {
			names[id] = nobody
		}
		give := func(id uint8) { names[id] = given; given++ }
		var around []uint8
		for id := first; k.members.has(id) && names[id] == nobody; id = k.ring[id] {
			around = append(around, id)
			give(id)
		}
		for _, target := range around {
			for joiner, j := range k.value.joins.all() {
				if idOf(j.Target) == target {
					give(idOf(joiner))
				}
			}
		}
		for joiner, j := range k.value.joins.all() { // by broken rules only: the target is no member
			for _, id := range []uint8{idOf(j.Target), idOf(joiner)} {
				if names[id] == nobody {
					give(id)
				}
			}
		}
		for _, id := range k.value.expulsions.all() {
			if names[idOf(id)] == nobody {
				give(idOf(id))
			}
		}
		turn := turn{t.number(renamed(k.value, &names)), names}
		if k.turns != nil {
			best, this := t.values[k.turns[0].named].key, t.values[turn.named].key
			if this > best {
				continue
			}
			if this < best {
				k.turns = nil
			}
		}
		k.turns = append(k.turns, turn)
	}
	return k.turns
}

// renamed is a value with other IDs, and with small positions in the same order.
func renamed(v Value, names *[most + 1]uint8) Value {
	as := func(id string) string {
		if id == "" {
			return ""
		}
		return letters[names[idOf(id)]]
	}
	const position = 20
	r := Value{position: position}
	candidates := map[string]bool{}
	for i := range v.Candidates() {
		id, _ := v.peers.atMarked(i)
		candidates[id] = true
	}
	joined := func(id string) int64 { return int64(names[idOf(id)]) }
	if v.shares.len() > 0 {
		members := v.Members()
		joined = func(id string) int64 { return int64(slices.Index(members, id)) }
	}
	for name, s := range v.shares.all() {
		r.shares = r.shares.put(name, share{percent: s.percent})
	}
	for id, name := range v.assigned.all() {
		s, _ := r.shares.get(name)
		s.members = s.members.put(joined(id), as(id))
		r.shares, r.assigned = r.shares.put(name, s), r.assigned.put(as(id), name)
	}
	for id, p := range v.peers.all() {
		other := &peer{joined(id), as(p.watches), as(p.watcher), as(p.joiner)}
		r.peers = r.peers.putMarked(as(id), other, candidates[id])
	}
	for id, j := range v.joins.all() {
		r.joins = r.joins.put(as(id), Join{as(j.Target), j.Accepted})
	}
	for name, s := range v.sequencers.all() {
		q := Sequencer{
			definition: s.definition, region: s.region, allocation: s.allocation, free: s.free, reserved: s.reserved,
		}
		for member := range s.drained.all() {
			q.drained = q.drained.put(as(member), struct{}{})
		}
		for i, wanting := range s.checkpoint().Wanting {
			member := wanting.Member
			w := *s.want(member)
			node := w.node
			w.member, w.since, w.node = as(member), int64(i), noNode
			q = q.attach(&w)
			if !r.serves(as(member), name) {
				q = q.pause(as(member))
			}
			if node != noNode {
				q = q.hold(&w, node)
			}
		}
		r.sequencers = r.sequencers.put(name, q)
	}
	for _, id := range v.expulsions.all() {
		at := int64(r.expelled.len())
		r.expelled, r.expulsions = r.expelled.put(as(id), at), r.expulsions.put(at, as(id))
	}
	return r
}
