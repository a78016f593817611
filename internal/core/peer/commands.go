package peer

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// pendingCommand is a command that this member owes the log. It is sent again, with growing pauses, if it is
// still owed after its replay.
type pendingCommand struct {
	position store.Position // of the latest append
	tries    int
	after    time.Time // the earliest time to send it again
}

// owed is what the member owes the log now: its duties by the value, those that follow from what only it knows,
// and what its sequencers want.
func (p *player) owed() []cluster.Command {
	v, id := p.value, p.incarnation.id
	owed := cluster.Duties(v, id)
	if v.IsMember(id) {
		owed = append(owed, p.attaches(v, id)...)
	} else {
		owed = append(owed, p.joining.owed(v, id, time.Now())...)
	}
	return append(owed, p.removals(v, id)...)
}

// removeAtOnce is how many dead members a member takes out before it looks whom others have taken out meanwhile.
const removeAtOnce = 16

// removals are what takes the first few of the dead out. When many die, many find all of them: each begins at another
// place, so that the log tells little twice.
func (p *player) removals(v cluster.Value, id string) (owed []cluster.Command) {
	maps.DeleteFunc(p.dead, func(dead string, _ death) bool {
		_, pending := v.Pending(dead)
		return !pending && !v.IsMember(dead)
	})
	dead := slices.Sorted(maps.Keys(p.dead))
	first, _ := slices.BinarySearch(dead, id)
	for i := range min(len(dead), removeAtOnce) {
		other := dead[(first+i)%len(dead)]
		owed = append(owed, cluster.Leave{Member: other, Why: p.dead[other].why, By: id})
	}
	return owed
}

// askerOf returns who asked for an attach or a detach of this member's, which is said once: it may do the same by
// itself later.
func (m *Member) askerOf(c cluster.Command) (who string, told func()) {
	name := ""
	switch c := c.(type) {
	case cluster.Attach:
		name = c.Sequencer
	case cluster.Detach:
		name = c.Sequencer
	}
	s, ok := m.Sequencer(name)
	if !ok {
		return "", func() {}
	}
	by := s.asker.Load()
	if by != nil {
		who = *by
	}
	return who, func() { s.asker.CompareAndSwap(by, nil) }
}

// send appends what is owed and not under way, and returns when to look again.
func (p *player) send(ctx context.Context, owed []cluster.Command) time.Duration {
	wait := idle
	if at := p.joining.next(time.Now()); !at.IsZero() {
		wait = min(wait, time.Until(at))
	}
	pending := make(map[string]*pendingCommand, len(owed))
	for _, c := range owed {
		key, err := cluster.Encode(c, time.Time{})
		if err != nil {
			p.troubles.note(ctx, "a command is not valid", err) // a bug
			continue
		}
		e := p.pending[string(key)]
		if e == nil {
			e = new(pendingCommand)
		}
		pending[string(key)] = e
		if int64(e.position) > p.value.Position() {
			continue // it is under way; its replay will show it
		}
		if until := time.Until(e.after); until > 0 {
			wait = min(wait, until)
			continue
		}
		drill(c.Name())
		// If an append in doubt is in the log after all, the command is there twice: commands are idempotent.
		who, told := p.askerOf(c)
		data, err := cluster.Entry{At: p.Wall(), Who: who, Command: c}.Encode()
		var position store.Position
		if err == nil {
			position, err = p.store.Append(ctx, newID(), data)
		}
		if err != nil {
			p.breaks(p.losses.Load(), err)
			p.troubles.note(ctx, "can't write to the log at present, trying again", err)
		} else {
			e.position = position
			told()
			p.joining.sent(c)
		}
		pause := backoff.After(e.tries)
		e.tries++
		e.after = time.Now().Add(pause)
		if err != nil {
			wait = min(wait, pause)
		}
	}
	p.pending = pending
	return wait
}
