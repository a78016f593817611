package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// One sequencer after another may use a name: its generations. No ID of one comes again in a later one, even if a
// member has not read the log that far yet. That rests on a key, as uniqueness rests on fences:
//
//	sequencers/<name>/generation
//
// Members claim node IDs only under the condition that this key is unchanged. The member that claims the first
// one for the next generation puts the key, so that nobody can claim for the former; revokes the claimed ones, so
// that nobody can renew; and reads the last horizon of the former, to begin above that.
//
// The log alone decides which of two generations is the later one. Each is in the log before it is in the key, so a
// member that puts another one there first reads the log to its end. Positions do not decide: a key may be one of a log
// that the store has lost, put by a member that had not noticed the loss yet.

// generation is what the key holds: the latest sequencer of a name for which a node ID was claimed, or that was
// destroyed.
type generation struct {
	Created    int64              `json:"created"` // the position in the log, which identifies it
	Definition cluster.Definition `json:"definition"`

	// After is at or above every ID of the earlier generations, before these are scattered.
	After firn.ID `json:"after"`

	// Scattered says that the IDs up to After are scattered. All generations that make IDs are alike in that: a
	// scattered ID can be equal to one that is not.
	Scattered bool `json:"scattered,omitempty"`

	// Until is the last instant at which earlier generations can make IDs. It is final when After is.
	Until time.Time `json:"until,omitzero"`

	// Former, if set, is a generation to be closed before After is final and a node ID can be claimed.
	Former *cluster.Definition `json:"former,omitempty"`

	Destroyed bool `json:"destroyed,omitempty"` // no node ID can be claimed
}

func generationKey(name string) string { return "sequencers/" + name + "/generation" }

var errSuperseded = errors.New("the sequencer was destroyed, as the log says by now")

// is reports whether the key holds the sequencer that was created there. Logs of before and after a loss of data may
// have different ones at one position.
func (i generation) is(created int64, d cluster.Definition) bool {
	return i.Created == created && i.Definition.Equal(d)
}

// checkKind returns a *KindError when a sequencer of another kind had the name: the IDs of the two could be equal.
func (i generation) checkKind(name string, d cluster.Definition) error {
	if i.Created != 0 && kindOf(i.Definition) != kindOf(d) {
		return &KindError{
			Name: name, Is: kindOf(i.Definition), Wanted: kindOf(d), Claimed: i.Definition.Claimed(), Destroyed: true,
		}
	}
	return nil
}

// readGeneration reads the key; if it is missing, the generation is one created at 0.
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

// changeGeneration calls next for what to put, until next says that nothing is left to do, and returns what the
// key then holds. It reads the key again when next returns fence.ErrClosed: the key has changed. A write in doubt
// needs no care: the next goes out under the same condition.
func (m *Member) changeGeneration(ctx context.Context, name string,
	next func(generation, store.Condition) (generation, bool, error),
) (generation, store.Condition, error) {
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

// successor returns the generation that follows.
func (i generation) successor(created int64, d cluster.Definition) generation {
	next := generation{Created: created, Definition: d, After: i.After, Scattered: i.Scattered, Until: i.Until}
	if i.Former == nil && i.Created != 0 {
		i.Former = &i.Definition
	}
	next.Former = i.Former
	return next
}

// closed returns the generation once the former's last horizon is known.
func (i generation) closed(horizon time.Time) generation {
	if i.Former != nil && !horizon.Before(i.Former.Layout.Epoch) {
		l := i.Former.IDLayout()
		last, err := l.Last(horizon)
		if err != nil { // beyond the layout's time
			last, _ = l.Last(l.Lifetime().Add(-l.Tick))
		}
		if i.After == 0 { // else the former made none unless it was alike
			i.Scattered = i.Former.Scattered
		}
		i.After = max(i.After, last)
	}
	if horizon.After(i.Until) {
		i.Until = horizon
	}
	i.Former = nil
	return i
}

// open makes it possible to claim node IDs for this sequencer, and for no other of its name.
func (s *Sequencer) open(ctx context.Context) error {
	if s.guard.Key != "" && s.guarded == s.m.losses.Load() {
		return nil
	}
	losses := s.m.losses.Load()
	at, from, err := s.m.open(ctx, s.name, s.status.Load().created, s.definition)
	if err == nil {
		s.guard, s.from, s.guarded = at, from, losses
	}
	return err
}

// open makes it possible to use node IDs of a sequencer, and of no other of its name: under the condition that it
// returns, and from that instant on.
func (m *Member) open(ctx context.Context, name string, created int64, d cluster.Definition) (at store.Condition,
	from time.Time, err error,
) {
	i, at, err := m.changeGeneration(ctx, name, func(i generation, at store.Condition) (generation, bool, error) {
		if err := i.checkKind(name, d); err != nil {
			return i, false, err
		}
		switch {
		case i.Destroyed, !i.is(created, d):
			return i.successor(created, d), false, m.stillLatest(ctx, name, created)
		case i.Former != nil:
			horizon, err := m.revoke(ctx, name, at)
			return i.closed(horizon), false, err
		}
		return i, true, nil
	})
	if err == nil {
		from, err = m.above(d, i)
	}
	return at, from, err
}

// revoke has nobody claim for the generations before the one that the key holds, and returns their last horizon. The
// log has destroyed them, which it does not while node IDs are reserved: a fence that is reserved all the same is of a
// Reserve that was given up after it was released, and was never answered.
func (m *Member) revoke(ctx context.Context, name string, at store.Condition) (time.Time, error) {
	if err := fence.FreeAll(ctx, m.store, fencePrefix(name), at); err != nil {
		return time.Time{}, err
	}
	return fence.Revoke(ctx, m.store, fencePrefix(name), at)
}

// stillLatest returns nil if the log, read to its end, still has the sequencer.
func (m *Member) stillLatest(ctx context.Context, name string, created int64) error {
	ctx, cancel := context.WithTimeout(ctx, m.options.Window/3)
	defer cancel()
	v, err := m.catchUp(ctx)
	if q, ok := v.Sequencer(name); err == nil && (!ok || q.Created() != created) {
		err = errSuperseded
	}
	return err
}

// above returns when IDs of a definition exceed both its After and those of the generations before i.
func (m *Member) above(d cluster.Definition, i generation) (time.Time, error) {
	after := max(i.After, d.After)
	if i.After != 0 && i.Scattered != d.Scattered {
		return time.Time{}, &EarlyError{After: after, Mixed: true}
	}
	from, err := d.Above(after)
	if err != nil {
		return from, &EarlyError{After: after}
	}
	if from.After(m.now().Add(2 * m.options.Window)) {
		return from, &EarlyError{After: after, From: from}
	}
	return from, nil
}

// horizons returns the last horizon of the node IDs of a name, and whether any has an owner.
func (m *Member) horizons(ctx context.Context, name string) (last time.Time, live bool, err error) {
	owners, err := fence.Owners(ctx, m.store, fencePrefix(name))
	for _, o := range owners {
		if o.Horizon.Year() > 9999 { // it can't be read
			return last, live,
				fmt.Errorf("can't read the horizon of node ID %d of %q: %w", o.Node, name, store.ErrRefused)
		}
		live = live || o.Live
		if o.Horizon.After(last) {
			last = o.Horizon
		}
	}
	return last, live, err
}
