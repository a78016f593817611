package member

import (
	"slices"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/retry"
)

const (
	// joinPatience is how long a joiner waits for the watcher of its target to accept it while nothing
	// moves, at first; then it aborts and tries elsewhere, with twice the patience.
	joinPatience = 3 * time.Second

	// stuckAfter is how long a joiner in line waits for anything to move, at least, and at most twice as
	// long. In a crowd everything takes longer: perJoiner is added for everybody in line.
	stuckAfter = time.Second
	perJoiner  = 10 * time.Millisecond
)

// joining is what a joiner knows of its own way in.
//
// Many may join at once, and there is room for a few. So they stand in line: a joiner whose command was
// refused is seen by all, in the order of the log, and goes again when there is room for those before it
// and for itself. It may also go when nothing has moved for a while: those before it may be dead.
type joining struct {
	line    []string  // who was refused and has not got in since
	moved   time.Time // when membership last changed, as far as it was seen
	stuck   time.Time // when to call for a collection if nothing moves until then
	again   time.Time // when to go without regard for the line
	since   time.Time // when its own join became pending
	aborts  int
	collect bool // its call for a collection was seen
}

// saw takes note of an entry that was replayed.
func (j *joining) saw(c cluster.Command, out cluster.Outcome, l *incarnation) {
	if l == nil || l.joined {
		j.line = nil
		return
	}
	leaves := func(id string) {
		if i := slices.Index(j.line, id); i >= 0 {
			j.line = slices.Delete(j.line, i, i+1)
		}
	}
	moved := out.Result == cluster.Applied
	switch c := c.(type) {
	case cluster.PrepareJoin:
		switch {
		case moved:
			leaves(c.Joiner)
			if c.Joiner == l.id {
				j.again = time.Time{} // should this join come to nothing, it has waited enough
			}
		case out.Result == cluster.Refused && !slices.Contains(j.line, c.Joiner):
			j.line = append(j.line, c.Joiner)
		}
	case cluster.Leave:
		leaves(c.Member)
	case cluster.PeerGC:
		moved = true // whoever called will do it
		j.collect = j.collect || c.By == l.id
	case cluster.NotifyWatchers, cluster.AcceptJoin, cluster.AbortJoin:
	default:
		return
	}
	if moved {
		j.moved, j.stuck = time.Now(), time.Time{}
	}
}

// owed is what a joiner owes the log beside its duties.
func (j *joining) owed(v cluster.Value, id string, now time.Time) []cluster.Command {
	if _, pending := v.Pending(id); pending {
		if j.since.IsZero() {
			j.since = now
		}
		if now.Before(j.tired()) {
			return nil
		}
		return []cluster.Command{cluster.AbortJoin{Joiner: id}}
	}
	j.since = time.Time{}
	prepare := []cluster.Command{cluster.PrepareJoin{Joiner: id}}
	rank := slices.Index(j.line, id)
	if rank < 0 {
		if now.Before(j.again) {
			return nil
		}
		return prepare
	}
	// A join takes up its target and the watcher of that, so that about every third candidate finds room.
	if room := (v.Candidates() + 2) / 3; rank < room || v.Size() == 0 {
		return prepare
	}
	if v.Candidates() > 0 {
		if j.again.Before(j.moved) {
			j.again = now.Add(retry.Jitter(2*stuckAfter + j.crowd()))
		}
		if now.Before(j.again) {
			return nil
		}
		j.line = slices.Delete(j.line, 0, rank) // they have had their turn, and may be dead
		return prepare
	}
	if j.stuck.IsZero() {
		j.stuck = now.Add(retry.Jitter(2*stuckAfter + j.crowd()))
	}
	if now.Before(j.stuck) {
		return nil
	}
	return []cluster.Command{cluster.PeerGC{By: id}}
}

// sent takes note of a command that was appended.
func (j *joining) sent(c cluster.Command) {
	switch c.(type) {
	case cluster.AbortJoin:
		j.aborts++
		j.again = time.Now().Add(retry.Jitter(joinPatience / 4))
	case cluster.PeerGC:
		j.stuck = time.Time{}
	}
}

// next is when there is something to do although nothing happened; zero: not at any time.
func (j *joining) next(now time.Time) time.Time {
	var next time.Time
	times := []time.Time{j.stuck, j.again}
	if !j.since.IsZero() {
		times = append(times, j.tired())
	}
	for _, at := range times {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// tired is when it aborts its pending join: nothing has moved for as long as its patience lasts. As long as
// others join and leave its turn may come; and should the one that it waits for be dead, that is found out.
func (j *joining) tired() time.Time {
	since := j.since
	if j.moved.After(since) {
		since = j.moved
	}
	return since.Add(joinPatience<<min(j.aborts, 10) + j.crowd())
}

func (j *joining) crowd() time.Duration { return time.Duration(len(j.line)) * perJoiner }
