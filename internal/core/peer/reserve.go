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
)

// Reserve keeps node IDs of a sequencer for something else than members, see cluster.Reserving, and returns them, and
// the instant at which their IDs may begin: what was made before, or may be, lies below it. The log says that no member
// gets the node IDs, and fences say it to members that have not read that far. Both are done again by a Reserve for the
// same purpose, which returns the same.
//
// The errors are those of Drain, and an ErrNotReady while members may not claim either. After any other than a *RefusedError the node IDs may be reserved, and must not be
// used before another Reserve has succeeded.
func (m *Member) Reserve(ctx context.Context, sequencer string, r cluster.Reserving) (*cluster.Reservation, time.Time,
	error,
) {
	q, err := m.latest(ctx, sequencer)
	if err != nil {
		return nil, time.Time{}, err
	}
	r.At = m.now().UnixMilli()
	c := cluster.Reserve{Sequencer: sequencer, Created: q.Created(), Reserving: r}
	if err := m.orderFor(ctx, c, sequencer); err != nil {
		return nil, time.Time{}, err
	}
	q, _ = m.Value().Sequencer(sequencer)
	made := q.Reservation(r.For)
	if made == nil || q.Created() != c.Created {
		return nil, time.Time{}, &RefusedError{c, "it was released meanwhile"}
	}
	for {
		from, err := m.fenceOff(ctx, sequencer, q, made)
		if !errors.Is(err, fence.ErrClosed) || retry.Sleep(ctx, backoff.First) != nil { // else the floor was raised
			return made, from, err
		}
	}
}

// fenceOff has no member use the node IDs of a reservation, and returns the instant at which their IDs may begin.
func (m *Member) fenceOff(ctx context.Context, name string, q cluster.Sequencer,
	r *cluster.Reservation) (from time.Time,
	err error,
) {
	guard, notBefore, err := m.open(ctx, name, q.Created(), q.Definition())
	if err != nil {
		return from, err
	}
	floor, floored, err := m.floored(ctx)
	if err == nil {
		err = m.checkKept(ctx)
	}
	if err != nil {
		return from, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	for _, node := range r.Nodes {
		began, err := fence.Reserve(ctx, m.store, fencePrefix(name), node, fenceName(r), later(notBefore, floor), guard,
			floored)
		if err != nil {
			return from, err
		}
		from = later(from, began)
	}
	return from, nil
}

// fenceName is what the fences of a reservation are called.
func fenceName(r *cluster.Reservation) string { return fmt.Sprint(r.Since) }

// Release ends a reservation. Whatever had the node IDs has stopped, and has made IDs of instants before used only; the
// next owner of each begins there.
//
// A *RefusedError is also returned when nothing is reserved for the purpose, and when used is beyond the time of the
// layout. The other errors are those of Drain; after these another Release goes on.
func (m *Member) Release(ctx context.Context, sequencer, purpose string, used time.Time) error {
	return m.endReservation(ctx, sequencer, purpose,
		func(cluster.Sequencer, *cluster.Reservation) (time.Time, error) { return used, nil })
}

// ReleaseAfter is Release where the greatest ID that was made is known. A *RefusedError is also returned when that is
// not an ID of the reservation.
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
	if end := q.Definition().IDLayout().Lifetime(); used.After(end) {
		return &RefusedError{c, fmt.Sprintf("it was used until %s; want at most %s, when the layout's time ends",
			used.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339))}
	}
	for _, node := range r.Nodes {
		if err := fence.Free(ctx, m.store, fencePrefix(sequencer), node, fenceName(r), used); err != nil {
			return err
		}
	}
	return m.orderFor(ctx, c, sequencer)
}

// lostReservations is what was reserved of a sequencer before the store lost data.
type lostReservations struct {
	definition cluster.Definition
	all        []cluster.Reserving
}

// keepReservations notes what is reserved, when the store has lost data: it may have lost that, too, and whoever has
// the node IDs goes on.
func (p *player) keepReservations() {
	for name, q := range p.value.Sequencers() {
		lost := &lostReservations{definition: q.Definition()}
		for r := range q.Reservations() {
			lost.all = append(lost.all, cluster.Reserving{For: r.For, At: r.At, Nodes: r.Nodes})
		}
		if len(lost.all) > 0 {
			p.unkept.Store(name, lost)
			p.registry.serve(func() { p.reserveAgain(p.serving, name, lost) })
		}
	}
}

// lostOf returns what was reserved of a sequencer of this definition, and must be reserved again.
func (m *Member) lostOf(name string, d cluster.Definition) []cluster.Reserving {
	if lost, ok := m.unkept.Load(name); ok && lost.(*lostReservations).definition.Equal(d) {
		return lost.(*lostReservations).all
	}
	return nil
}

// reserveAgain reserves what was reserved of a sequencer, once that is there again.
func (m *Member) reserveAgain(ctx context.Context, name string, lost *lostReservations) {
	left := slices.Clone(lost.all)
	for tries := 0; len(left) > 0; tries++ {
		if retry.Sleep(ctx, min(backoff.After(tries), time.Second)) != nil {
			return
		}
		if q, ok := m.Value().Sequencer(name); !ok || !q.Definition().Equal(lost.definition) {
			continue
		}
		left = slices.DeleteFunc(left, func(r cluster.Reserving) bool {
			_, _, err := m.Reserve(ctx, name, r)
			if refused, ok := errors.AsType[*RefusedError](err); ok {
				m.log.Error("the store has lost a reservation, and it can't be made again: the node IDs are used "+
					"twice unless "+
					"whatever has them is stopped", "sequencer", name, "for", r.For, "nodes", r.Nodes, "err", refused)
			} else if err != nil {
				m.troubles.note(ctx, "can't reserve node IDs again that the store has lost, trying again", err)
				return false
			}
			return true
		})
	}
	m.unkept.CompareAndDelete(name, lost)
}
