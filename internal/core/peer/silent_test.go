package peer

import (
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store/memstore"
)

// Members die, and their sessions go on for long, as after the store had no majority and a new leader has extended them
// all. One that comes waits for none of these.
func TestAJoinerWaitsForNoSession(t *testing.T) {
	for _, c := range []struct{ many, dead int }{{1, 1}, {2, 1}, {2, 2}, {3, 1}, {3, 2}, {3, 3}, {5, 4}, {40, 3}} {
		for range 5 { // the log's positions choose targets
			t.Run(fmt.Sprint(c.dead, " of ", c.many), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					long := func(s *setup) { s.TTL = MaxTTL }
					nodes := w.startMany("n", c.many, long)
					w.becomeOneRing(time.Second, nodes)
					for _, n := range nodes[:c.dead] {
						n.crash()
					}
					fresh := w.start("fresh", long)
					fresh.ready(15 * time.Second) // a few calls, where several of many are dead
					for _, n := range nodes[c.dead:] {
						n.serves(time.Second)
					}
				})
			})
		}
	}
}

// A member whose pulse can't be written for a while, and who lives, is taken for dead. It joins again, and gives IDs
// all the time.
func TestASlowMemberIsTakenForDead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		slow := w.start("slow")
		slow.ready(time.Second)
		was := slow.mem.Load().ID()
		slow.client.CutOff(true)
		fresh := w.start("fresh")
		fresh.ready(5 * time.Second)
		if w.value().IsMember(was) {
			t.Errorf("%s is a member still", was)
		}
		slow.serves(5 * time.Second)
		slow.client.CutOff(false)
		w.becomeOneRing(10*time.Second, []*node{slow, fresh}, slow, fresh)
	})
}

// Where the joiner's own pulse is not written either, nobody is taken for dead.
func TestNobodyIsSilentWhileTheStoreIsSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.startMany("n", 3)
		w.becomeOneRing(time.Second, nodes)
		members := w.value().Members()
		w.service.Inject(func(memstore.Call) memstore.Fault { return memstore.Fault{Delay: 400 * time.Millisecond} })
		fresh := w.start("fresh")
		fresh.ready(time.Minute)
		v := w.value()
		for _, id := range members {
			if !v.IsMember(id) {
				t.Errorf("%s was taken for dead", id)
			}
		}
	})
}

// Where a joiner's own pulse is late as well, it takes nobody for dead who lives.
func TestTheStoreTakesPulsesLate(t *testing.T) {
	for range 5 {
		inBubble(t, func(t *testing.T, w *world) {
			nodes := w.startMany("n", 3)
			w.becomeOneRing(time.Second, nodes)
			lives := nodes[2].mem.Load().ID()
			nodes[0].crash()
			nodes[1].crash()
			w.service.Inject(func(c memstore.Call) memstore.Fault {
				if c.Op == memstore.Commit {
					return memstore.Fault{Delay: 1500 * time.Millisecond}
				}
				return memstore.Fault{}
			})
			w.start("fresh").ready(time.Minute)
			if !w.value().IsMember(lives) {
				t.Errorf("%s was taken for dead", lives)
			}
		})
	}
}

// TestLacks is about whom a call finds dead and silent.
func TestLacks(t *testing.T) {
	var v cluster.Value
	for i, c := range []cluster.Command{
		cluster.PrepareJoin{Joiner: "a"},
		cluster.PrepareJoin{Joiner: "b"},
		cluster.NotifyWatchers{Joiner: "b"},
		cluster.AcceptJoin{Joiner: "b"},
		cluster.PrepareJoin{Joiner: "c"},
		cluster.NotifyWatchers{Joiner: "c"},
		cluster.AcceptJoin{Joiner: "c"},
		cluster.PrepareJoin{Joiner: "d"},
	} {
		v, _ = cluster.Apply(v, cluster.Entry{Position: int64(i + 1), Command: c})
	}
	c := call{position: 9, called: []string{"a", "b", "d"}}
	gone, silent := c.lacks(v, map[string]Pulse{"b": {Answers: 8}, "c": {Answers: 8}, "d": {Answers: 9}})
	if fmt.Sprint(gone, silent) != "[a] [b]" {
		t.Errorf("gone %v, silent %v; want [a] [b]: c was not called, d has answered", gone, silent)
	}
}
