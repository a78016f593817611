package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
)

// This file explores how the members follow the record, with Care itself: every order of emptied disks, commands,
// changes of the leader, and actions that are carried out late, also by a leader of before.
//
// Raft is taken for granted: whoever leads has all that is committed, and what is committed then is on a majority of
// the voters. What must hold: no majority of voters has a log without all that is committed, no action takes the
// majority from the voters that have their logs, and the voters become the record.

// four are the machines. The lists of all have the first three.
var four = [4]string{"a", "b", "c", "d"}

const listed set = 7

// role is what the members' list says of a machine.
type role uint8

const (
	none role = iota
	learner
	voter
)

// members is a list of members.
type members struct {
	roles   [4]role
	started set
}

func (m *members) voters() (s set) {
	for i, r := range m.roles {
		if r == voter {
			s |= of(i)
		}
	}
	return s
}

// pending is an action that is not carried out yet.
type pending struct {
	kind   ActionKind
	at     uint8 // the machine
	record set   // for SetRecord: of before
	to     set   // for SetRecord
}

// realm is a cluster and its members.
type realm struct {
	record  set
	members members
	leader  uint8

	logs    set // whose disk has the log of the present member
	former  set // whose disk has the log of a member that was removed, and does not know
	removed set // whose disk says Removed
	kept    set // whose log has all that is committed

	read   members // the list that the leader has read, if it has
	stale  set     // whose member of that list is gone
	reads  bool
	orders [2]pending

	empties, commands uint8 // how many may still be
	prompt            bool  // a new leader waits until what was ordered before is carried out

	backwards bool // a planted fault: the leader asks the machines first, and then reads the members
	asked     disks
}

// disks are what the machines say, as sets.
type disks struct{ started, removed, caughtUp set }

func (r *realm) disks() disks { return disks{r.logs | r.former, r.removed, r.logs & r.kept} }

func (s set) addresses() (some []string) {
	for i, m := range four {
		if s.has(i) {
			some = append(some, m)
		}
	}
	return some
}

func setOf(addresses []string) (s set) {
	for _, m := range addresses {
		s |= of(slices.Index(four[:], m))
	}
	return s
}

func majority(some, voters set) bool { return 2*(some&voters).len() > voters.len() }

// of is what a machine's disk says.
func (d disks) of(i int) Disk {
	switch {
	case d.started.has(i):
		return Disk{Started, "x"}
	case d.removed.has(i):
		return Disk{Removed, "x"}
	default:
		return Disk{}
	}
}

// situation is what the leader's process knows when some machines have answered.
func (r *realm) situation(answer set) Situation {
	list, said := r.read, r.disks()
	if r.backwards {
		list, said = r.members, r.asked
	}
	s := Situation{
		Cluster: "x", Record: r.record.addresses(), Own: listed.addresses(),
		Said: map[string]Machine{}, CaughtUp: map[uint64]bool{},
	}
	for i, m := range four {
		if role := list.roles[i]; role != none {
			s.Members = append(s.Members, Member{
				ID: uint64(i), Address: m, Learner: role == learner,
				Started: list.started.has(i), Leader: i == int(r.leader),
			})
			s.CaughtUp[uint64(i)] = role == learner && said.caughtUp.has(i)
		}
		if answer.has(i) {
			s.Said[m] = Machine{Address: m, Disk: said.of(i), List: listed.addresses()}
		}
	}
	return s
}

// order turns an action into one that waits to be carried out, and says what is wrong with it.
func (r *realm) order(a Action) (p pending, broken string) {
	p = pending{kind: a.Kind, at: uint8(a.ID)}
	at := int(a.ID)
	switch a.Kind {
	case Nothing:
		return pending{}, ""
	case SetRecord:
		p.record, p.to = r.record, setOf(a.Record)
		if more := p.to &^ r.record; more&(r.logs|r.former|r.removed) != 0 {
			return p, "the record is to grow by a machine that is not empty"
		}
		return p, ""
	case Add:
		p.at = uint8(slices.Index(four[:], a.Add))
		return p, ""
	}
	if r.stale.has(at) {
		return pending{}, "" // there is no member of this ID any more
	}
	switch {
	case a.Kind == Remove && r.record.has(at) && r.logs.has(at):
		return p, "a member that has its log is to be removed"
	case a.Kind == Remove && r.record.has(at) && !r.members.started.has(at):
		return p, "a member that has not begun yet is to be removed"
	case a.Kind == Remove && at == int(r.leader):
		return p, "the leader is to be removed"
	case a.Kind == Promote && !r.kept.has(at):
		return p, "a learner that has not caught up is to be promoted"
	case a.Kind == Promote && !r.record.has(at):
		return p, "a learner that is not in the record is to be promoted"
	case a.Kind == HandOver && !r.record.has(at):
		return p, "leadership is to go to one that is not in the record"
	}
	return p, ""
}

