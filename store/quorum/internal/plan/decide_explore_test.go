package plan

import (
	"bytes"
	"fmt"
	"math/bits"
	"strconv"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
)

// This file explores how three machines form a cluster and come back to it, with Decide, Accept and Form themselves:
// every order of crashes, starts, emptied disks and disks set back, answers and offers that are late, lost or come
// twice.
//
// There must never be data of two clusters. What is committed is one thing per cluster: a disk keeps it or does not,
// and a majority of the voters must never run without it while any disk has it.

// machines are the three; the first founds. stranger is in a wrong list only.
var machines = [3]string{"a", "b", "c"}

const stranger = "d"

// set has machines as bits, or identities.
type set uint8

func of(i int) set           { return 1 << i }
func (s set) has(i int) bool { return s&of(i) != 0 }
func (s set) len() int       { return bits.OnesCount8(uint8(s)) }

func (s set) names() (some []string) {
	for i, m := range machines {
		if s.has(i) {
			some = append(some, m)
		}
	}
	return some
}

const everyone set = 7

// disk is a Disk with a number for an identity.
type disk struct {
	state   State
	cluster uint8
}

func (d disk) real() Disk { return Disk{d.state, name(d.cluster)} }

func (d disk) hasData() bool { return d.state == Formed || d.state == Started || d.state == Alone }

func name(cluster uint8) string {
	if cluster == 0 {
		return ""
	}
	return strconv.Itoa(int(cluster))
}

func abstract(d Disk) disk {
	n, _ := strconv.Atoi(d.Cluster)
	return disk{d.State, uint8(n)}
}

// answer is what a machine has said.
type answer struct {
	heard   bool
	disk    disk
	now     bool // its process has not ended since
	running bool
	record  set
	sawMore bool // it saw the machine that asked keep what is committed
	wrong   bool // its list
}

// choice is what a machine is about to do, if its disk still says what it said then.
type choice struct {
	do      Do
	cluster uint8
	disk    disk
}

// offer is one on its way.
type offer struct {
	cluster uint8
	disk    disk
	now     bool // the process that it is for has not ended
}

// identities is how many clusters there may be, and one that the last test needs.
const identities = 4

// late is how many offers to a machine are on their way at a time, at most: the latest.
const late = 2

// world is the three machines and what is on its way between them. Processes that have ended know nothing.
type world struct {
	disks [3]disk
	keeps set    // whose disk has what is committed
	saw   [3]set // of whom each machine saw that it keeps what is committed
	runs  set    // whose server runs
	wrong bool   // the last machine has another list

	heard    [3]answer // by the founder, in its round of questions
	decided  [3]choice // what each has decided, and not done yet
	attempt  uint8     // the founder's, for this identity
	accepted set

	offers    [3][late]offer      // on their way to each, for as long as they like, and twice
	told      [3]set              // "all have promised", on its way to each, of these identities
	fresh     uint8               // the last identity that was taken
	committed set                 // identities of clusters that have committed something
	voters    [identities + 1]set // of each cluster

	left faults
}

// faults are how many there may still be.
type faults struct{ empties, setBacks, identities, copies uint8 }

func lists(wrong bool) []string {
	if wrong {
		return []string{"b", "c", stranger}
	}
	return machines[:]
}

// index of the last entry on a disk.
func (w *world) index(i int) uint64 {
	switch {
	case w.disks[i].state != Started:
		return 0
	case w.keeps.has(i):
		return 2
	default:
		return 1
	}
}

// members are those that run a cluster's server.
func (w *world) members(cluster uint8) (s set) {
	for i, d := range w.disks {
		if w.runs.has(i) && d.cluster == cluster {
			s |= of(i)
		}
	}
	return s
}

func (w *world) majority(cluster uint8, of set) bool {
	voters := w.voters[cluster]
	return 2*(of&voters).len() > voters.len()
}

// answers is what a machine says to another.
func (w *world) answers(i, asker int) answer {
	d := w.disks[i]
	a := answer{heard: true, disk: d, now: true, sawMore: w.saw[i].has(asker), wrong: w.wrong && i == 2}
	if w.runs.has(i) && w.majority(d.cluster, w.members(d.cluster)) {
		a.running, a.record = true, w.voters[d.cluster]
	}
	return a
}

