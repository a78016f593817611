package peer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/base/fresh"
)

// The memory of a process can be copied, by the snapshot of a virtual machine or by a checkpoint, and go on twice, or
// go on once more from an earlier state. Each copy takes itself for the member that was copied. The store decides which
// one is: of two writes under the same version it applies one. The other copy then finds a write that it never sent
// where only it writes, since each write has a stamp that no copy makes, see package fresh. Whoever finds that makes no
// more IDs of what it held, for its twin uses the same, and starts over as a new member under a new session. It leaves
// the former session and member ID to the twin: it neither ends nor renews them, and says nothing under them.

// startAnew has the member start over, since a copy of its process may be or go on as this incarnation; nil: it is
// between two, and uses what it reserved as the former one.
func (m *Member) startAnew(l *incarnation, why error) {
	if l != nil && !l.copied.CompareAndSwap(false, true) {
		return
	}
	was := ""
	why = fmt.Errorf("%w: %w", ErrCopied, why)
	for _, s := range m.Sequencers() {
		s.withdrawAll(why)
	}
	m.abandonCounters()
	mark, now := fresh.Text(), time.Now()
	m.mark.Store(&mark)
	m.copiedAt.Store(&now)
	m.copies.Add(1)
	_, current, _ := m.look() // which may be a later one than l, and the copy's too
	for _, l := range slices.Compact([]*incarnation{l, current}) {
		if l != nil {
			was = l.id
			l.copied.Store(true)
			l.session.Abandon() // which wakes the player
		}
	}
	m.log.Error("this member makes no IDs of what it has reserved, and starts over as a new member", "was",
		was, "err", why)
	m.poke()
}

// withdrawAll ends the use of its node IDs at once, and forgets the grant.
func (s *Sequencer) withdrawAll(why error) {
	s.update(func(st *status) {
		for slot, t := range st.tenures {
			if t.generator != nil {
				st.used = later(st.used, t.generator.Stop())
			}
			st.tenures[slot].withdrawn, st.tenures[slot].left = t.fence != nil, t.fence != nil
		}
		st.generator = nil
		s.tellLocked(st, grant{}, why)
	})
	s.poke()
}

// mayBeCopied has the member start over if a copy of it goes on as an incarnation whose session has ended for this one.
func (m *Member) mayBeCopied(ctx context.Context, l *incarnation) error {
	if l.copied.Load() {
		return nil
	}
	if err := m.keeper.writing.lock(ctx); err != nil {
		return err
	}
	defer m.keeper.writing.unlock()
	kv, err := m.store.Get(ctx, pulseKey(l.id))
	if err == nil && kv.Version != 0 && kv.Version >= l.pulse {
		if m.isTwins(l, readPulse(kv.Value)) {
			m.startAnew(l, errTwin)
		}
	}
	return err
}

// isTwins reports whether a copy of this process has written the incarnation's pulse.
func (m *Member) isTwins(l *incarnation, p Pulse) bool {
	return p.Stamp != "" && !l.stamps.Sent(p.Stamp)
}

// watchResumes has the member start over whenever the system resumes from a snapshot, until ctx ends.
func (m *Member) watchResumes(ctx context.Context) {
	for {
		select {
		case _, ok := <-m.options.Resumed:
			if !ok {
				return
			}
			_, l, _ := m.look()
			m.startAnew(l, errResumed)
		case <-ctx.Done():
			return
		}
	}
}