// carryOut does what was ordered, if that is still possible.
func (r *realm) carryOut(k int) {
	p := r.orders[k]
	r.orders[k] = pending{}
	at := int(p.at)
	switch p.kind {
	case SetRecord:
		if r.record == p.record {
			r.record = p.to
		}
	case Add:
		if r.members.roles[at] == none {
			r.members.roles[at] = learner
		}
	case Promote:
		r.members.roles[at] = voter
	case Remove:
		r.members.roles[at] = none
		r.members.started &^= of(at)
		r.former |= r.logs & of(at)
		r.logs &^= of(at)
		r.kept &^= of(at)
		r.stale |= of(at)
		for k, o := range r.orders {
			if int(o.at) == at && (o.kind == Remove || o.kind == Promote || o.kind == HandOver) {
				r.orders[k] = pending{}
			}
		}
	case HandOver:
		if (r.logs & r.members.voters()).has(at) {
			r.leader, r.reads, r.read, r.stale = p.at, false, members{}, 0
			r.kept |= of(at)
		}
	}
}

// leads reports whether the leader can commit.
func (r *realm) leads() bool {
	voters := r.members.voters()
	return (r.logs & r.kept & voters).has(int(r.leader)) && majority(r.logs, voters)
}

func (r *realm) broken() string {
	voters := r.members.voters()
	switch {
	case !majority(r.logs, voters):
		return "no majority of the voters has a log"
	case majority(r.logs&^r.kept, voters):
		return "a majority of the voters does not have what is committed"
	}
	return ""
}

func (r realm) next(visit visitor[realm]) {
	see := func(what string, n realm) {
		if n != r {
			visit(what, n, n.broken())
		}
	}
	for i := range four {
		r.nextOfMachine(i, see)
	}
	if r.commands > 0 {
		r.nextOfCommands(see)
	}
	if !r.leads() {
		return
	}
	for some := set(1); some < 16; some++ {
		voters := r.members.voters()
		if n := r; some&^(voters&r.logs) == 0 && some.has(int(r.leader)) && majority(some, voters) {
			n.kept = some
			see(fmt.Sprintf("something is committed on %v", some.addresses()), n)
			for k, o := range r.orders {
				if o != (pending{}) {
					m := n
					m.carryOut(k)
					see(fmt.Sprintf("%v %s is carried out, on %v", o.kind, four[o.at], some.addresses()), m)
				}
			}
		}
	}
	n := r
	n.reads, n.read, n.stale = true, r.members, 0
	if r.backwards {
		n.read, n.asked = members{}, r.disks()
	}
	if !r.prompt || r.orders == [2]pending{} {
		see("the leader reads the members", n)
	}
	free := slices.Index(r.orders[:], pending{})
	if !r.reads || free < 0 {
		return
	}
	for answer := range set(16) {
		if !answer.has(int(r.leader)) {
			continue
		}
		n := r
		a := Care(r.situation(answer))
		var broken string
		n.orders[free], broken = r.order(a)
		n.reads, n.read, n.stale, n.asked = false, members{}, 0, disks{}
		slices.SortFunc(n.orders[:], func(a, b pending) int {
			return int(a.kind)*16 + int(a.at) - int(b.kind)*16 - int(b.at)
		})
		if n.orders[0] == n.orders[1] {
			n.orders[0] = pending{}
		}
		visit(fmt.Sprintf("the leader hears from %v, and wants: %v, as %s", answer.addresses(), a.Kind, a.Why),
			n, broken)
	}
}

func (r realm) nextOfMachine(i int, see func(string, realm)) {
	m := four[i]
	quorum := r.leads()
	role := r.members.roles[i]
	n := r
	switch {
	case r.former.has(i):
		n.former, n.removed = r.former&^of(i), r.removed|of(i)
		see(m+" learns that it was removed", n)
	case role == learner && !r.members.started.has(i) && !r.logs.has(i) && quorum:
		n.logs, n.removed = r.logs|of(i), r.removed&^of(i)
		see(m+" joins", n)
	case r.logs.has(i) && !r.members.started.has(i) && quorum:
		n.members.started |= of(i)
		see(m+" has started", n)
	}
	if r.logs.has(i) && role != none && quorum {
		n = r
		n.kept |= of(i)
		see(m+" catches up", n)
	}
	if r.kept.has(i) && r.logs.has(i) && role == voter && majority(r.logs, r.members.voters()) {
		n = r
		n.leader, n.reads, n.read, n.stale = uint8(i), false, members{}, 0
		see(m+" leads", n)
	}
	if n = r; r.empties > 0 && r.disks().of(i) != (Disk{}) {
		n.empties--
		n.logs, n.former, n.removed, n.kept = r.logs&^of(i), r.former&^of(i), r.removed&^of(i), r.kept&^of(i)
		if n.survives() {
			see(m+" is emptied", n)
		}
	}
}

