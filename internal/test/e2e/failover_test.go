//go:build unix

package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// The only node ID of a sequencer goes to a node that stands by: once the session of a killed node has ended, and at
// once after the last ID of a node that stops.
func TestAScarceNodeIDFailsOver(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	args := with(server, "--ttl=5s", "--no-auto-attach")
	nodes := fleet(t, 3, args...)
	nodes[0].mustCreate("pair", `"nodes":1,"window":"3s"`)
	p := &pair{t: t}
	for _, n := range nodes {
		p.add(n)
	}
	fails := func(round int, how syscall.Signal) time.Duration {
		holder := p.holder()
		begun := time.Now()
		holder.n.signal(how)
		holder.n.ended()
		if how != syscall.SIGKILL { // it gives IDs while it stops
			begun = holder.gave()
		}
		took := p.takenOver(begun, []*standby{holder}, []*standby{holder})
		holder.finish()
		p.watched = slices.DeleteFunc(p.watched, func(s *standby) bool { return s == holder })
		n := serve(t, fmt.Sprint("node ", len(nodes)+round), args...)
		n.ready(t, new(ledger))
		p.add(n)
		return took
	}
	var killed, stopped []time.Duration
	for round := range 5 {
		killed = append(killed, fails(2*round, syscall.SIGKILL))
		stopped = append(stopped, fails(2*round+1, syscall.SIGTERM))
	}
	for what, took := range map[string][]time.Duration{"kill -9": killed, "SIGTERM": stopped} {
		slices.Sort(took)
		t.Logf("%s: another gave an ID after %v; half of the time within %v", what, took, took[len(took)/2])
	}
	p.ledger.unique(t, 100)
}

// holder waits until one node gives IDs.
func (p *pair) holder() (holder *standby) {
	p.t.Helper()
	eventually(p.t, func() error {
		holder = nil
		for _, s := range p.watched {
			if !s.giving().IsZero() {
				holder = s
			}
		}
		if holder == nil {
			return fmt.Errorf("no node gives IDs")
		}
		return nil
	})
	return holder
}
