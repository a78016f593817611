package attachment

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// This file explores the protocol exhaustively: it runs Step itself, for one sequencer of two node IDs on one member,
// through every order of everything that can happen. The log grants and revokes, sessions end, others claim, the
// process crashes, horizons are reached, answers come late or never.
//
// In each of these worlds check says what must hold, and from each of them the member comes to rest as it should once
// the rest of the world is kind to it, see kind.

// world is one member, its grant, and the store.
type world struct {
	state State
	doing Action // what the member does
	taken bool   // the claim that it does was applied

	grant  Grant
	fences [2]fence // of the state's tenures
	live   [2]int8  // who has the live key of each node ID: 0: nobody, 1 and 2: those fences, other: somebody else
}

// fence is what the store and the clock know of a tenure.
type fence struct {
	open  bool // it was claimed and is not released, as far as this process is told
	sight Sight
}

const other = 3

const (
	now    = "now"    // the member ID that the member has
	former = "former" // one that it had before
)

// start has nothing.
func start() world {
	w := world{grant: Grant{Member: now}}
	w.state.Grant.Member = former
	return w
}

// step has the member take an event. broken says what it does wrong.
func (w world) step(e Event) (n world, broken string) {
	n = w
	n.state, n.doing = Step(w.state, e)
	return n, n.check(w, e)
}

func (w *world) look() Look {
	return Look{Grant: w.grant, Tenures: [2]Sight{w.fences[0].sight, w.fences[1].sight}}
}

// check says what is wrong with a step that led from the world before to this one.
func (w *world) check(before world, e Event) string {
	using := 0
	for i, t := range w.state.Tenures {
		was := before.state.Tenures[i].Phase
		uses, used := t.Phase == Used || t.Phase == Expiring, was == Used || was == Expiring
		seen := w.fences[i].sight
		extendable := w.grant == Grant{Granted, t.Node, t.Member} && !seen.Lost
		if uses {
			using++
		}
		_, looked := e.(Look)
		switch {
		case (t.Phase != Free) != w.fences[i].open:
			return fmt.Sprintf("slot %d is %v, and its node ID is claimed: %v", i, t.Phase, w.fences[i].open)
		case was == Stopped && uses:
			return fmt.Sprintf("slot %d is used again after it was stopped", i)
		case was == Claimed && uses && (!extendable || !seen.Due || !looked):
			return fmt.Sprintf("slot %d begins to be used, and should not", i)
		case looked && t.Phase == Used && !extendable:
			return fmt.Sprintf("slot %d is extended, and should not be", i)
		case looked && uses && (w.grant.Kind >= Unwanted || w.grant.Kind == InLine && t.Member == now):
			return fmt.Sprintf("slot %d is used, and was revoked", i)
		case used && t.Phase == Stopped && !w.mayStop(i, e):
			return fmt.Sprintf("slot %d is stopped, and has time left", i)
		}
	}
	switch a := w.doing; {
	case using > 1:
		return "two are in use"
	case a.Kind == Use && w.state.Tenures[a.Slot].Phase != Used,
		a.Kind == Return && w.state.Tenures[a.Slot].Phase != Stopped:
		return fmt.Sprintf("%v of slot %d, which is %v", a.Kind, a.Slot, w.state.Tenures[a.Slot].Phase)
	case a.Kind == Claim && (w.grant.Kind != Granted || w.state.find(Free) < 0 || w.state.find(Claimed) >= 0):
		return "a claim that should not be"
	case a.Kind == Decline &&
		(w.state.Grant.Kind != Granted || w.state.Alone || w.state.Behind > MostDeclines || w.state.find(Used) >= 0):
		return "a decline that should not be"
	}
	return ""
}

// mayStop tells whether the use of a tenure may end.
func (w *world) mayStop(i int, e Event) bool {
	t, seen := w.state.Tenures[i], w.fences[i].sight
	replaced := w.doing.Kind == Use && w.doing.Slot != i
	revoked := w.grant.Kind >= Unwanted || w.grant.Kind == InLine && t.Member == now
	over := seen.Over && (seen.Lost || w.grant != Grant{Granted, t.Node, t.Member})
	_, held := e.(HeldByOther)
	inTheWay := held && !t.Lost && t.Node == w.state.Grant.Node
	return replaced || revoked || over || inTheWay
}

// next calls visit with everything that can happen next.
func (w world) next(visit func(what string, n world, broken string)) {
	w.nextOfTheLog(visit)
	w.nextOfTheStore(visit)
	w.nextOfTheClock(visit)
	w.nextOfTheMember(visit)
	n := start()
	n.live = w.live
	for id := range n.live {
		if n.live[id] != 0 {
			n.live[id] = other // until the session of the process has ended
		}
	}
	visit("the process crashes, and another begins", n, "")
}

