package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// Reserve keeps node IDs of a sequencer for something else than members, see cluster.Reserving, and returns them, and
// the instant at which their IDs may begin: what was made before, or may be, lies below it. The log says that no member
// gets the node IDs, and fences say it to members that have not read that far. Both are done again by a Reserve for the
// same purpose, which returns the same. Those for cluster.Later are fewer if others took some meanwhile.
//
// The errors are those of Drain, and an ErrNotReady while members may not claim either. After any other than a
// *RefusedError the node IDs may be reserved, and must not be used before another Reserve has succeeded.
func (m *Member) Reserve(ctx context.Context, sequencer string, r cluster.Reserving) (*cluster.Reservation, time.Time,
	error,
) {
	q, err := m.latest(ctx, sequencer)
	if err != nil {
		return nil, time.Time{}, err
	}
	if r.At == 0 {
		r.At = m.now().UnixMilli()
	}
	c := cluster.Reserve{Sequencer: sequencer, Created: q.Created(), Reserving: r}
	if err := m.orderFor(ctx, c, sequencer); err != nil {
		return nil, time.Time{}, err
	}
	q, _ = m.Value().Sequencer(sequencer)
	made := q.Reservation(r.For)
	gone := &RefusedError{c, "it was released meanwhile, or the store has lost it"}
	if made == nil || q.Created() != c.Created {
		return nil, time.Time{}, gone
	}
	for {
		from, err := m.fenceOff(ctx, sequencer, q, made)
		superseded := errors.Is(err, fence.ErrSuperseded)
		switch {
		case errors.Is(err, fence.ErrClosed): // the generation has ended, or the floor was raised
			if err := retry.Sleep(ctx, backoff.First); err != nil {
				return nil, time.Time{}, err
			}
			continue
		case err != nil && !superseded:
			return nil, time.Time{}, err
		}
		now, err := m.latest(ctx, sequencer)
		if err != nil {
			return nil, time.Time{}, err
		}
		still := now.Reservation(r.For)
		switch same := now.Created() == c.Created && still != nil && still.Since == made.Since; {
		case !same: // a Release was faster than the fences, which would stay
			return nil, time.Time{}, errors.Join(gone, m.free(ctx, sequencer, made, time.Time{}))
		case len(still.Nodes) < len(made.Nodes): // others have been taken from those for cluster.Later
			taken := *made
			taken.Nodes = slices.DeleteFunc(slices.Clone(made.Nodes), func(node int64) bool {
				return slices.Contains(still.Nodes, node)
			})
			if err := m.free(ctx, sequencer, &taken, time.Time{}); err != nil { // what took them may be gone again
				return nil, time.Time{}, err
			}
			made = still
		case superseded:
			return nil, time.Time{}, gone
		default:
			return still, from, nil
		}
	}
}

// fenceOff has no member use the node IDs of a reservation, and returns the instant at which their IDs may begin.
func (m *Member) fenceOff(ctx context.Context, name string, q cluster.Sequencer, r *cluster.Reservation) (time.Time,
	error,
) {
	guards, from, err := m.mayReserve(ctx, name, q)
	if err != nil {
		return time.Time{}, err
	}
	return fence.Reserve(ctx, m.store, fencePrefix(name), r.Nodes, r.Since, from, guards...)
}

// mayReserve returns the conditions under which node IDs of a sequencer may be used, and the instant at which their IDs
// may begin. An ErrNotReady is returned while members may not claim either.
func (m *Member) mayReserve(ctx context.Context, name string, q cluster.Sequencer) (guards []store.Condition,
	from time.Time, err error,
) {
	guard, from, err := m.open(ctx, name, q.Created(), q.Definition())
	if err != nil {
		return nil, from, err
	}
	floor, floored, err := m.floored(ctx)
	if err == nil {
		err = m.checkKept(ctx)
	}
	if err != nil {
		return nil, from, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return []store.Condition{guard, floored}, later(from, floor), nil
}

// free ends the fences of a reservation, whose node IDs were used until then.
func (m *Member) free(ctx context.Context, name string, r *cluster.Reservation, used time.Time) error {
	return fence.Free(ctx, m.store, fencePrefix(name), r.Nodes, r.Since, used)
}

// freeLeft ends the reservation of the granted node ID, which it found before it read the log to its end: if that still
// grants the node ID, then the reservation was released before. It returns why if the grant is over.
func (s *Sequencer) freeLeft(ctx context.Context, why error) error {
	ctx, cancel := context.WithTimeout(ctx, s.m.options.Window/3)
	defer cancel()
	losses := s.m.losses.Load()
	return fence.FreeLeft(ctx, s.m.store, fencePrefix(s.name), s.looked.node, func() error {
		v, err := s.m.catchUp(ctx)
		if err == nil {
			err = s.m.keepsAll(ctx, losses) // a store that was set back may have another log
		}
		q, _ := v.Sequencer(s.name)
		if err == nil && !holds(q, s.looked.incarnation.id, s.looked.node) {
			err = why
		}
		return err
	}, s.guard)
}

// mostAhead is how far ahead of this member's clock a reservation may end: nobody can use the node IDs until then.
const mostAhead = 24 * time.Hour

// Release ends a reservation. Whatever had the node IDs has stopped, and has made IDs of instants before used only; the
// next owner of each begins there.
//
// A *RefusedError is also returned when nothing is reserved for the purpose, and when used is more than a day ahead.
// The other errors are those of Drain; after these another Release goes on.
func (m *Member) Release(ctx context.Context, sequencer, purpose string, used time.Time) error {
	return m.endReservation(ctx, sequencer, purpose,
		func(cluster.Sequencer, *cluster.Reservation) (time.Time, error) { return used, nil })
}

// ReleaseAfter is Release where the greatest ID that was made is known. A *RefusedError is also returned when that is
// not an ID of the reservation, and when IDs of the sequencer are scattered.
func (m *Member) ReleaseAfter(ctx context.Context, sequencer, purpose string, greatest firn.ID) error {
	return m.endReservation(ctx, sequencer, purpose,
		func(q cluster.Sequencer, r *cluster.Reservation) (time.Time, error) { return q.UsedUntil(r, greatest) })
}

func (m *Member) endReservation(ctx context.Context, sequencer, purpose string,
	until func(cluster.Sequencer, *cluster.Reservation) (time.Time, error),
) error {
	q, err := m.latest(ctx, sequencer)
	if err != nil {
		return err
	}
	c := cluster.Release{Sequencer: sequencer, Created: q.Created(), For: purpose}
	r := q.Reservation(purpose)
	if r == nil {
		return &RefusedError{c, fmt.Sprintf("nothing of %q is reserved for %q", sequencer, purpose)}
	}
	used, err := until(q, r)
	if err != nil {
		return &RefusedError{c, err.Error()}
	}
	if last := m.now().Add(mostAhead); used.After(last) {
		return &RefusedError{c, fmt.Sprintf("it was used until %s; want at most a day ahead, %s",
			used.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))}
	}
	if err := m.free(ctx, sequencer, r, used); err != nil {
		return err
	}
	c.Since = r.Since
	return m.orderFor(ctx, c, sequencer)
}

