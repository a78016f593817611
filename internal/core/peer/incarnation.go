package peer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// incarnation is a member under one member ID and one session, which holds its pulse and its live keys. Once the
// session has ended, or the others have taken the member out, the member joins again with both new.
type incarnation struct {
	id      string
	session store.Session
	holder  *fence.Holder // of all its node IDs
	losses  int64         // how often the store had lost data before
	joined  bool          // it was a member; used by the goroutine that plays the log only

	copied  atomic.Bool  // it is left to a copy of this process, see startAnew
	answers atomic.Int64 // the position of the latest entry that asked for its pulse; 0: none

	since time.Time // when it began, by the wall clock

	// Of the pulse; once published, used only with the member's renewing.
	pulse  store.Version // of the latest one known to be written
	stamps fresh.Stamps
	node   NodeRecord // what its name's record says; zero value: it has none
	named  time.Time  // when it took its name
	former store.KV   // the pulse of who had its name before, as it was then; zero value: none
}

// openSession opens a session and puts a pulse under it.
func (m *Member) openSession(ctx context.Context) (*incarnation, error) {
	session, err := m.store.OpenSession(ctx, m.options.TTL)
	if err != nil {
		return nil, err
	}
	id := m.options.ID()
	l := &incarnation{
		id: id, session: session, holder: fence.NewHolder(id), losses: m.losses.Load(),
		since: time.Unix(0, m.options.Clock.Wall()),
	}
	err = m.putPulse(ctx, l)
	if err == nil {
		err = m.takeName(ctx, l, "")
	}
	if err == nil && l.node.Name != m.options.Owner {
		err = m.putPulse(ctx, l) // with the name
	}
	if err != nil {
		m.closeSession(ctx, l)
		return nil, err
	}
	return l, nil
}

// reopenSession is openSession, but refuses a store that does not have what led to the value, or the floor, or the
// latest horizon: it must first get a floor, see rollback.go.
func (m *Member) reopenSession(ctx context.Context) (*incarnation, error) {
	if m.value.Position() > 0 {
		if _, err := m.readOn(ctx); err != nil {
			return nil, err
		}
	}
	if m.floorKnown() > 0 {
		if _, _, err := m.readFloor(ctx); passes(err) || errors.Is(err, store.ErrRolledBack) {
			return nil, err
		}
	}
	if err := m.checkKept(ctx); err != nil {
		return nil, err
	}
	return m.openSession(ctx)
}

// closeSession ends the session, and with it the pulse, unless it is left to a copy of this process.
func (m *Member) closeSession(ctx context.Context, l *incarnation) {
	if l.copied.Load() {
		return
	}
	ctx, cancel := m.registry.inTime(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	if err := l.session.Close(ctx); err != nil {
		m.log.Warn("can't close the session; it ends by itself", "ttl", l.session.TTL(), "err", err)
	}
}

// over reports whether the session has ended.
func (l *incarnation) over() bool {
	select {
	case <-l.session.Done():
		return true
	default:
		return false
	}
}
