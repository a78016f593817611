package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/firn-id/firn"
)

// walk is a cluster on its way through commands that are mostly sensible: they are what its members would send.
type walk struct {
	rand     *rand.Rand
	position int64
	value    Value
}

var walkDefinitions = map[string][]Definition{
	"all": {
		small(4, Allocation{}), small(3, Allocation{}),
		{Nodes: 2, Layout: firn.Default, Prefix: "ord", Scattered: true},
	},
	"count": {
		small(6, Allocation{Kind: AllocateCount, Count: 3}),
		small(2, Allocation{Kind: AllocateCount, Count: 5}),
		{Nodes: 4, Layout: firn.Default, Prefix: "ord"},
	},
	"percent": {
		small(8, Allocation{Kind: AllocatePercent, Percent: 34}),
		small(16, Allocation{Kind: AllocatePercent, Percent: 100}),
	},
	"numbers": {
		{Kind: Counter},
		{Kind: Counter, Max: 1000, Prefix: "ord"},
		small(2, Allocation{}),
	},
}

func small(nodes int64, a Allocation) Definition {
	return Definition{Nodes: nodes, Allocation: a, Layout: firn.Default}
}

var walkSequencers = []string{"all", "count", "percent", "numbers"}

func (w *walk) one(of int) bool { return w.rand.IntN(of) == 0 }

// someone is any ID. Few of them are busy for a while, then others.
func (w *walk) someone() string {
	era := int(w.position/400) % 4
	return w.id((era*3 + w.rand.IntN([]int{4, 12, 7, 12}[era])) % 12)
}

// region is the region of the cluster, and at times another. Each has at least one node ID of every walkDefinitions.
func (w *walk) region() Region {
	if region, ok := w.value.Region(); ok && !w.one(10) {
		return region
	}
	return []Region{{}, {Number: 0, Of: 2}, {Number: 1, Of: 2}}[w.rand.IntN(3)]
}

func (w *walk) nodesIn(c CreateSequencer) Range {
	nodes, err := c.Region.Nodes(c.Definition)
	if err != nil {
		panic(err)
	}
	return nodes
}

// id is the present ID of one of twelve processes: one that was expelled gets another.
func (w *walk) id(process int) string {
	id := fmt.Sprintf("m%02d", process)
	for w.value.Expelled(id) && !w.one(20) {
		id += "x"
	}
	return id
}

func (w *walk) command() Command {
	who := w.someone()
	if duties := dutiesOrJoin(w.value, who); len(duties) > 0 && !w.one(4) {
		return duties[0]
	}
	name := walkSequencers[w.rand.IntN(len(walkSequencers))]
	switch s, _ := w.value.Sequencer(name); w.rand.IntN(29) {
	case 0:
		return PrepareJoin{Joiner: who}
	case 1:
		return NotifyWatchers{Joiner: who}
	case 2:
		return AcceptJoin{Joiner: who}
	case 3:
		return AbortJoin{Joiner: who}
	case 4:
		if w.one(2) {
			return Leave{Member: who}
		}
		if w.one(2) {
			return AskClocks{By: who}
		}
		return PeerGC{By: who}
	case 5:
		if w.one(10) {
			return DestroySequencer{Sequencer: name, Created: []int64{0, s.Created(), 1}[w.rand.IntN(3)]}
		}
		fallthrough
	case 6, 7:
		definitions := walkDefinitions[name]
		c := CreateSequencer{
			Sequencer: name, Definition: definitions[w.rand.IntN(len(definitions))],
			Region: w.region(),
		}
		if c.Definition.Claimed() {
			c.Region = Region{} // it can have no other
		} else if nodes := w.nodesIn(c); w.one(2) {
			c.Start = nodes.From + w.rand.Int64N(nodes.Size())
		}
		if !c.Definition.Claimed() && w.one(4) {
			c.Reserve = []Reserving{w.reserving()}
		}
		c.SolePrefix = c.Definition.Prefix != "" && !w.one(3) // entries of before have it not
		for w.one(3) {
			names := [][]string{nil, {"c*"}, {"a*", "percent"}}[w.rand.IntN(3)]
			c.Quotas = append(c.Quotas, Quota{names, 1 + w.rand.Int64N(3)})
		}
		return c
	case 8, 9, 10:
		return Detach{Sequencer: name, Member: who}
	case 11, 12, 13:
		node := w.rand.Int64N(9)
		if held, ok := s.Node(who); ok && !w.one(6) {
			node = held
		}
		return Decline{Sequencer: name, Member: who, Node: node}
	case 14:
		if w.one(6) {
			return Expel{Member: who, By: w.someone()}
		}
		fallthrough
	case 15:
		return Drain{Sequencer: name, Member: who}
	case 16, 17:
		return Undrain{Sequencer: name, Member: who}
	case 18, 19:
		return Move{Sequencer: name, Node: w.rand.Int64N(s.Definition().Capacity() + 1), To: who}
	case 20:
		allocate := Allocate{Sequencer: name, Created: []int64{0, s.Created(), 1}[w.rand.IntN(3)]}
		switch w.rand.IntN(3) {
		case 0:
			allocate.Allocation = Allocation{Kind: AllocateCount, Count: 1 + w.rand.Int64N(4)}
		case 1:
			allocate.Allocation = Allocation{Kind: AllocatePercent, Percent: 1 + w.rand.Int64N(100)}
		}
		return allocate
	case 27:
		return Reserve{name, []int64{0, s.Created(), 1}[w.rand.IntN(3)], w.reserving()}
	case 28:
		release := Release{Sequencer: name, Created: []int64{0, s.Created(), 1}[w.rand.IntN(3)], For: w.purpose()}
		if r := s.Reservation(release.For); r != nil && !w.one(4) {
			release.Since = r.Since
		}
		return release
	case 21:
		if w.one(3) {
			return w.policy()
		}
		fallthrough
	default:
		attach := Attach{Sequencer: name, Member: who}
		if w.one(3) {
			from := w.rand.Int64N(8)
			attach.Nodes = &Range{From: from, To: from + w.rand.Int64N(4)}
		}
		return attach
	}
}