func life(now bool) string {
	if now {
		return "this"
	}
	return "former"
}

// me is what a machine is to itself.
func (w *world) me(i int) Machine {
	return Machine{
		Address: machines[i], Life: life(true), Disk: w.disks[i].real(), List: lists(w.wrong && i == 2),
		Index: w.index(i),
	}
}

// decided has the decisions of before: there are few that differ.
var decided = map[question]Decision{}

type question struct {
	i     int
	disk  disk
	index uint64
	wrong bool
	fresh uint8
	heard [3]answer
}

func (w *world) decide(i int, heard [3]answer) choice {
	q := question{i, w.disks[i], w.index(i), w.wrong && i == 2, w.fresh + 1, heard}
	d, ok := decided[q]
	if !ok {
		said := map[string]Machine{}
		for j, a := range heard {
			if a.heard {
				said[machines[j]] = a.real(i, j)
			}
		}
		d = Decide(w.me(i), said, name(w.fresh+1))
		decided[q] = d
	}
	switch d.Do {
	case Wait, Client, Refuse:
		return choice{}
	}
	return choice{d.Do, abstract(Disk{Cluster: d.Cluster}).cluster, w.disks[i]}
}

func (a answer) real(asker, i int) Machine {
	m := Machine{
		Address: machines[i], Life: life(a.now), Disk: a.disk.real(), List: lists(a.wrong), Running: a.running,
		Record: a.record.names(),
	}
	if a.sawMore {
		m.Saw = map[string]uint64{machines[asker]: 2}
	}
	return m
}

// broken says what is wrong with a world.
func (w *world) broken() string {
	var first disk
	for _, d := range w.disks {
		if !d.hasData() || d.state == Alone { // which becomes a cluster once it runs
			continue
		}
		if w.wrong && d.state != Started {
			return "a cluster is formed, and the lists differ"
		}
		if first.hasData() && d.cluster != first.cluster {
			return "two clusters"
		}
		first = d
	}
	for cluster := uint8(1); cluster <= w.fresh; cluster++ {
		if w.committed.has(int(cluster)) && w.majority(cluster, w.members(cluster)&^w.keeps) {
			return "a majority runs without what was committed"
		}
	}
	return ""
}

// keepers are the machines whose disks have what a cluster has committed.
func (w *world) keepers(cluster uint8) (s set) {
	for i, d := range w.disks {
		if w.keeps.has(i) && d == (disk{Started, cluster}) {
			s |= of(i)
		}
	}
	return s
}

// next calls visit with everything that can happen next, by canonical worlds.
func (w world) next(visit visitor[world]) {
	w.nextByName(func(what string, n world, broken string) {
		n.canonical()
		visit(what, n, broken)
	})
}

// nextByName is next with worlds as they are.
func (w world) nextByName(visit visitor[world]) {
	see := func(what string, n world) {
		if broken := n.broken(); n != w {
			visit(what, n, broken)
		}
	}
	for i := range machines {
		w.nextOfProcess(i, see)
		w.nextOfDisk(i, see)
	}
	w.nextOfFounder(see)
	w.nextOfServers(see)
}

// canonical has the last two machines change places if that makes their order one of two: nothing tells them apart but
// their lists.
func (w *world) canonical() {
	b, c := w.part(1), w.part(2)
	if w.wrong || bytes.Compare(b[:], c[:]) <= 0 {
		return
	}
	swap(&w.disks)
	swap(&w.heard)
	swap(&w.decided)
	swap(&w.offers)
	swap(&w.told)
	swap(&w.saw)
	sets := []*set{&w.keeps, &w.runs, &w.accepted, &w.heard[1].record, &w.heard[2].record}
	for i := range w.saw {
		sets = append(sets, &w.saw[i])
	}
	for i := range w.voters {
		sets = append(sets, &w.voters[i])
	}
	for _, s := range sets {
		*s = *s&^6 | *s>>1&2 | *s<<1&4
	}
}

