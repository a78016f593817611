package peer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

func pulseKey(member string) string { return pulses + member }

const pulses = "peers/"

// Pulse is what a member's pulse, the key that shows that it is alive, tells. The member writes it again with the
// horizons of its node IDs, or alone where it writes none.
type Pulse struct {
	// of the process: by it a member knows its own pulses, also of earlier member IDs
	Mark  string    `json:"mark"`
	Stamp string    `json:"stamp"`           // of this write: by it a member knows a pulse of a copy of itself
	Owner string    `json:"owner,omitempty"` // the node's name, see Options.Owner
	Since time.Time `json:"since"`           // when it was first put, by the member's wall clock
	Clock time.Time `json:"clock"`           // the member's wall clock when this was written; zero: unknown
	// it gives no ID of this instant or later without another write; zero: unknown
	Reserved time.Time `json:"reserved,omitzero"`
	// it is written again within this time while the store answers: a third of the window, 10 s at most
	Every time.Duration `json:"every_ns"`
	// the position of the latest entry, AskClocks or PeerGC, that asked for it; 0: none
	Answers int64  `json:"answers,omitempty"`
	Vitals  Vitals `json:"vitals"`
}

// readPulse reads what a key holds; a foreign value shows as a zero Pulse.
func readPulse(value []byte) (p Pulse) {
	if json.Unmarshal(value, &p) != nil {
		return Pulse{}
	}
	return p
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
		found[kv.Key[len(pulses):]] = readPulse(kv.Value)
	}
	return found, nil
}

// PulseOf reads the pulse of one member or joiner, by its member ID. It returns the zero Pulse if there is none, and an
// error when the store does not answer.
func (m *Member) PulseOf(ctx context.Context, id string) (Pulse, error) {
	s, err := m.opened()
	if err != nil {
		return Pulse{}, err
	}
	kv, err := s.Get(ctx, pulseKey(id))
	return readPulse(kv.Value), err
}

// pulse returns what writes the pulse as it is once these fences are renewed, under the condition that it is as this
// member knows it, and the stamp of that. So a write that comes late replaces no later one, and puts none after the end
// of the session.
func (m *Member) pulse(l *incarnation, renewed []*fence.Fence) (put store.Txn, stamp string) {
	stamp = l.stamps.Next()
	p := Pulse{
		Mark: *m.mark.Load(), Stamp: stamp, Owner: cmp.Or(l.node.Name, m.options.Owner), Since: l.since,
		Clock: m.Wall(), Every: m.options.every(), Answers: l.answers.Load(),
		Reserved: later(m.reserved(), m.now().Add(m.options.Window)), Vitals: m.vitals(renewed),
	}
	value, err := json.Marshal(p)
	if err != nil { // a rate that is no number
		p.Vitals = Vitals{}
		value, _ = json.Marshal(p)
	}
	key := pulseKey(l.id)
	return store.Txn{
		If:   []store.Condition{{Key: key, Version: l.pulse}},
		Then: append([]store.Op{store.PutEphemeral(key, value, l.session)}, m.putNode(l, p.Reserved)...),
	}, stamp
}

// putPulse puts the pulse of a new incarnation.
func (m *Member) putPulse(ctx context.Context, l *incarnation) error {
	for tries := 0; ; tries++ {
		err := m.writePulse(ctx, l)
		if !errors.Is(err, store.ErrAmbiguous) {
			return err
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return err
		}
	}
}

// writePulse writes the pulse alone. It settles doubt by writing again under the same condition: a pulse with a stamp
// that it has sent is of an earlier write, and any other of a copy of this process.
func (m *Member) writePulse(ctx context.Context, l *incarnation) error {
	for {
		sent := time.Now()
		put, stamp := m.pulse(l, nil)
		version, err := m.store.Commit(ctx, put)
		if err == nil {
			l.wrote(version, stamp)
			m.keeper.wrote(sent)
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		kv, err := m.store.Get(ctx, pulseKey(l.id))
		switch {
		case err != nil:
			return err
		case kv.Version == l.pulse: // the conflict was with a pulse that is gone since
			continue
		case 0 < kv.Version && kv.Version < l.pulse:
			return fmt.Errorf("%w: the pulse of %s is at version %d, and was at %d", store.ErrRolledBack, l.id,
				kv.Version, l.pulse)
		}
		p := readPulse(kv.Value)
		if m.isTwins(l, p) {
			m.startAnew(l, errTwin)
		}
		if !l.stamps.Sent(p.Stamp) {
			return fmt.Errorf("the pulse of %s is gone, or another process put it: %w", l.id, store.ErrConflict)
		}
		l.wrote(kv.Version, p.Stamp)
	}
}

// wrote notes the pulse that is known to be written.
func (l *incarnation) wrote(version store.Version, stamp string) {
	l.pulse = version
	l.stamps.Settle(stamp)
}
