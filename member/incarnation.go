package member

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/retry"
	"github.com/firn-id/firn/store"
)

// incarnation is a member under one member ID and one session, which holds its pulse and its live keys. Once the
// session has ended, or the others have taken the member out, the member joins again with both new.
type incarnation struct {
	id      string
	session store.Session
	losses  int64 // how often the store had lost data before
	joined  bool  // it was a member; used by the goroutine that plays the log only
}

func pulseKey(member string) string { return pulses + member }

const pulses = "peers/"

// Pulse is what a member's pulse, the key that shows that it is alive, tells people.
type Pulse struct {
	Owner string    // see Options.Owner
	Since time.Time // when it was put, by the member's clock
}

// Pulses reads the pulses of all living members and joiners, by member ID. A member without a pulse is dead, or
// is about to join again. The error is one of the store.
func (m *Member) Pulses(ctx context.Context) (map[string]Pulse, error) {
	s, err := m.opened()
	if err != nil {
		return nil, err
	}
	all, err := s.List(ctx, pulses)
	if err != nil {
		return nil, err
	}
	found := make(map[string]Pulse, len(all))
	for _, kv := range all {
		_, rest, _ := strings.Cut(string(kv.Value), " ")
		since, owner, _ := strings.Cut(rest, " ")
		ms, _ := strconv.ParseInt(since, 10, 64) // a foreign value shows as 1970
		found[kv.Key[len(pulses):]] = Pulse{Owner: owner, Since: time.UnixMilli(ms)}
	}
	return found, nil
}

// openSession opens a session and puts a pulse under it.
func (m *Member) openSession(ctx context.Context) (*incarnation, error) {
	session, err := m.store.OpenSession(ctx, m.options.TTL)
	if err != nil {
		return nil, err
	}
	l := &incarnation{id: newID(), session: session, losses: m.losses.Load()}
	if err := m.putPulse(ctx, l); err != nil {
		m.closeSession(ctx, l)
		return nil, err
	}
	return l, nil
}

// reopenSession is openSession, but refuses a store that is behind the value: it must first get a floor, see
// rollback.go.
func (m *Member) reopenSession(ctx context.Context) (*incarnation, error) {
	if at := m.value.Position(); at > 0 {
		if _, err := m.store.Read(ctx, store.Position(at)); err != nil {
			return nil, err
		}
	}
	return m.openSession(ctx)
}

// putPulse settles doubt by writing again under the same condition. The ID is fresh, so a pulse under it is its
// own.
func (m *Member) putPulse(ctx context.Context, l *incarnation) error {
	key := pulseKey(l.id)
	mark := fmt.Appendf(nil, "%s %d %s", newID(), m.now().UnixMilli(), m.options.Owner)
	for tries := 0; ; tries++ {
		_, err := m.store.Commit(ctx, store.Txn{
			If:   []store.Condition{{Key: key}},
			Then: []store.Op{store.PutEphemeral(key, mark, l.session)},
		})
		switch {
		case errors.Is(err, store.ErrConflict):
			kv, err := m.store.Get(ctx, key)
			if err == nil && !bytes.Equal(kv.Value, mark) {
				return fmt.Errorf("the pulse of %s is gone, or another process put it: %w", l.id, store.ErrConflict)
			}
			return err
		case !errors.Is(err, store.ErrAmbiguous):
			return err
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return err
		}
	}
}

// closeSession ends the session, and with it the pulse.
func (m *Member) closeSession(ctx context.Context, l *incarnation) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
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
