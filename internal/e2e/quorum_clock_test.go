//go:build unix

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testenv"
	"github.com/firn-id/firn/store/quorum"
)

// The clocks of three machines are 8 s apart, and then the leader's steps, by an hour. It refuses once its window is used
// up, as any node whose clock the others contradict, but leads on: the quorum does not look at clocks. A step back stalls
// nobody.
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
	leads := q.leader()
	ahead := func(by time.Duration) {
		t.Helper()
		eventually(t, func() error {
			s, err := q.others(leads)[0].status()
			i := slices.IndexFunc(s.Machines, func(m quorum.Machine) bool { return m.Address == leads.address })
			if err == nil && (i < 0 || s.Machines[i].Clock < by-10*time.Second || s.Machines[i].Clock > by+10*time.Second) {
				err = fmt.Errorf("%s is said to be ahead by other than %v: %+v", leads.name, by, s)
			}
			return err
		})
	}

	leads.goesDown()
	nodes[leads].step(off[leads] + time.Hour)
	leads.refuses("clock")
	ahead(time.Hour)
	for range 2 {
		q.extendAgain(q.others(leads)...)
	}
	nodes[leads].step(off[leads])
	leads.ready()
	q.extendAgain(q.list...)

	nodes[leads].step(off[leads] - time.Hour)
	ahead(-time.Hour)
	for range 2 {
		q.extendAgain(q.list...)
	}
	c.served(10)
	nodes[leads].step(off[leads])
	ahead(0)
	q.extendAgain(q.list...)
	q.whole()
	if now := q.leader(); now != leads {
		t.Errorf("%s led, and now %s does", leads.name, now.name)
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}