// survives reports whether the voters that have lost their logs are a minority: of those of now, and of those that
// there will be once what is ordered is carried out. A change that is under way counts for a fault.
func (r *realm) survives() bool {
	configurations := []realm{*r}
	for k := range r.orders {
		for _, c := range slices.Clone(configurations) {
			c.carryOut(k)
			configurations = append(configurations, c)
		}
	}
	return !slices.ContainsFunc(configurations, func(c realm) bool { return c.broken() != "" })
}

func (r realm) nextOfCommands(see func(string, realm)) {
	r.commands--
	for old := range four {
		for instead := range four {
			if n := r; r.record.has(old) && !r.record.has(instead) {
				n.record = r.record&^of(old) | of(instead)
				see(fmt.Sprintf("replace %s %s", four[old], four[instead]), n)
			}
		}
		if n := r; r.record.len() == 3 && r.record.has(old) {
			n.record = of(old)
			see("remove all but "+four[old], n)
		}
	}
}

// settled is what becomes of it if nothing fails any more.
func (r realm) settled() (n realm, rounds int, broken string) {
	r.empties, r.commands = 0, 0
	r.orders, r.reads, r.read, r.stale = [2]pending{}, false, members{}, 0
	if !r.leads() {
		r.leader = 0
		for !(r.kept & r.logs & r.members.voters()).has(int(r.leader)) {
			r.leader++
		}
	}
	for n = r; rounds < 50; rounds++ {
		n.removed, n.former = n.removed|n.former, 0
		for i, role := range n.members.roles {
			if role == learner && !n.logs.has(i) && !n.members.started.has(i) {
				n.logs, n.removed = n.logs|of(i), n.removed&^of(i)
			}
			if n.logs.has(i) {
				n.members.started |= of(i)
				n.kept |= of(i)
			}
		}
		n.read = n.members
		a := Care(n.situation(15))
		n.orders[0], broken = n.order(a)
		n.read = members{}
		n.carryOut(0)
		n.stale = 0
		if broken != "" || n == r {
			return n, rounds, broken
		}
		r = n
	}
	return n, rounds, "it goes round in circles"
}

func exploreCare(t *testing.T, begin ...realm) {
	t.Helper()
	realms, violation := explore(begin, realm.next)
	if violation != "" {
		t.Fatal(violation)
	}
	most := 0
	kinds := map[ActionKind]int{}
	known := map[realm]bool{}
	for _, r := range realms {
		for _, o := range r.orders {
			kinds[o.kind]++
		}
		quiet := r
		quiet.orders, quiet.reads, quiet.read, quiet.stale, quiet.empties, quiet.commands = [2]pending{}, false,
			members{}, 0, 0, 0
		if known[quiet] {
			continue
		}
		known[quiet] = true
		n, rounds, broken := quiet.settled()
		most = max(most, rounds)
		voters := n.members.voters()
		if broken == "" && (voters != n.record || n.logs != n.record) {
			broken = fmt.Sprintf("in the end the voters are %v, and the record is %v", voters.addresses(),
				n.record.addresses())
		}
		if broken != "" {
			t.Fatalf("%+v\n%+v\n%s", r, n, broken)
		}
	}
	t.Logf("%d realms, %d actions at most to come to rest, ordered: %v", len(realms), most, kinds)
}

// of3 has three voters, which are the record.
func of3() realm {
	return realm{
		record: 7, logs: 7, kept: 7,
		members: members{roles: [4]role{voter, voter, voter}, started: 7},
	}
}

// of1 is to grow.
func of1() realm {
	return realm{
		record: 1, logs: 1, kept: 1,
		members: members{roles: [4]role{voter}, started: 1},
	}
}

func TestExploreCare(t *testing.T) {
	three, one := of3(), of1()
	three.empties, three.commands = 1, 1
	one.empties, one.commands = 1, 0
	exploreCare(t, three, one)
}

func TestExploreCareFurther(t *testing.T) {
	testenv.Exploration(t)
	three, one := of3(), of1()
	three.empties, three.commands = 2, 2
	one.empties, one.commands = 1, 1
	three.prompt, one.prompt = true, true
	exploreCare(t, three, one)
}

// Whoever reads the members last takes a machine for emptied that was only about to join when it was asked.
func TestMembersAreReadFirst(t *testing.T) {
	r := of3()
	r.empties, r.backwards, r.prompt = 1, true, true
	if _, violation := explore([]realm{r}, realm.next); !strings.Contains(violation,
		"a member that has its log is to be removed") {
		t.Errorf("%q", violation)
	}
}