func (w world) nextOfTheLog(visit func(string, world, string)) {
	if w.grant.Kind == Destroyed {
		return
	}
	for _, g := range []Grant{
		{Kind: Rejoining},
		{Kind: InLine},
		{Kind: Granted},
		{Kind: Granted, Node: 1},
		{Kind: Unwanted},
		{Kind: Destroyed},
	} {
		n := w
		g.Member = now
		n.grant = g
		visit(fmt.Sprintf("the grant is %+v", g), n, "")
	}
	n := w
	n.grant = Grant{Member: now}
	for i := range n.state.Tenures {
		if n.state.Tenures[i].Phase != Free {
			n.state.Tenures[i].Member = former
		}
	}
	n.state.Grant.Member = former
	visit("the member joins again", n, "")
	n.live = [2]int8{}
	for i := range n.fences {
		n.fences[i].sight.Lost = n.fences[i].open
	}
	visit("the member joins again, as the store has lost its data", n, "")
}

func (w world) nextOfTheStore(visit func(string, world, string)) {
	for id, who := range w.live {
		n := w
		if n.live[id] = 0; who == 0 {
			n.live[id] = other
		}
		visit(fmt.Sprintf("node ID %d was claimed by %d, and is by %d", id, who, n.live[id]), n, "")
	}
}

func (w world) nextOfTheClock(visit func(string, world, string)) {
	for i, f := range w.fences {
		n := w
		seen := &n.fences[i].sight
		switch {
		case !f.open:
		case !f.sight.Due:
			seen.Due = true
			visit(fmt.Sprintf("the clock reaches the floor of slot %d", i), n, "")
		case !f.sight.Over && w.state.InUse() == i:
			seen.Over = true
			visit(fmt.Sprintf("the clock reaches the horizon of slot %d", i), n, "")
		}
		if w.state.Tenures[i].Phase == Used {
			n := w
			n.extend(i)
			visit(fmt.Sprintf("slot %d is extended", i), n, "")
		}
	}
}

// extend moves the horizon of a tenure, or finds that it is lost.
func (w *world) extend(i int) {
	if f := &w.fences[i]; w.live[w.state.Tenures[i].Node] == int8(i+1) {
		f.sight.Over = false
	} else {
		f.sight.Lost = true
	}
}

func (w world) nextOfTheMember(visit func(string, world, string)) {
	does := func(what string, e Event) {
		n, broken := w.step(e)
		visit(what, n, broken)
	}
	failed := w
	failed.doing = Action{}
	i := w.doing.Slot
	switch w.doing.Kind {
	case Wait:
		does("it looks", w.look())
		return
	case Claim:
		switch {
		case w.taken:
			w.taken = false
			does("it is told that it has claimed", TookIt{})
			return // there is no other answer
		case w.live[w.state.Grant.Node] != 0:
			does("it is told that another holds the node ID", HeldByOther{})
			if w.live[w.state.Grant.Node] == other {
				does("it is told that one without a session holds the node ID", HeldByOther{Lasting: true})
			}
		default:
			does("it is told that the clock is behind the floor", ClockBehind{})
			n := w
			n.claim()
			visit("its claim is applied", n, "")
		}
	case Decline:
		does("it is told what came of its decline", Declined{Same: w.grant == w.state.Grant})
	case Use:
		visit("it uses a node ID", failed, "")
		does("it can't use a node ID", NotUsed{i})
		return
	case Return:
		w.release(i)
		n := failed
		n.live = w.live
		visit("it gives a node ID back, and is not told", n, "")
		w.fences[i] = fence{}
		does("it gives a node ID back", Returned{i})
	}
	visit(fmt.Sprintf("its %v fails", w.doing.Kind), failed, "")
}

// claim has the store apply a claim.
func (w *world) claim() {
	i := w.state.find(Free)
	w.live[w.state.Grant.Node] = int8(i + 1)
	w.fences[i], w.taken = fence{open: true}, true
}

// release has the store apply the end of a tenure.
func (w *world) release(i int) {
	if at := &w.live[w.state.Tenures[i].Node]; *at == int8(i+1) {
		*at = 0
	}
}

// canonical makes worlds equal that differ only in what can never matter again: which former member ID it was; how
// many node IDs were declined, as long as another may be; what the next look will show.
func (w *world) canonical() {
	if answer := w.doing.Kind; answer != Claim && answer != Decline {
		w.state.Alone = w.state.Alone && w.state.Grant == w.grant
		w.state.Grant = w.grant
	}
	if g := w.grant; g.Node != 0 || g.Kind != Granted && w.state.Tenures[0].Node != 0 {
		w.swapNodes()
	}
	for i := range w.state.Tenures {
		t := &w.state.Tenures[i]
		t.Lost = t.Lost && w.doing.Kind == Claim
		switch t.Phase {
		case Free:
			*t = Tenure{}
		case Stopped:
			t.Member, t.Lost, w.fences[i].sight = "", false, Sight{}
		}
	}
	w.state.Behind = max(w.state.Behind, MostDeclines-1)
}

