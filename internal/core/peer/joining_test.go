package peer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
)

// queue is a joiner's view of a log.
type queue struct {
	t        *testing.T
	value    cluster.Value
	position int64
	me       *incarnation
	joining
}

// inQueue has a ring of so many members, at each of which so many joins can be pending as there is room for.
func inQueue(t *testing.T, members int, f func(q *queue)) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t, me: &incarnation{id: "me"}}
		for i := range members {
			id := fmt.Sprint("m", i)
			q.see(cluster.PrepareJoin{Joiner: id})
			q.see(cluster.NotifyWatchers{Joiner: id})
			q.see(cluster.AcceptJoin{Joiner: id})
		}
		f(q)
	})
}

// see replays a command.
func (q *queue) see(c cluster.Command) cluster.Result {
	var out cluster.Outcome
	q.position++
	q.value, out = cluster.Apply(q.value, cluster.Entry{Position: q.position, Command: c})
	q.saw(c, out, q.me)
	return out.Result
}

// fill prepares joins until there is no room.
func (q *queue) fill() (joiners []string) {
	for q.value.Candidates() > 0 {
		id := fmt.Sprint("j", len(joiners))
		joiners = append(joiners, id)
		q.see(cluster.PrepareJoin{Joiner: id})
	}
	return joiners
}

// owes checks what is owed now.
func (q *queue) owes(want ...cluster.Command) {
	q.t.Helper()
	if have := q.owed(q.value, "me", time.Now()); !slices.Equal(have, want) {
		q.t.Errorf("after %v it owes %v, want %v", time.Since(epoch), have, want)
	}
}

var prepare = cluster.PrepareJoin{Joiner: "me"}

// A refused joiner waits for those refused before it, and tries again when there is room for all of them.
func TestJoinersGoInTheOrderOfTheirRefusal(t *testing.T) {
	inQueue(t, 6, func(q *queue) {
		q.owes(prepare)
		pending := q.fill()
		q.see(cluster.PrepareJoin{Joiner: "first"})
		if q.see(prepare) != cluster.Refused {
			t.Fatal("there was room")
		}
		q.owes()
		q.see(cluster.AbortJoin{Joiner: pending[0]})
		if n := q.value.Candidates(); n < 1 || n > 3 {
			t.Fatalf("%d candidates", n)
		}
		q.owes() // there is room for one
		q.see(cluster.PrepareJoin{Joiner: "first"})
		for q.value.Candidates() == 0 {
			pending = pending[1:]
			q.see(cluster.AbortJoin{Joiner: pending[0]})
		}
		q.owes(prepare)
	})
}

// TestLine compares a line with a slice.
func TestLine(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var l line
	var all []string
	for range 10_000 {
		id := fmt.Sprint(random.IntN(12))
		at := slices.Index(all, id)
		switch {
		case random.IntN(2) == 0:
			l.enter(id, "7")
			if at < 0 {
				all = append(all, id)
			}
		default:
			l.leave(id, "7")
			if at >= 0 {
				all = slices.Delete(all, at, at+1)
			}
		}
		me := slices.Index(all, "7")
		ahead := me
		if me < 0 {
			ahead = len(all)
		}
		if l.in != (me >= 0) || len(l.ahead) != ahead || l.len() != len(all) {
			t.Fatalf("%+v, want %v", l, all)
		}
		for _, other := range all[:ahead] {
			if !l.ahead[other] {
				t.Fatalf("%s is not ahead in %+v, want %v", other, l, all)
			}
		}
	}
}

// Of many that are stuck, the first in line call for a collection, and the others see that.
func TestOneOfManyCallsForACollection(t *testing.T) {
	inQueue(t, 3, func(q *queue) {
		q.fill()
		const ahead = 100
		for i := range ahead {
			q.see(cluster.PrepareJoin{Joiner: fmt.Sprint("other", i)})
		}
		q.see(prepare)
		q.owes()
		if wait := time.Until(q.next(time.Now())); wait < stuckAfter+ahead*perPlace {
			t.Errorf("with %d before it, it waits for %v", ahead, wait)
		}
	})
}

// A refused joiner that died delays the others once, for a while.
func TestADeadJoinerInLineIsPassedOver(t *testing.T) {
	inQueue(t, 6, func(q *queue) {
		pending := q.fill()
		q.see(cluster.PrepareJoin{Joiner: "dead"})
		q.see(prepare)
		q.see(cluster.AbortJoin{Joiner: pending[0]})
		q.owes()
		at := q.next(time.Now())
		if wait := time.Until(at); wait < stuckAfter || wait > 3*stuckAfter {
			t.Errorf("it waits for %v", wait)
		}
		time.Sleep(time.Until(at))
		q.owes(prepare)
		q.owes(prepare)
		if q.line.ahead["dead"] || q.line.behind["dead"] {
			t.Errorf("in line: %+v", q.line)
		}
	})
}

// Who finds no way in calls for a collection once nothing has moved for a while, and not again at once.
func TestAStuckJoinerCallsForACollection(t *testing.T) {
	inQueue(t, 3, func(q *queue) {
		pending := q.fill()
		q.see(prepare)
		q.owes()
		time.Sleep(time.Until(q.next(time.Now())) - time.Millisecond)
		q.owes()
		q.see(cluster.NotifyWatchers{Joiner: pending[0]}) // something moves
		time.Sleep(time.Millisecond)
		q.owes()
		time.Sleep(time.Until(q.next(time.Now())))
		gc := cluster.PeerGC{By: "me"}
		q.owes(gc)
		q.sent(gc)
		q.owes()
	})
}

// A pending join is aborted when nothing moves, with twice the patience the next time.
func TestAJoinerGrowsTiredMoreAndMoreSlowly(t *testing.T) {
	inQueue(t, 3, func(q *queue) {
		for patience := joinPatience; patience < 10*joinPatience; patience *= 2 {
			if q.see(prepare) != cluster.Applied {
				t.Fatal("there was no room")
			}
			q.owes()
			time.Sleep(callAfter + crowdOf(q.value) - time.Millisecond)
			q.owes()
			time.Sleep(time.Millisecond)
			call := cluster.PeerGC{By: "me"}
			q.owes(call)
			q.sent(call)
			q.owes() // once for each join
			time.Sleep(patience / 2)
			q.see(cluster.PrepareJoin{Joiner: "other"}) // something moves
			q.see(cluster.AbortJoin{Joiner: "other"})
			time.Sleep(patience - time.Millisecond)
			q.owes()
			time.Sleep(time.Millisecond)
			abort := cluster.AbortJoin{Joiner: "me"}
			q.owes(abort)
			q.sent(abort)
			q.see(abort)
			q.owes()
			time.Sleep(joinPatience)
			q.owes(prepare)
		}
	})
}
