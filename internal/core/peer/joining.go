package peer

import (
	"maps"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
)

const (
	// joinPatience is how long a joiner at first waits, while membership does not change, for its target's
	// watcher to accept it. Then it aborts and tries elsewhere, with twice the patience.
	joinPatience = 3 * time.Second

	// A joiner in line waits for a change of membership for stuckAfter to twice that, and perJoiner more for each
	// joiner in line: in a crowd everything takes longer.
	stuckAfter = time.Second
	perJoiner  = 10 * time.Millisecond

	// It calls for a collection another perPlace later for each joiner before it, so that a slow store gets one call
	// and not one from everybody.
	perPlace = 50 * time.Millisecond

	// A joiner whose join is pending for callAfter calls for pulses: its target or the watcher of that may be dead,
	// though their sessions live for long. Those who are called and have not answered answerMost after the joiner
	// itself, which answers as they do, count as dead: see Member.collect.
	callAfter = 500 * time.Millisecond
)

// joining is what a joiner knows about its own join.
//
// Many may join at once, and there is room for a few, so they wait in line: all see in the log whose command was
// refused. A joiner tries again when there is room for those before it and for itself, or when membership has not
// changed for a while: those before it may be dead.
type joining struct {
	line   line
	moved  time.Time // when the last change of membership was seen
	stuck  time.Time // when to call for a collection if membership has not changed
	again  time.Time // when to try again whatever the line
	since  time.Time // when its own join became pending
	began  time.Time // when it began to join
	aborts int
	calls  time.Time // when to call for pulses while it is
	asked  bool      // it has called since then
	call   call      // the latest call of its own
}

// call is a call for pulses that was replayed, a PeerGC. The zero call is none.
type call struct {
	position int64
	called   []string  // see cluster.Called
	heard    time.Time // when the caller's own answer was seen; zero: it was not yet
	next     time.Time // when to look again
}

// line is the joiners that were refused and have not joined since, as one that may be among them sees them. Each of
// thousands keeps it, so that a step of it must not take longer in a longer line.
type line struct {
	ahead, behind map[string]bool // of the joiner; all are ahead while it does not stand in line itself
	in            bool            // it does
}

func (l *line) enter(id, self string) {
	switch {
	case id == self:
		l.in = true
	case !l.in:
		l.ahead = with(l.ahead, id)
	case !l.ahead[id]:
		l.behind = with(l.behind, id)
	}
}

func with(set map[string]bool, id string) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	set[id] = true
	return set
}

func (l *line) leave(id, self string) {
	delete(l.ahead, id)
	delete(l.behind, id)
	if id != self || !l.in {
		return
	}
	if l.ahead == nil {
		l.ahead = l.behind
	} else {
		maps.Copy(l.ahead, l.behind)
	}
	l.in, l.behind = false, nil
}

func (l *line) len() int {
	n := len(l.ahead) + len(l.behind)
	if l.in {
		n++
	}
	return n
}

// joinerOf returns whom a command may make a member, and "" when it makes nobody one.
func joinerOf(c cluster.Command) string {
	switch c := c.(type) {
	case cluster.PrepareJoin: // the first of all
		return c.Joiner
	case cluster.AcceptJoin:
		return c.Joiner
	}
	return ""
}

// saw notes an entry that was replayed.
func (j *joining) saw(c cluster.Command, out cluster.Outcome, l *incarnation) {
	if l == nil || l.joined {
		j.line = line{}
		return
	}
	moved := out.Result == cluster.Applied
	switch c := c.(type) {
	case cluster.PrepareJoin:
		switch {
		case moved:
			j.line.leave(c.Joiner, l.id)
			if c.Joiner == l.id {
				j.again = time.Time{} // if this join fails, it has waited enough
			}
		case out.Result == cluster.Refused:
			j.line.enter(c.Joiner, l.id)
		}
	case cluster.Leave:
		j.line.leave(c.Member, l.id)
	case cluster.Expel:
		j.line.leave(c.Member, l.id)
	case cluster.PeerGC:
		moved = true // the caller will collect
	case cluster.NotifyWatchers, cluster.AcceptJoin, cluster.AbortJoin:
	default:
		return
	}
	if moved {
		j.moved, j.stuck = time.Now(), time.Time{}
	}
}

// owed returns what a joiner owes the log besides its duties.
func (j *joining) owed(v cluster.Value, id string, now time.Time) []cluster.Command {
	if _, pending := v.Pending(id); pending {
		if j.since.IsZero() {
			j.since, j.calls = now, now.Add(callAfter+j.crowd()+crowdOf(v))
		}
		switch {
		case !now.Before(j.tired()):
			return []cluster.Command{cluster.AbortJoin{Joiner: id}}
		case !j.asked && !now.Before(j.calls):
			return []cluster.Command{cluster.PeerGC{By: id}}
		}
		return nil
	}
	j.since, j.asked = time.Time{}, false
	prepare := []cluster.Command{cluster.PrepareJoin{Joiner: id}}
	if !j.line.in {
		if now.Before(j.again) {
			return nil
		}
		return prepare
	}
	// A join takes its target and the target's watcher from the candidates, so there is room for at least half as many
	// joins as candidates. A third as many try at once: each is then rarely refused.
	if room := (v.Candidates() + 2) / 3; len(j.line.ahead) < room || v.Size() == 0 {
		return prepare
	}
	if v.Candidates() > 0 {
		if j.again.Before(j.moved) {
			j.again = now.Add(retry.Jitter(2*stuckAfter + j.crowd()))
		}
		if now.Before(j.again) {
			return nil
		}
		j.line.ahead = nil // those before it had their turn, and may be dead
		return prepare
	}
	if j.stuck.IsZero() {
		j.stuck = now.Add(retry.Jitter(2*stuckAfter+j.crowd()) + perPlace*time.Duration(len(j.line.ahead)))
	}
	if now.Before(j.stuck) {
		return nil
	}
	return []cluster.Command{cluster.PeerGC{By: id}}
}

// sent notes a command that was appended.
func (j *joining) sent(c cluster.Command) {
	switch c.(type) {
	case cluster.AbortJoin:
		j.aborts++
		j.again = time.Now().Add(retry.Jitter(joinPatience / 4))
	case cluster.PeerGC:
		j.stuck, j.asked = time.Time{}, true
	}
}

// next returns when there is something to do even if nothing happens; zero: never.
func (j *joining) next(now time.Time) time.Time {
	var next time.Time
	times := []time.Time{j.stuck, j.again}
	if !j.since.IsZero() {
		times = append(times, j.tired())
		if !j.asked {
			times = append(times, j.calls)
		}
	}
	for _, at := range times {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// tired returns when it aborts its pending join: after its patience, counted from the last change of membership.
// While others join and leave its turn may come, and the watchers find out whether its target is dead.
func (j *joining) tired() time.Time {
	since := j.since
	if j.moved.After(since) {
		since = j.moved
	}
	return since.Add(joinPatience<<min(j.aborts, 10) + j.crowd())
}

// crowdOf is what a call for pulses, and an answer to it, may take longer for each member: all of them replay the log.
func crowdOf(v cluster.Value) time.Duration { return time.Duration(v.Size()) * perJoiner }

func (j *joining) crowd() time.Duration { return time.Duration(j.line.len()) * perJoiner }
