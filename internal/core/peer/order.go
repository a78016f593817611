package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/fence"
)

// Order says what a member does before its first node ID in a sequencer whose node IDs were used up to far beyond its
// clock: an earlier clock was ahead. New IDs would be unique, but smaller than existing ones. The zero value is GoOn.
type Order uint8

// The orders.
const (
	GoOn       Order = iota // it makes IDs, and logs a warning
	WaitForIDs              // it makes none until the clock is there: Ready returns an *OrderError
)

// OrderError is wrapped in an ErrNotReady while a member waits because its IDs would be smaller than existing ones, see
// Options.Order.
type OrderError struct {
	Node  int64         // a node ID that was used up to Until
	Until time.Time     // IDs may exist up to this instant
	Ahead time.Duration // of the clock
}

func (e *OrderError) Error() string {
	ahead := e.Ahead.Round(time.Second).String()
	if days := e.Ahead / (24 * time.Hour); days >= 2 {
		ahead = fmt.Sprintf("%d days", days)
	}
	return fmt.Sprintf("IDs may exist up to %s (node ID %d), which is %s ahead of this clock: new ones would be "+
		"unique, but smaller; "+
		"it was told to wait until the clock is there", e.Until.UTC().Format(time.RFC3339), e.Node, ahead)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*OrderError) Reason() string { return "clock" }

// lookers is how many members of a sequencer look for IDs that are ahead, of those that warn: the first of those with a
// node ID. If each looked at all node IDs, what is read when a cluster starts would grow with its square.
const lookers = 16

// checkOrder returns an *OrderError when the member is to wait because its IDs would be smaller than existing ones, and
// else warns about that. It looks until there is no such reason, and then not again.
func (s *Sequencer) checkOrder(ctx context.Context) error {
	if err := s.ordering.lock(ctx); err != nil {
		return err
	}
	defer s.ordering.unlock()
	if s.ordered {
		return nil
	}
	if v, _ := s.in(s.m.Value()); s.m.options.Order == GoOn && v.Rank(s.looked.incarnation.id) >= lookers {
		s.ordered = true
		return nil
	}
	last, err := fence.Latest(ctx, s.m.store, s.fences.Prefix)
	if err != nil {
		return err
	}
	now, margin := s.m.now(), s.m.options.Window+clocks.Skew // which the others may be ahead
	if last.Horizon.After(now.Add(margin)) {
		s.exceed = last
	}
	if !s.exceed.Horizon.After(now) { // those within the margin are as far ahead as any owner's that goes on
		s.ordered = true
		s.update(func(st *status) { st.smaller = time.Time{} })
		return nil
	}
	s.update(func(st *status) { st.smaller = s.exceed.Horizon })
	e := &OrderError{Node: s.exceed.Node, Until: s.exceed.Horizon, Ahead: s.exceed.Horizon.Sub(now)}
	if s.m.options.Order == WaitForIDs {
		return e
	}
	s.ordered = true
	s.m.log.Warn("new IDs are unique, but smaller than existing ones: an earlier clock was ahead, and this member was "+
		"not told to wait",
		"sequencer", s.name, "node", e.Node, "until", e.Until, "ahead", e.Ahead.Round(time.Second))
	return nil
}
