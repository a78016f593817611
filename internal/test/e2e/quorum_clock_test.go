//go:build unix

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/quorum"
)

// The clocks of three machines are 8 s apart. All step by a minute together, and nobody notices. Then the leader's
// steps, by an hour: it refuses once its window is used up, as any node whose clock the others contradict, but leads
// on: the quorum does not look at clocks. So does a step back. A node that is none of the machines is refused while its
// clock is wrong.
func TestClocksOfAQuorum(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, soonWindow)
	nodes, off := map[*keeper]*node{}, map[*keeper]time.Duration{}
	for i, k := range q.list {
		off[k] = time.Duration(i) * 4 * time.Second
		k.launch = func(args ...string) (process, *lines) {
			nodes[k] = start(t, firnSteppable, k.name, "", args...)
			nodes[k].step(off[k]) // all but the last before there is a cluster
			return nodes[k], nodes[k].log
		}
	}
	q.start()
	c := q.callers()
	q.extendAgain(q.list...)
	before := q.nodeIDs()
	for _, k := range q.list {
		off[k] += time.Minute
		nodes[k].step(off[k])
	}
	for range 2 {
		q.extendAgain(q.list...)
	}
	if now := q.nodeIDs(); !slices.Equal(now, before) {
		t.Errorf("all clocks stepped, and the node IDs are %v; they were %v", now, before)
	}

	leads := q.leader()
	ahead := func(by time.Duration) {
		t.Helper()
		eventually(t, func() error {
			s, err := q.others(leads)[0].status()
			i := slices.IndexFunc(s.Machines, func(m quorum.Machine) bool { return m.Address == leads.address })
			if err == nil &&
				(i < 0 || s.Machines[i].Clock < by-10*time.Second || s.Machines[i].Clock > by+10*time.Second) {
				err = fmt.Errorf("%s is said to be ahead by other than %v: %+v", leads.name, by, s)
			}
			return err
		})
	}

	leads.goesDown()
	nodes[leads].step(off[leads] + time.Hour)
	leads.refuses(`"clock"`, "ahead of 2 of 2 others")
	ahead(time.Hour)
	for range 2 {
		q.extendAgain(q.others(leads)...)
	}
	nodes[leads].step(off[leads])
	leads.ready()
	q.extendAgain(q.list...)

	late := q.local()
	late.launch = func(args ...string) (process, *lines) {
		nodes[late] = startOff(t, firnSteppable, time.Minute-time.Hour, late.name, "", args...)
		return nodes[late], nodes[late].log
	}
	late.startAs(append(q.quorum(), "--quorum-addr=none", "--wait")...)
	late.refuses(`"clock"`, "behind 3 of 3 others")
	began := time.Now()
	nodes[late].step(time.Minute)
	late.ready()
	q.lasted("a node whose clock was put right is served", began, rightAgain)
	late.stop()

	leads.goesDown()
	nodes[leads].step(off[leads] - time.Hour)
	leads.refuses(`"clock"`, "behind 2 of 2 others")
	ahead(-time.Hour)
	for range 2 {
		q.extendAgain(q.others(leads)...)
	}
	nodes[leads].step(off[leads])
	leads.ready()
	ahead(0)
	q.extendAgain(q.list...)
	q.whole()
	if now := q.leader(); now != leads {
		t.Errorf("%s led, and now %s does", leads.name, now.name)
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// nodeIDs are those of the machines' nodes.
func (q *keepers) nodeIDs() (all []int) {
	for _, k := range q.list {
		all = append(all, k.nodeID())
	}
	return all
}