// purpose is what node IDs are reserved for.
func (w *walk) purpose() string { return []string{"import", "warehouse", Later}[w.rand.IntN(3)] }

func (w *walk) reserving() Reserving {
	if from := w.rand.Int64N(8); w.one(2) {
		return Reserving{For: w.purpose(), Nodes: []int64{from, from + 1 + w.rand.Int64N(2)}[:1+w.rand.IntN(2)]}
	}
	return Reserving{For: w.purpose(), Count: 1 + w.rand.Int64N(3)}
}

// policy is one that shares the members out among some of the sequencers, or none.
func (w *walk) policy() SetPolicy {
	var c SetPolicy
	names := slices.Clone(walkSequencers)
	w.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	left := int64(100)
	for i, name := range names[:w.rand.IntN(len(names)+1)] {
		percent := left
		if i < 2 && w.one(2) {
			percent = 1 + w.rand.Int64N(left)
		}
		if left -= percent; percent == 100 {
			percent = 0 // the same, said in another way
		}
		c.Shares = append(c.Shares, Share{name, percent})
		if left == 0 {
			return c
		}
	}
	if len(c.Shares) > 0 {
		c.Shares[len(c.Shares)-1].Percent = 0
	}
	return c
}

// TestApplyAgreesWithTheReference walks at random, and holds every value against the reference and against what
// must be true of any.
func TestApplyAgreesWithTheReference(t *testing.T) {
	const steps = 6000
	outcomes := map[string]int{}
	largest := 0
	for seed := range uint64(4) {
		w := walk{rand: rand.New(rand.NewPCG(seed, 9))}
		r := newReference()
		before := checkpoint(t, w.value)
		twin := NewReplay(w.value) // it is restored from a checkpoint now and then
		var shown Value            // by the twin, a while ago
		shownThen := before
		for step := range steps {
			w.position += 1 + w.rand.Int64N(5)
			e := Entry{Position: w.position, Command: w.command()}
			if step%997 == 996 {
				e.Command = Skipped{Entry: fmt.Sprint("e", step)}
			}
			next, out := Apply(w.value, e)
			at := fmt.Sprintf("seed %d, step %d, %s %+v: %s", seed, step, e.Command.Name(), e.Command, w.value)
			if result := r.apply(e); result != out.Result {
				t.Fatalf("%s\n%v, but the reference: %v", at, out, result)
			}
			if (out.Result == Refused) != (out.Why != "") {
				t.Errorf("%s\n%+v: only a refusal has a reason", at, out)
			}
			have, err := json.Marshal(next)
			if want, err2 := r.marshal(); err != nil || err2 != nil || !bytes.Equal(have, want) {
				t.Fatalf("%s\n%v %v\nhave %s\nwant %s", at, err, err2, have, want)
			}
			if !bytes.Equal(checkpoint(t, w.value), before) {
				t.Fatalf("%s\nApply changed its argument", at)
			}
			argument := before
			before = checkpoint(t, next)
			if twinOut := twin.Apply(e); twinOut != out {
				t.Fatalf("%s\nin a replay it is %v, want %v", at, twinOut, out)
			}
			if w.one(5) {
				if !bytes.Equal(checkpoint(t, shown), shownThen) {
					t.Fatalf("%s\na replay has changed the value that it had shown", at)
				}
				shown, shownThen = twin.Value(), before
				if !bytes.Equal(checkpoint(t, shown), before) {
					t.Fatalf("%s\na replay, restored from a checkpoint, goes another way:\nhave %s\nwant %s", at,
						checkpoint(t, shown), before)
				}
			}
			if !bytes.Equal(checkpoint(t, w.value), argument) {
				t.Fatalf("%s\na replay has changed the value that it began at", at)
			}
			switch w.rand.IntN(20) {
			case 0:
				twin = NewReplay(restore(t, before))
			case 1:
				twin = NewReplay(next)
			}
			if wrong := inconsistency(next); wrong != "" {
				t.Fatalf("%s\nleads to %s:\n%s", at, next, wrong)
			}
			if have := next.Candidates(); have != len(r.candidates()) {
				t.Fatalf("%s\n%d candidates, want %v", at, have, r.candidates())
			}
			if next.Position() != e.Position || next.Entries() != int64(step+1) {
				t.Fatalf("%s\nposition %d, %d entries", at, next.Position(), next.Entries())
			}
			w.value = next
			outcomes[e.Command.Name()+" "+out.Result.String()]++
			largest = max(largest, next.Size())
		}
	}
	t.Logf("up to %d members; %v", largest, outcomes)
	for name := range readers {
		for _, result := range []Result{Unchanged, Applied, Refused} {
			if n := outcomes[name+" "+result.String()]; n == 0 && possible(name, result) {
				t.Errorf("no %s was ever %v", name, result)
			}
		}
	}
	if largest < 10 {
		t.Errorf("never more than %d members", largest)
	}
}