func swap[T any](of *[3]T) { of[1], of[2] = of[2], of[1] }

// part is what orders a machine.
func (w *world) part(i int) (p [24]byte) {
	at := 0
	put := func(some ...uint8) { at += copy(p[at:], some) }
	bit := func(b bool) uint8 {
		if b {
			return 1
		}
		return 0
	}
	h, c := w.heard[i], w.decided[i]
	put(uint8(w.disks[i].state), w.disks[i].cluster, bit(w.keeps.has(i)), bit(w.runs.has(i)), bit(w.accepted.has(i)),
		uint8(w.told[i]))
	put(bit(h.heard), uint8(h.disk.state), h.disk.cluster, bit(h.now), bit(h.running), uint8(c.do), c.cluster)
	for _, o := range w.offers[i] {
		put(o.cluster, uint8(o.disk.state), o.disk.cluster, bit(o.now))
	}
	put(bit(w.saw[0].has(i)), uint8(w.saw[i].len()))
	return p
}

func (w world) nextOfProcess(i int, see func(string, world)) {
	for k, o := range w.offers[i] {
		n := w
		if o.cluster == 0 || !n.accept(i, k) {
			continue
		}
		see(fmt.Sprintf("%s accepts the offer of %d, and the founder is not told", machines[i], o.cluster), n)
		if n.attempt == o.cluster {
			n.accepted |= of(i)
			see(fmt.Sprintf("%s accepts the offer of %d", machines[i], o.cluster), n)
		}
	}
	for cluster := uint8(1); cluster <= w.fresh; cluster++ {
		if w.told[i].has(int(cluster)) {
			n := w
			n.form(i, cluster)
			see(fmt.Sprintf("%s is told that all have promised %d", machines[i], cluster), n)
		}
	}
	if c := w.decided[i]; c != (choice{}) {
		n := w
		n.decided[i] = choice{}
		if c.disk == w.disks[i] {
			n.act(i, c)
		}
		see(fmt.Sprintf("%s does it: %v %d", machines[i], c.do, c.cluster), n)
	}
	if w.runs.has(i) || i == 0 && w.attempt != 0 || w.decided[i] != (choice{}) {
		return
	}
	if i == 0 && w.disks[0].state <= Promised {
		w.nextOfRound(see)
		return
	}
	for some := set(0); some <= everyone; some++ {
		if some.has(i) {
			continue
		}
		n := w
		n.decided[i] = w.decide(i, w.ask(i, some))
		see(fmt.Sprintf("%s hears from %v, and decides: %v", machines[i], some.names(), n.decided[i].do), n)
	}
}

// ask returns what some machines say to one.
func (w *world) ask(i int, some set) (heard [3]answer) {
	for j := range machines {
		if some.has(j) {
			heard[j] = w.answers(j, i)
		}
	}
	return heard
}

// nextOfRound has the founder ask, and hear from each at another time.
func (w world) nextOfRound(see func(string, world)) {
	for j := range machines {
		if n := w; j != 0 && !w.heard[j].heard {
			n.heard[j] = w.answers(j, 0)
			see(fmt.Sprintf("the founder hears from %s: %v", machines[j], w.disks[j]), n)
		}
	}
	n := w
	c := n.decide(0, w.heard)
	n.act(0, c)
	n.heard = [3]answer{}
	see(fmt.Sprintf("the founder does this: %v %d", c.do, c.cluster), n)
}

// nextOfDisk has a process end and another begin. One that is down is one that nobody hears from.
func (w world) nextOfDisk(i int, see func(string, world)) {
	w.end(i)
	see(machines[i]+" crashes, and starts", w)
	if i == 2 && w.wrong {
		n := w
		n.wrong = false
		see(machines[i]+" starts with the right list", n)
	}
	if w.left.empties > 0 && w.disks[i] != (disk{}) {
		n := w
		n.left.empties--
		n.write(i, disk{})
		n.saw[i] = 0
		see(machines[i]+" is emptied", n)
	}
	if w.left.copies > 0 && w.disks[i].state != Alone {
		n := w
		n.left.copies--
		n.write(i, disk{state: Alone})
		n.saw[i] = 0
		see(machines[i]+" gets a copy of the restored directory", n)
	}
	if w.left.setBacks > 0 && w.keepers(w.disks[i].cluster).has(i) && w.seenByAll(i) {
		for _, state := range []State{Promised, Started} {
			n := w
			n.left.setBacks--
			n.write(i, disk{state, w.disks[i].cluster})
			see(fmt.Sprintf("%s is set back, to when it was %v", machines[i], state), n)
		}
	}
}

