package peer

import (
	"context"
	"fmt"
	"time"
)

// awaitedAfter is how long a join takes before its member says whom it waits for.
const awaitedAfter = time.Second

// awaited is an error that says for what a joiner has waited, and how long.
type awaited struct {
	since time.Time
	what  string
	id    string // of the member that has to accept the join; empty: it stands in line
}

func (a *awaited) Error() string {
	return fmt.Sprintf("for %v it has waited %s", time.Since(a.since).Round(100*time.Millisecond), a.what)
}

// sayAwaited tells the log, and those who wait for the join, for whom it waits. It returns when to look again.
func (p *player) sayAwaited(ctx context.Context) time.Duration {
	j, id := &p.joining, p.incarnation.id
	if p.value.IsMember(id) {
		p.awaits.Store(nil)
		return idle
	}
	if j.began.IsZero() {
		j.began = time.Now()
	}
	if wait := time.Until(j.began.Add(awaitedAfter)); wait > 0 {
		return wait
	}
	a, last := awaited{since: j.began}, p.awaits.Load()
	a.id, _ = p.value.Acceptor(id)
	switch {
	case a.id == "" && !j.line.in:
		return awaitedAfter
	case a.id == "":
		a.what = fmt.Sprintf("for a place in the ring, in line behind %d joiners", len(j.line.ahead))
		if last == nil {
			p.log.Warn("the join waits in line for a place in the ring", "joiners_ahead", len(j.line.ahead))
		}
	case last != nil && last.id == a.id:
		return awaitedAfter
	default:
		kv, err := p.store.Get(ctx, pulseKey(a.id))
		if err != nil {
			return awaitedAfter // others tell that trouble
		}
		pulse, age := readPulse(kv.Value), "has no pulse"
		if !pulse.Clock.IsZero() {
			age = fmt.Sprintf("wrote its pulse %v ago", p.Wall().Sub(pulse.Clock).Round(100*time.Millisecond))
		}
		a.what = fmt.Sprintf("for the member %s (owner %q), which %s, to accept its join; if that has died, for the "+
			"others to notice",
			a.id, pulse.Owner, age)
		p.log.Warn("the join waits for a member to accept it", "member", a.id, "owner", pulse.Owner, "pulse", age)
	}
	p.awaits.Store(&a)
	return awaitedAfter
}

// joiningFor adds to an error for what the join waits, if that is known.
func (m *Member) joiningFor(err error) error {
	if a := m.awaits.Load(); a != nil {
		return fmt.Errorf("%w: %w", a, err)
	}
	return err
}