// swapNodes has each node ID stand for the other, which makes no difference to anybody.
func (w *world) swapNodes() {
	w.live[0], w.live[1] = w.live[1], w.live[0]
	for _, g := range []*Grant{&w.grant, &w.state.Grant} {
		if g.Kind == Granted {
			g.Node = 1 - g.Node
		}
	}
	for i := range w.state.Tenures {
		if t := &w.state.Tenures[i]; t.Phase != Free {
			t.Node = 1 - t.Node
		}
	}
}

// key is the world in a few bytes.
type key [2]uint64

func (w *world) key() (k key) {
	at := 0
	put := func(bits int, n int64) {
		if n < 0 || n >= 1<<bits {
			panic(fmt.Sprintf("%d does not fit %d bits", n, bits))
		}
		k[at] = k[at]<<bits | uint64(n)
	}
	s := &w.state
	for _, g := range [...]*Grant{&w.grant, &s.Grant} {
		put(3, int64(g.Kind))
		put(1, g.Node)
		put(1, bit(g.Member == now))
	}
	put(3, int64(w.doing.Kind))
	put(1, int64(w.doing.Slot))
	put(1, bit(w.taken))
	put(4, int64(s.Behind))
	put(1, bit(s.Alone))
	at = 1
	for i := range s.Tenures {
		t, f := &s.Tenures[i], &w.fences[i]
		put(3, int64(t.Phase))
		put(1, t.Node)
		put(1, bit(t.Member == now))
		put(1, bit(t.Lost))
		put(1, bit(f.open))
		put(1, bit(f.sight.Due))
		put(1, bit(f.sight.Over))
		put(1, bit(f.sight.Lost))
		put(2, int64(w.live[i]))
	}
	return k
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// kind is what happens next if nothing bad does any more, the log comes to a grant of a kind, and time passes. At rest
// nothing happens any more.
func (w world) kind(to Kind) (n world, atRest bool, broken string) {
	if w.grant.Kind != to && w.grant.Kind != Destroyed {
		w.grant = Grant{Kind: to, Member: now}
		return w, false, ""
	}
	at := &w.live[w.state.Grant.Node]
	i := w.doing.Slot
	switch w.doing.Kind {
	case Claim:
		var e Event
		switch {
		case w.taken:
			w.taken, e = false, TookIt{}
		case w.state.Grant.Member != now:
			w.doing = Action{} // its session has ended
			return w, false, ""
		case *at == other: // who uses it up until then
			*at, e = 0, HeldByOther{}
		case *at != 0:
			e = HeldByOther{}
		default:
			w.claim()
			return w, false, ""
		}
		n, broken = w.step(e)
		return n, false, broken
	case Decline:
		if elsewhere := 1 - w.state.Grant.Node; w.grant == w.state.Grant && w.live[elsewhere] == 0 {
			w.grant.Node = elsewhere
		}
		n, broken = w.step(Declined{Same: w.grant == w.state.Grant})
		return n, false, broken
	case Use:
		w.doing = Action{}
		return w, false, ""
	case Return:
		w.release(i)
		w.fences[i] = fence{}
		n, broken = w.step(Returned{i})
		return n, false, broken
	}
	n, broken = w.step(w.look())
	n.canonical()
	w.canonical()
	if n != w || broken != "" {
		return n, false, broken
	}
	for i, t := range w.state.Tenures { // time passes
		seen, at := &n.fences[i].sight, &n.live[t.Node]
		switch {
		case t.Phase == Free:
		case t.Member == former && *at == int8(i+1):
			*at = 0
		case !seen.Due:
			seen.Due = true
		case t.Phase == Used:
			n.extend(i)
		default:
			seen.Over = true
		}
	}
	return n, n == w, ""
}

// rested says what is wrong with a world at rest.
func (w *world) rested() string {
	for i, t := range w.state.Tenures {
		here := w.grant == Grant{Granted, t.Node, t.Member}
		switch {
		case t.Phase == Used && here && w.live[t.Node] == int8(i+1):
			return ""
		case t.Phase != Free:
			return fmt.Sprintf("it rests, and slot %d is %v", i, t.Phase)
		case w.grant.Kind != Granted && slices.Contains(w.live[:], int8(i+1)):
			return fmt.Sprintf("it rests, and the node ID of slot %d is held", i)
		}
	}
	if w.grant.Kind == Granted {
		return "it rests, and uses nothing"
	}
	return ""
}

// explore visits every world that can be reached, breadth first, and stops at the first that is broken.
func explore(visited func(world)) (worlds int, violation string) {
	type origin struct {
		from int32
		what string
	}
	begin := start()
	begin.canonical()
	seen := map[key]struct{}{begin.key(): {}}
	origins := []origin{{}}
	level, number := []world{begin}, []int32{0}
	for len(level) > 0 {
		var deeper []world
		var numbers []int32
		for i := range level {
			level[i].next(func(what string, n world, broken string) {
				n.canonical()
				k := n.key()
				if _, ok := seen[k]; ok && broken == "" || violation != "" {
					return
				}
				seen[k] = struct{}{}
				origins = append(origins, origin{number[i], what})
				deeper, numbers = append(deeper, n), append(numbers, int32(len(origins)-1))
				violation = broken
				visited(n)
			})
			if violation != "" {
				trace := []string{violation}
				for at := int32(len(origins) - 1); at != 0; at = origins[at].from {
					trace = append(trace, origins[at].what)
				}
				slices.Reverse(trace)
				return len(seen), strings.Join(trace, "\n")
			}
		}
		level, number = deeper, numbers
	}
	return len(seen), ""
}

// comesToRest has the rest of the world be kind, and says what is wrong if the member does not come to rest as it
// should. known are worlds from which it does.
func comesToRest(w world, to Kind, known map[key]bool) string {
	var way []world
	fails := func(why string) string {
		var trace strings.Builder
		for _, w := range way {
			fmt.Fprintf(&trace, "%+v\n", w)
		}
		return trace.String() + why
	}
	for atRest := false; !atRest; {
		w.canonical()
		k := w.key()
		good, met := known[k]
		way = append(way, w)
		if met && !good {
			return fails("it goes round in circles")
		}
		if good {
			break
		}
		known[k] = false
		var broken string
		w, atRest, broken = w.kind(to)
		if atRest {
			broken = w.rested()
		}
		if broken != "" {
			return fails(broken)
		}
	}
	for _, w := range way {
		known[w.key()] = true
	}
	return ""
}

func TestExplore(t *testing.T) {
	var all []world
	phases := map[Phase]int{}
	actions := map[ActionKind]int{}
	worlds, violation := explore(func(w world) {
		all = append(all, w)
		actions[w.doing.Kind]++
		for _, tenure := range w.state.Tenures {
			phases[tenure.Phase]++
		}
	})
	t.Logf("%d worlds, %v, %v", worlds, phases, actions)
	if violation != "" {
		t.Fatal(violation)
	}
	for p := Free; p <= Stopped; p++ {
		if phases[p] == 0 {
			t.Errorf("no tenure was ever %v", p)
		}
	}
	for k := Wait; k <= Return; k++ {
		if actions[k] == 0 {
			t.Errorf("no member ever had to %v", k)
		}
	}
	for _, to := range []Kind{Rejoining, InLine, Granted, Unwanted} {
		known := map[key]bool{}
		for _, w := range all {
			if wrong := comesToRest(w, to, known); wrong != "" {
				t.Fatalf("%+v\n%s", w, wrong)
			}
		}
	}
}

// A clock that is behind every floor is found out after a few node IDs, however many there are; and at once when there
// is only one.
func TestDeclinesAreBounded(t *testing.T) {
	for nodes, why := range map[int64]Event{
		1: ClockBehind{}, 2: HeldByOther{Lasting: true}, 99: HeldByOther{Lasting: true}, 100: ClockBehind{},
	} {
		var s State
		var a Action
		declined, grant := 0, Grant{Kind: Granted, Member: now}
		for range 1000 {
			if s, a = Step(s, Look{Grant: grant}); a.Kind != Claim {
				t.Fatalf("%d node IDs: %v, want a claim", nodes, a.Kind)
			}
			if s, a = Step(s, why); a.Kind == Decline {
				declined++
				grant.Node = (grant.Node + 1) % nodes
				s, _ = Step(s, Declined{Same: grant == s.Grant})
			}
		}
		want := MostDeclines
		if nodes == 1 {
			want = 1
		}
		if declined != want {
			t.Errorf("%d node IDs: %d declines, want %d", nodes, declined, want)
		}
		if s, _ = Step(s, TookIt{}); s.Behind != 0 || s.Alone {
			t.Errorf("%d node IDs: after a claim it counts on: %+v", nodes, s)
		}
	}
}

// That there is no other node ID than one says nothing of the next grant.
func TestAnotherGrantCanBeDeclined(t *testing.T) {
	var s State
	s, _ = Step(s, Look{Grant: Grant{Kind: Granted, Node: 1, Member: now}})
	s, _ = Step(s, Declined{Same: true})
	s, _ = Step(s, Look{Grant: Grant{Kind: Granted, Node: 2, Member: now}})
	if _, a := Step(s, ClockBehind{}); a.Kind != Decline {
		t.Errorf("%v, want a decline", a.Kind)
	}
}