// seenByAll reports whether all others that have data saw that a machine keeps what is committed.
func (w *world) seenByAll(i int) bool {
	for j, d := range w.disks {
		if j != i && d.hasData() && !w.saw[j].has(i) {
			return false
		}
	}
	return true
}

func (w world) nextOfFounder(see func(string, world)) {
	if w.attempt == 0 {
		return
	}
	n := w
	n.attempt, n.accepted = 0, 0
	see("the founder gives up", n)
	if Agreed(machines[:], w.accepted.names()) {
		n.formed(w.attempt)
		see(fmt.Sprintf("the founder forms %d", w.attempt), n)
	}
}

// formed has the founder form a cluster, and tell the others.
func (w *world) formed(cluster uint8) {
	if w.form(0, cluster) {
		w.told[1] |= of(int(cluster))
		w.told[2] |= of(int(cluster))
	}
}

func (w world) nextOfServers(see func(string, world)) {
	for cluster := uint8(1); cluster <= w.fresh; cluster++ {
		members := w.members(cluster)
		if !w.majority(cluster, members) {
			continue
		}
		if !w.committed.has(int(cluster)) {
			for some := set(1); some <= everyone; some++ {
				if n := w; some&^members == 0 && w.majority(cluster, some) {
					n.committed |= of(int(cluster))
					n.keeps |= some
					see(fmt.Sprintf("%d commits something on %v", cluster, some.names()), n)
				}
			}
			continue
		}
		n := w
		n.catchUp(cluster)
		see(fmt.Sprintf("all who run %d catch up", cluster), n)
		if w.left.setBacks == 0 {
			continue // nobody ever looks
		}
		n = w
		for i := range machines {
			if members.has(i) {
				n.saw[i] |= members & w.keeps &^ of(i)
			}
		}
		see(fmt.Sprintf("all who run %d see what the others keep", cluster), n)
	}
}

func (w *world) catchUp(cluster uint8) {
	if members := w.members(cluster); members&w.keeps != 0 && w.majority(cluster, members) {
		w.keeps |= members
	}
}

// end ends a process.
func (w *world) end(i int) {
	w.runs &^= of(i)
	w.decided[i] = choice{}
	if i == 0 {
		w.attempt, w.accepted, w.heard = 0, 0, [3]answer{}
	}
	w.heard[i].now = false
	for k := range w.offers[i] {
		w.offers[i][k].now = false
	}
}

// write has a disk say something that does not keep what is committed. What no disk keeps any more is forgotten.
func (w *world) write(i int, d disk) {
	former := w.disks[i].cluster
	w.disks[i], w.keeps = d, w.keeps&^of(i)
	if w.keepers(former) == 0 {
		w.committed &^= of(int(former))
	}
}

// accept has a machine take an offer that has arrived.
func (w *world) accept(i, k int) bool {
	o := w.offers[i][k]
	d, ok := Accept(w.me(i), Offer{Cluster: name(o.cluster), Life: life(o.now), Disk: o.disk.real()})
	if ok {
		w.write(i, abstract(d))
	}
	return ok
}

func (w *world) form(i int, cluster uint8) bool {
	d, ok := Form(w.disks[i].real(), name(cluster))
	if ok {
		w.write(i, abstract(d))
	}
	return ok
}

