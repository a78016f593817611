package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/fence"
	"github.com/firn-id/firn/internal/retry"
	"github.com/firn-id/firn/store"
)

// A name is used by one sequencer after another: its generations. IDs of one never come again in a later one, whatever
// the log says and whoever has not read it yet; that rests on a key, as all that makes IDs unique rests on fences:
//
//	sequencers/<name>/generation
//
// Node IDs are claimed only under the condition that this key is unchanged. Whoever claims the first one for the next
// generation puts the key, so that none can be claimed for the former any more; then takes those away that are
// claimed, so that none can be extended; and reads how far the former may have gone, to begin above that.

// generation is what the key holds: the latest sequencer of a name for which a node ID was claimed, or that was
// destroyed.
type generation struct {
	Created    int64              `json:"created"` // the position that tells it from others
	Definition cluster.Definition `json:"definition"`

	// After is at or above every ID of the generations before it.
	After firn.ID `json:"after"`

	// Until is the last instant up to which any of those before it can make IDs, and is right when After is.
	Until time.Time `json:"until,omitzero"`

	// Former, while it is there, is one that has to be closed before After is right and a node ID can be claimed.
	Former *cluster.Definition `json:"former,omitempty"`

	Destroyed bool `json:"destroyed,omitempty"` // no node ID may be claimed any more
}

func generationKey(name string) string { return "sequencers/" + name + "/generation" }

var errSuperseded = errors.New("the sequencer was destroyed, as the log is about to show")

// readGeneration reads the key; where there is none, the generation is one created at 0.
func (m *Member) readGeneration(ctx context.Context, name string) (i generation, at store.Condition, err error) {
	at.Key = generationKey(name)
	kv, err := m.store.Get(ctx, at.Key)
	if err != nil || kv.Version == 0 {
		return i, at, err
	}
	at.Version = kv.Version
	if err := json.Unmarshal(kv.Value, &i); err != nil {
		return i, at, fmt.Errorf("the key %q can't be read, so that no ID of %q can be made: %w", at.Key, name, err)
	}
	return i, at, nil
}

// changeGeneration has next say what the key is to hold, until it is content; it returns what is there then. It asks
// anew when next finds that the key has changed: fence.ErrClosed.
// A write in doubt needs no care: the next goes out under the same condition.
func (m *Member) changeGeneration(ctx context.Context, name string, next func(generation, store.Condition) (generation, bool, error)) (generation, store.Condition, error) {
	for tries := 0; ; tries++ {
		i, at, err := m.readGeneration(ctx, name)
		if err != nil {
			return i, at, err
		}
		i, content, err := next(i, at)
		if errors.Is(err, fence.ErrClosed) {
			continue
		}
		if content || err != nil {
			return i, at, err
		}
		value, err := json.Marshal(i)
		if err != nil {
			return i, at, err
		}
		_, err = m.store.Commit(ctx, store.Txn{If: []store.Condition{at}, Then: []store.Op{store.Put(at.Key, value)}})
		switch {
		case err == nil:
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrAmbiguous):
			if err := retry.Sleep(ctx, min(backoff.After(tries), time.Second)); err != nil {
				return i, at, err
			}
		default:
			return i, at, err
		}
	}
}

// successor is the generation that follows.
func (i generation) successor(created int64, d cluster.Definition) generation {
	next := generation{Created: created, Definition: d, After: i.After, Until: i.Until}
	if i.Former == nil && i.Created != 0 {
		i.Former = &i.Definition
	}
	next.Former = i.Former
	return next
}

// closed is the generation once it is known how far the former went: up to the horizon.
func (i generation) closed(horizon time.Time) generation {
	if i.Former != nil && !horizon.Before(i.Former.Layout.Epoch) {
		l := i.Former.IDLayout()
		last, err := l.Last(horizon)
		if err != nil { // beyond the layout's time
			last, _ = l.Last(l.Lifetime().Add(-l.Tick))
		}
		i.After = max(i.After, last)
	}
	if horizon.After(i.Until) {
		i.Until = horizon
	}
	i.Former = nil
	return i
}

// open sees to it that node IDs can be claimed for this sequencer, and for no other of its name.
func (s *Sequencer) open(ctx context.Context) error {
	if s.guard.Key != "" && s.guarded == s.m.losses.Load() {
		return nil
	}
	losses := s.m.losses.Load()
	created := s.status.Load().created
	i, at, err := s.m.changeGeneration(ctx, s.name, func(i generation, at store.Condition) (generation, bool, error) {
		switch {
		case i.Created > created, i.Created == created && i.Destroyed:
			return i, false, errSuperseded
		case i.Created < created:
			return i.successor(created, s.definition), false, nil
		case i.Former != nil:
			horizon, err := fence.Revoke(ctx, s.m.store, s.fences.Prefix, at)
			return i.closed(horizon), false, err
		}
		return i, true, nil
	})
	if err != nil {
		return err
	}
	from, err := s.m.above(s.definition, i.After)
	if err == nil {
		s.guard, s.from, s.guarded = at, from, losses
	}
	return err
}

// above is when IDs of a definition exceed both the IDs that it is to come after and another one.
func (m *Member) above(d cluster.Definition, after firn.ID) (time.Time, error) {
	after = max(after, d.After)
	from, err := d.Above(after)
	if err != nil {
		return from, &EarlyError{After: after}
	}
	if from.After(m.now().Add(2 * m.options.Window)) {
		return from, &EarlyError{After: after, From: from}
	}
	return from, nil
}

// horizons says until when the node IDs of a name may be used by those who have them or had them, and whether
// anybody has one.
func (m *Member) horizons(ctx context.Context, name string) (last time.Time, live bool, err error) {
	owners, err := fence.Owners(ctx, m.store, fencePrefix(name))
	for _, o := range owners {
		if o.Horizon.Year() > 9999 { // it can't be read
			return last, live, fmt.Errorf("nobody can tell how far node ID %d of %q was used: %w", o.Node, name, store.ErrRefused)
		}
		live = live || o.Live
		if o.Horizon.After(last) {
			last = o.Horizon
		}
	}
	return last, live, err
}