// lostReservations is what was reserved of a sequencer before the store lost data.
type lostReservations struct {
	definition cluster.Definition
	all        []cluster.Reserving
	at         time.Time // when the member noticed
}

// keepReservations notes what is reserved, when the store has lost data: it may have lost that, too, and whoever has
// the node IDs goes on.
func (p *player) keepReservations() {
	for name, q := range p.value.Sequencers() {
		lost := &lostReservations{definition: q.Definition(), at: p.now()}
		for r := range q.Reservations() {
			lost.all = append(lost.all, cluster.Reserving{For: r.For, At: r.At, Nodes: r.Nodes})
		}
		if len(lost.all) > 0 {
			p.unkept.Store(name, lost)
			p.registry.serve(func() { p.reserveAgain(p.serving, name, lost) })
		}
	}
}

// mostCreated is how many node IDs an entry that creates a sequencer reserves, as many as fit. The others follow.
const mostCreated = 2 * cluster.MaxReserved

// lostOf returns what was reserved of a sequencer of this definition, and must be reserved again.
func (m *Member) lostOf(name string, d cluster.Definition) (some []cluster.Reserving) {
	lost, ok := m.unkept.Load(name)
	if !ok || !lost.(*lostReservations).definition.Equal(d) {
		return nil
	}
	nodes := 0
	for _, r := range lost.(*lostReservations).all {
		if nodes += len(r.Nodes); nodes <= mostCreated {
			some = append(some, r)
		}
	}
	return some
}

// reserveAgain reserves what was reserved of a sequencer, once that is there again.
func (m *Member) reserveAgain(ctx context.Context, name string, lost *lostReservations) {
	left := slices.Clone(lost.all)
	for tries := 0; len(left) > 0; tries++ {
		if retry.Sleep(ctx, min(backoff.After(tries), time.Second)) != nil {
			return
		}
		q, ok := m.Value().Sequencer(name)
		if !ok || !q.Definition().Equal(lost.definition) {
			continue
		}
		left = slices.DeleteFunc(left, func(r cluster.Reserving) bool {
			if there := q.Reservation(r.For); r.For == cluster.Later && there != nil {
				r.Nodes = there.Nodes // those that were taken from it follow
			}
			used, err := m.usedSince(ctx, name, r.Nodes, lost.at)
			if err == nil {
				_, _, err = m.Reserve(ctx, name, r)
			}
			refused, isRefused := errors.AsType[*RefusedError](err)
			switch {
			case isRefused && r.For == cluster.Later: // nothing has used them
			case isRefused:
				m.log.Error("the store has lost a reservation, and it can't be made again: stop whatever has the node "+
					"IDs, or IDs come twice", "sequencer", name, "for", r.For, "nodes", r.Nodes, "err", refused)
			case err != nil:
				m.troubles.note(ctx, "can't reserve node IDs again that the store has lost, trying again", err)
				return false
			case used && r.For != cluster.Later:
				m.log.Error("the store had lost a reservation, and members have used the node IDs before it was made "+
					"again: IDs may have come twice", "sequencer", name, "for", r.For, "nodes", r.Nodes)
			}
			return true
		})
	}
	m.unkept.CompareAndDelete(name, lost)
}

// usedSince reports whether a member has used one of the node IDs beyond an instant, by what the store has.
func (m *Member) usedSince(ctx context.Context, name string, nodes []int64, at time.Time) (bool, error) {
	owners, err := m.Owners(ctx, name)
	return slices.ContainsFunc(owners, func(o Owner) bool {
		_, ours := slices.BinarySearch(nodes, o.Node)
		return ours && !o.Reserved && (o.Live || o.Horizon.After(at))
	}), err
}