// act has a machine do what it has decided.
func (w *world) act(i int, c choice) {
	mine, cluster := &w.disks[i], c.cluster
	switch c.do {
	case Propose:
		if w.left.identities == 0 {
			break
		}
		w.left.identities--
		w.fresh++
		w.voters[w.fresh] = everyone
		me := w.me(i)
		own, ok := Accept(me, OfferTo(me, name(cluster)))
		if !ok {
			break
		}
		w.write(i, abstract(own))
		w.attempt, w.accepted = cluster, of(i)
		for j, a := range w.heard {
			if j != i {
				w.offers[j] = [late]offer{{cluster, a.disk, a.now}, w.offers[j][0]}
			}
		}
	case Follow:
		w.form(i, cluster)
	case Run:
		if mine.state == Alone {
			if w.left.identities == 0 {
				break
			}
			w.left.identities--
			w.fresh++
			cluster = w.fresh // nobody has taken it since the decision
			w.committed |= of(int(cluster))
			w.voters[cluster] = of(i)
			w.keeps |= of(i)
		}
		*mine = disk{Started, cluster}
		w.runs |= of(i)
	case Join:
		members := w.members(cluster)
		leads := w.majority(cluster, members) && (!w.committed.has(int(cluster)) || members&w.keeps != 0)
		if leads {
			w.write(i, disk{Started, cluster})
			w.voters[cluster] |= of(i)
			w.runs |= of(i)
			w.catchUp(cluster)
		}
	case SetBack:
		w.write(i, disk{Lost, cluster})
	}
}

// settled is what becomes of a world if nothing fails any more: what is on its way is lost, and all ask and act in
// turn.
func (w world) settled() (n world, rounds int) {
	w.left = faults{identities: identities - w.fresh}
	w.wrong = false
	for i := range machines {
		w.offers[i], w.told[i], w.decided[i] = [late]offer{}, 0, choice{}
	}
	w.heard, w.attempt, w.accepted = [3]answer{}, 0, 0
	for n = w; ; rounds++ {
		for i := range machines {
			if n.runs.has(i) {
				continue
			}
			n.heard = n.ask(i, everyone&^of(i))
			n.act(i, n.decide(i, n.heard))
			for j := range machines {
				if n.attempt != 0 && n.accept(j, 0) {
					n.accepted |= of(j)
				}
			}
			if n.attempt != 0 && Agreed(machines[:], n.accepted.names()) {
				n.formed(n.attempt)
			}
			n.heard, n.attempt, n.accepted, n.offers = [3]answer{}, 0, 0, [3][late]offer{}
		}
		for cluster := uint8(1); cluster <= n.fresh; cluster++ {
			n.catchUp(cluster)
		}
		if n == w {
			return n, rounds
		}
		w = n
	}
}

// stuck says what keeps machines from running one cluster for ever, until an operator helps.
func (w *world) stuck() string {
	state := map[State]int{}
	for _, d := range w.disks {
		state[d.state]++
	}
	switch data := state[Formed] + state[Started]; {
	case w.runs == everyone && w.disks[0].cluster == w.disks[1].cluster && w.disks[1].cluster == w.disks[2].cluster:
		return ""
	case state[Alone] > 1 || state[Alone] > 0 && data > 0:
		return "two were quorums of one"
	case state[Alone] > 0 && state[Promised] > 0:
		return "a promise may be kept"
	case data > 0 && !w.majorityHolds():
		return "a majority has lost its data"
	case data == 0 && state[Lost] > 0:
		return "all have lost their data"
	default:
		return "nothing"
	}
}

// majorityHolds reports whether a majority of a cluster's voters have its data, or some do and the others promised it.
func (w *world) majorityHolds() bool {
	for cluster := uint8(1); cluster <= w.fresh; cluster++ {
		var holders set
		data := false
		for i, d := range w.disks {
			if d.cluster == cluster && (d.hasData() || d.state == Promised) {
				holders |= of(i)
				data = data || d.hasData()
			}
		}
		if data && w.majority(cluster, holders) {
			return true
		}
	}
	return false
}