// possible tells whether a command can have a result.
func possible(name string, r Result) bool {
	switch name {
	case PeerGC{}.Name(), AskClocks{}.Name():
		return r == Unchanged
	case Skipped{}.Name():
		return r == Applied
	case NotifyWatchers{}.Name(), AcceptJoin{}.Name(), AbortJoin{}.Name(), Leave{}.Name():
		return r != Refused
	case DestroySequencer{}.Name():
		return r != Unchanged
	}
	return true
}

func checkpoint(t testing.TB, v Value) []byte {
	t.Helper()
	data, err := EncodeCheckpoint(v)
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	return data
}

// restore decodes a checkpoint, and checks that nothing got lost.
func restore(t testing.TB, data []byte) Value {
	t.Helper()
	v, err := DecodeCheckpoint(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if again := checkpoint(t, v); !bytes.Equal(again, data) {
		t.Fatalf("have %s\nwant %s", again, data)
	}
	return v
}

// inconsistency says what of a value can't be, and nothing when it is sound.
func inconsistency(v Value) string {
	members := v.Members()
	if wrong := ringOf(v, members); wrong != "" {
		return wrong
	}
	watchers := map[string]int{} // how many watchers each member has
	for _, member := range members {
		for _, watched := range Watches(v, member) {
			watchers[watched]++
		}
	}
	for _, member := range members {
		if n := watchers[member]; n != 1 && len(members) > 1 {
			return fmt.Sprintf("%d watch the member %s", n, member)
		}
	}
	targets := map[string]bool{}
	for joiner, j := range v.Joins() {
		switch {
		case watchers[joiner] != 1:
			return fmt.Sprintf("%d watch the joiner %s", watchers[joiner], joiner)
		case v.IsMember(joiner):
			return fmt.Sprintf("the joiner %s is a member already", joiner)
		case !v.IsMember(j.Target):
			return fmt.Sprintf("the target of %s is %s, no member", joiner, j.Target)
		case targets[j.Target]:
			return fmt.Sprintf("two joins have the target %s", j.Target)
		case !slices.Equal(Watches(v, joiner), []string{j.Target}):
			return fmt.Sprintf("%s watches %v, not its target %s", joiner, Watches(v, joiner), j.Target)
		}
		targets[j.Target] = true
	}
	for _, wrong := range []string{verbsOf(v), policyOf(v), placesOf(v)} {
		if wrong != "" {
			return wrong
		}
	}
	return nodesOf(v, members)
}

// placesOf says which place in line, or among those with a node ID, is not that of its member.
func placesOf(v Value) string {
	for name, s := range v.Sequencers() {
		line := s.Waiting()
		for member := range s.wanting.all() {
			if place := s.Place(member); place != slices.Index(line, member)+1 {
				return fmt.Sprintf("%s has place %d of %s, in the line %v", member, place, name, line)
			}
			own, before := s.want(member), 0
			for _, other := range s.wanting.all() {
				if own.node != noNode && other.node != noNode && other.since < own.since {
					before++
				}
			}
			if rank := s.Rank(member); rank != before {
				return fmt.Sprintf("%s has rank %d of %s; want %d", member, rank, name, before)
			}
		}
	}
	return ""
}

// policyOf says what of the policy can't be.
func policyOf(v Value) string {
	policy, total, drained := v.Policy(), int64(0), false
	serving := map[string]int{}
	for _, s := range policy {
		total += s.Percent
		of, ok := v.Sequencer(s.Sequencer)
		if !ok {
			return "a share for " + s.Sequencer + ", which is not there"
		}
		drained = drained || of.drained.len() > 0
	}
	for _, member := range v.Members() {
		serves, ok := v.Assigned(member)
		able := slices.ContainsFunc(policy, func(s Share) bool { return !v.isDrained(member, s.Sequencer) })
		if ok != able || ok && (!v.shares.has(serves) || v.isDrained(member, serves)) {
			return fmt.Sprintf("%s serves %q: %v, and can serve one: %v", member, serves, ok, able)
		}
		serving[serves]++
		for _, s := range policy {
			of, _ := v.Sequencer(s.Sequencer)
			if _, has := of.Node(member); has && s.Sequencer != serves {
				return fmt.Sprintf("%s serves %q, and has a node ID of %s", member, serves, s.Sequencer)
			}
		}
	}
	for name, s := range v.Sequencers() {
		for _, member := range s.paused.all() {
			if v.serves(member, name) {
				return fmt.Sprintf("%s serves %s, and may have no node ID", member, name)
			}
		}
	}
	for _, s := range policy {
		percent, of := s.Percent, total
		if slices.ContainsFunc(policy, func(s Share) bool { return s.Percent == 0 }) {
			of = 100
		}
		if percent == 0 {
			percent = 100 - total
		}
		exact := float64(v.assigned.len()) * float64(percent) / float64(of)
		if off := float64(serving[s.Sequencer]) - exact; !drained && (off <= -1 || off >= 1) {
			return fmt.Sprintf("%d serve %s; want %.2f", serving[s.Sequencer], s.Sequencer, exact)
		}
	}
	if v.assigned.len() > 0 && len(policy) == 0 {
		return "some serve a sequencer without a policy"
	}
	return ""
}

// verbsOf says what of the expelled and the drained can't be.
func verbsOf(v Value) string {
	for id := range v.expelled.all() {
		if _, pending := v.Pending(id); pending || v.IsMember(id) {
			return id + " is expelled, and is there"
		}
	}
	if n := v.expelled.len(); n != v.expulsions.len() || n > 256 {
		return fmt.Sprintf("%d are expelled, %d of them in order", n, v.expulsions.len())
	}
	for name, s := range v.Sequencers() {
		for member := range s.drained.all() {
			if s.Attached(member) || !v.IsMember(member) {
				return fmt.Sprintf("%s is drained from %s; it is attached: %v, a member: %v", member, name,
					s.Attached(member), v.IsMember(member))
			}
		}
	}
	return ""
}

// ringOf says why the pairs are not one ring over exactly the members.
func ringOf(v Value, members []string) string {
	around := map[string]bool{}
	for at := ""; len(members) > 1 && len(around) <= len(members); {
		if at == "" {
			at = members[0]
		}
		next, ok := v.Watched(at)
		if !ok || !v.IsMember(next) {
			return fmt.Sprintf("the member %s watches %q", at, next)
		}
		if around[next] {
			break
		}
		around[next] = true
		at = next
	}
	if len(members) > 1 && len(around) != len(members) || v.Size() != len(members) {
		return fmt.Sprintf("a ring of %d, of %d members: %v", len(around), len(members), members)
	}
	if len(members) == 1 {
		if watched, ok := v.Watched(members[0]); ok {
			return "the only member watches " + watched
		}
	}
	return ""
}

// nodesOf says what of the node IDs can't be.
func nodesOf(v Value, members []string) string {
	for name, s := range v.Sequencers() {
		holder, held := map[int64]string{}, 0
		for _, member := range members {
			if node, ok := s.Node(member); ok {
				if other := holder[node]; other != "" {
					return fmt.Sprintf("node ID %d of %s has two members: %s and %s", node, name, other, member)
				}
				holder[node] = member
				held++
			}
		}
		for r := range s.Reservations() {
			for _, node := range r.Nodes {
				if other := holder[node]; other != "" || !s.NodeIDs().Holds(node) {
					return fmt.Sprintf("node ID %d of %s is reserved, and that of %q", node, name, other)
				}
			}
		}
		for node, member := range s.Nodes() {
			if holder[node] != member || !s.NodeIDs().Holds(node) {
				return fmt.Sprintf("node ID %d of %s is said to be that of %s, but is that of %q", node, name,
					member, holder[node])
			}
			held--
		}
		if held != 0 {
			return fmt.Sprintf("%s: %d node IDs are held and not listed", name, held)
		}
		if wrong := fairnessOf(s, s.holders(len(members))); wrong != "" {
			return name + ": " + wrong
		}
	}
	return ""
}

// fairnessOf says who could have a node ID that nobody has, and has none.
func fairnessOf(s Sequencer, holders int) string {
	for member, w := range s.wanting.all() {
		if w.node != noNode || s.paused.has(w.since) || s.holding.len() >= holders {
			continue
		}
		for node := s.NodeIDs().From; node <= s.NodeIDs().To; node++ {
			if _, held := s.nodes.get(node); w.accepts(node) && s.ReservedFor(node) == nil && !held {
				return fmt.Sprintf("%s has no node ID, and %d is free", member, node)
			}
		}
	}
	return ""
}

// The last 256 expelled IDs are remembered, also in a checkpoint, and can't come back.
func TestExpelledIDsAreRemembered(t *testing.T) {
	var v Value
	apply := func(c Command, want Result) {
		t.Helper()
		var out Outcome
		if v, out = Apply(v, Entry{Position: v.position + 3, Command: c}); out.Result != want {
			t.Fatalf("%v: %v, want %v", c, out, want)
		}
	}
	id := func(i int) string { return fmt.Sprintf("m%03d", i) }
	apply(PrepareJoin{"operator"}, Applied)
	for i := range 300 {
		apply(Expel{id(i), "operator"}, Refused)
		apply(PrepareJoin{id(i)}, Applied)
		if i%2 == 0 {
			apply(NotifyWatchers{id(i)}, Applied)
			apply(AcceptJoin{id(i)}, Applied)
		}
		apply(Expel{id(i), "operator"}, Applied)
		apply(Expel{id(i), "operator"}, Unchanged)
		apply(PrepareJoin{id(i)}, Unchanged)
		if i%50 == 0 {
			v = restore(t, checkpoint(t, v))
		}
		if wrong := inconsistency(v); wrong != "" {
			t.Fatal(wrong)
		}
	}
	for i := range 300 {
		if v.Expelled(id(i)) != (i >= 300-256) {
			t.Errorf("%s: remembered: %v", id(i), v.Expelled(id(i)))
		}
	}
	apply(PrepareJoin{id(0)}, Applied)
}

// Whoever asks is told by five others, or by all if there are fewer, and over the positions all are asked alike.
func TestAsked(t *testing.T) {
	var v Value
	if asked := Asked(v, 7, "x"); len(asked) != 0 {
		t.Errorf("nobody is there, and %v are asked", asked)
	}
	for size := 1; size <= 12; size++ {
		id := string(rune('a' + size - 1))
		for i, c := range []Command{PrepareJoin{id}, NotifyWatchers{id}, AcceptJoin{id}} {
			v, _ = Apply(v, Entry{Position: v.position + 1 + int64(i), Command: c})
		}
		for _, by := range []string{"a", "joiner"} {
			times, others := map[string]int{}, slices.DeleteFunc(v.Members(), func(m string) bool { return m == by })
			for position := range int64(size * 10) {
				asked := Asked(v, position, by)
				slices.Sort(asked)
				if slices.Contains(asked, by) || len(slices.Compact(asked)) != min(len(others), 5) {
					t.Fatalf("%d members: %s asks %v", size, by, asked)
				}
				for _, id := range asked {
					times[id]++
				}
			}
			for _, id := range others {
				if times[id] < 10 {
					t.Errorf("%d members: %s is asked %d times by %s", size, id, times[id], by)
				}
			}
		}
	}
	_ = Asked(v, 1<<63-1, "a")
}