// exploreForming explores from some worlds, and says what keeps those from running that do not run in the end.
func exploreForming(t *testing.T, begin ...world) (stuck map[string]int) {
	t.Helper()
	worlds, violation := explore(begin, world.next)
	if violation != "" {
		t.Fatal(violation)
	}
	stuck = map[string]int{}
	most := 0
	known := map[world]string{}
	for _, w := range worlds {
		faulty := w.left.empties != begin[0].left.empties || w.left.setBacks != begin[0].left.setBacks ||
			w.left.copies != begin[0].left.copies
		quiet := w
		quiet.offers, quiet.told, quiet.decided, quiet.heard, quiet.attempt, quiet.accepted = [3][late]offer{},
			[3]set{}, [3]choice{}, [3]answer{}, 0, 0
		why, met := known[quiet]
		if !met {
			n, rounds := quiet.settled()
			most = max(most, rounds)
			why = n.stuck()
			known[quiet] = why
			if why == "nothing" || why != "" && why != "two were quorums of one" && !faulty {
				t.Fatalf("%s keeps these from running:\n%+v\nin the end:\n%+v", why, w, n)
			}
		}
		stuck[why]++
	}
	t.Logf("%d worlds, %d rounds at most to come to rest; what keeps them from running: %v", len(worlds), most, stuck)
	return stuck
}

func TestExploreForming(t *testing.T) {
	exploreForming(t, world{left: faults{empties: 3, identities: 2}})
}

func TestExploreFormingFurther(t *testing.T) {
	testenv.Exploration(t)
	exploreForming(t, world{left: faults{empties: 3, identities: 3}})
}

// TestExploreFormingByAnyName explores without making worlds equal in which the last two machines have changed places,
// and comes to the same worlds. They are as many as the model formal/forming.pml has, which is not made from this code,
// in the same bounds: docs/proof.md.
func TestExploreFormingByAnyName(t *testing.T) {
	for _, c := range []struct {
		left   faults
		worlds int
	}{
		{faults{identities: 1, empties: 1}, 7_848},
		{faults{identities: 1, empties: 3}, 12_566},
		{faults{identities: 2, empties: 0}, 14_914},
		{faults{identities: 2, empties: 1}, 86_828},
		{faults{identities: 2, empties: 2}, 173_963},
		{faults{identities: 3, empties: 0}, 98_331},
	} {
		begin := []world{{left: c.left}}
		named, violation := explore(begin, world.nextByName)
		if violation != "" {
			t.Fatal(violation)
		}
		worlds, violation := explore(begin, world.next)
		if violation != "" {
			t.Fatal(violation)
		}
		same := map[world]struct{}{}
		for _, w := range named {
			w.canonical()
			same[w] = struct{}{}
		}
		t.Logf("%+v: %d worlds, %d by name", c.left, len(worlds), len(named))
		if len(same) != len(worlds) {
			t.Errorf("%+v: %d worlds, but %d when named first", c.left, len(worlds), len(same))
		}
		if len(named) != c.worlds {
			t.Errorf("%+v: %d worlds by name; formal/forming.pml and docs/proof.md have %d", c.left,
				len(named), c.worlds)
		}
	}
}

func TestExploreListsThatDiffer(t *testing.T) {
	exploreForming(t, world{wrong: true, left: faults{empties: 1, identities: 2}})
}

func TestExploreAlone(t *testing.T) {
	var all []world
	for some := set(1); some <= everyone; some++ {
		w := world{left: faults{empties: 2, identities: 2}}
		for i := range machines {
			if some.has(i) {
				w.disks[i].state = Alone
			}
		}
		all = append(all, w)
	}
	if stuck := exploreForming(t, all...); stuck["two were quorums of one"] == 0 {
		t.Error("two quorums of one come to run")
	}
}

// Copies of one restored directory, put on any machine at any moment, begin at most one cluster.
func TestExploreRestoredCopies(t *testing.T) {
	w := world{left: faults{empties: 1, identities: 2, copies: 2}}
	w.disks[0].state = Alone
	stuck := exploreForming(t, w)
	for _, why := range []string{"", "two were quorums of one", "a promise may be kept"} {
		if stuck[why] == 0 {
			t.Errorf("no world ends with %q: the copies show nothing", why)
		}
	}
}

func TestExploreSetBack(t *testing.T) {
	w := world{fresh: 1, left: faults{empties: 1, setBacks: 1, identities: 1}}
	for i := range machines {
		w.disks[i] = disk{Started, 1}
	}
	w.voters[1] = everyone
	exploreForming(t, w)
}
