package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/store"
)

// After its store has lost data, a member says in the key of package floor from when on node IDs may be used. Old and
// new members claim node IDs only under the condition that this key is unchanged, and use them only from that instant
// on, as if it were a former owner's horizon. The package decides what to write, by what a member knows.

// FloorError is wrapped in an ErrNotReady while members may not make IDs yet after the store has lost data, or may
// have. It passes by itself, or with Resume.
type FloorError struct {
	From time.Time // the instant from which they may; zero: no member whose clock is believed has said it yet
	By   string    // the member, or the machine of a quorum, that found that out
	Why  string    // what it found
}

func (e *FloorError) Error() string {
	until := "before " + e.From.UTC().Format(time.RFC3339)
	if e.From.IsZero() {
		until = "before one whose clock most others agree with has said from when on"
	}
	return fmt.Sprintf("to avoid duplicates, members make no IDs %s, unless an operator resumes sooner, since %q "+
		"found this: %s", until, e.By, e.Why)
}

// witness is whether a member has noticed a loss of data itself, and what was thought of its clock then, until it may
// claim again: by then the floor is settled, or an operator has resumed. One that was refused is a witness only until
// others have settled the floor.
type witness struct {
	saw   sight
	since floorAt // the floor by which it has told of the loss: an earlier one says nothing about it
}

type sight uint8

const (
	sawNothing sight = iota
	believed
	refused
)

// standing returns by what right the member settles the floor. A clock that was refused when the store lost data is not
// believed afterwards because those who refused it are gone.
func (m *Member) standing() floor.Standing {
	j := m.judged()
	m.mu.Lock()
	saw := m.witness.saw
	m.mu.Unlock()
	switch {
	case j.at.IsZero(), j.Out(), saw == refused:
		return floor.Opposed
	case j.Kind == clocks.Agreed:
		return floor.Agreed
	case j.Kind == clocks.Alone, saw == believed:
		return floor.Unopposed
	default:
		return floor.Opposed
	}
}

// testify notes that the member has noticed a loss of data, and what is thought of its clock.
func (m *Member) testify() {
	j := m.judged()
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &m.witness
	w.since = floorAt{m.losses.Load(), math.MaxInt64} // it has told no floor of it
	switch {
	case j.Out():
		w.saw = refused
	case !j.at.IsZero() && w.saw == sawNothing: // not if it was refused, and nobody has settled the floor since
		w.saw = believed
	}
}

// told notes the floor by which the member has told of a loss.
func (m *Member) told(at floorAt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.witness.since = at
}

// settled notes a settled floor: the member is no witness any more, of the loss that led to it, if it may claim or was
// refused.
func (m *Member) settled(at floorAt, claims bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &m.witness
	if (claims || w.saw == refused) && at.losses == w.since.losses && at.version >= w.since.version {
		w.saw = sawNothing
	}
}

// view returns what the member knows that decides about the floor.
func (m *Member) view() floor.View {
	return floor.View{Standing: m.standing(), Now: m.now(), Reserved: m.reserved(), Window: m.longest()}
}

// reserved returns the latest instant of which the member has made IDs, or may still; zero: none.
func (m *Member) reserved() (last time.Time) {
	for _, s := range m.Sequencers() {
		st := s.status.Load()
		last = later(last, st.used)
		if t := st.inUse(); t.fence != nil {
			last = later(last, t.fence.Horizon())
		}
	}
	return last
}

// longest returns the longest window that the member knows of.
func (m *Member) longest() time.Duration {
	return max(m.options.Window, time.Duration(m.window.Load()))
}

// readFloor reads the key; if it is missing, the floor is zero. One whose version went back is gone with all that the
// store was told since: after a loss a member knows no log entry and no horizon at first, and would notice another by
// nothing else.
func (m *Member) readFloor(ctx context.Context) (f floor.Floor, at store.Condition, err error) {
	losses, seen := m.losses.Load(), m.floorKnown()
	kv, err := m.store.Get(ctx, floor.Key)
	at = store.Condition{Key: floor.Key, Version: kv.Version}
	if err == nil && kv.Version < seen {
		err = fmt.Errorf("%w: its floor has the version %d, and had %d", store.ErrRolledBack, kv.Version, seen)
		m.breaks(losses, err)
	}
	if err == nil {
		m.knowsFloor(losses, kv.Version)
		f, err = floor.Parse(kv.Value)
	}
	for known := m.window.Load(); int64(f.Window) > known && !m.window.CompareAndSwap(known, int64(f.Window)); {
		known = m.window.Load()
	}
	return f, at, err
}

// floorAt is a version of the floor's key, and how often the store had lost data before.
type floorAt struct {
	losses  int64
	version store.Version
}

// floorKnown returns the latest version of the key since the latest loss; zero: none was seen.
func (m *Member) floorKnown() store.Version {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.floorAt.losses != m.losses.Load() {
		return 0
	}
	return m.floorAt.version
}

// knowsFloor notes a version of the key that was read or written after so many losses.
func (m *Member) knowsFloor(losses int64, version store.Version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := (floorAt{losses, version}); losses > m.floorAt.losses ||
		losses == m.floorAt.losses && version > m.floorAt.version {
		m.floorAt = at
	}
}

// changeFloor calls next for what to put, until there is nothing to put any more. It returns the floor and its version.
// A write in doubt needs no care: the next goes out under the same condition.
func (m *Member) changeFloor(ctx context.Context, next func(floor.Floor) (_ floor.Floor, write bool)) (f floor.Floor,
	at store.Condition, err error,
) {
	err = m.insist(ctx, "can't write the time before which members make no IDs", func() error {
		losses := m.losses.Load()
		if f, at, err = m.readFloor(ctx); err != nil {
			return err
		}
		changed, write := next(f)
		if !write {
			return nil
		}
		put, err := changed.Put()
		if err != nil {
			return err
		}
		version, err := m.store.Commit(ctx, store.Txn{If: []store.Condition{at}, Then: []store.Op{put}})
		if errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("%w: another member wrote first: %w", store.ErrUnavailable, err)
		}
		if err == nil {
			m.knowsFloor(losses, version)
		}
		f, at.Version = changed, version
		return err
	})
	return f, at, err
}

// floored returns the time from which members may use node IDs, and the condition that it still holds. It first writes
// what the member has to write before it claims. A *FloorError is returned while it may not claim.
func (m *Member) floored(ctx context.Context) (time.Time, store.Condition, error) {
	losses := m.losses.Load()
	f, at, verdict, err := m.decide(ctx, time.Time{})
	if verdict == floor.Ask && err == nil {
		var living time.Time
		if living, err = m.living(ctx); err == nil {
			f, at, verdict, err = m.decide(ctx, living)
		}
	}
	if err == nil && verdict != floor.Claim {
		wait := &FloorError{From: f.From, By: f.By, Why: f.Why}
		if f.Open {
			wait.From = time.Time{}
		}
		err = wait
	}
	if err == nil {
		m.settled(floorAt{losses, at.Version}, true)
	}
	return f.From, at, err
}

// heedFloor reads the key for the longest window, which the store may lose. If the floor is open, it settles it where
// the member may: one that has what it wants claims nothing, and others wait.
func (m *Member) heedFloor(ctx context.Context) error {
	losses := m.losses.Load()
	f, at, err := m.readFloor(ctx)
	if err != nil {
		return err
	}
	if !f.Open {
		m.settled(floorAt{losses, at.Version}, false)
		return nil
	}
	_, _, err = m.floored(ctx)
	if _, waits := errors.AsType[*FloorError](err); waits {
		return nil
	}
	return err
}

// decide returns whether the member may claim, once it has written what it has to. The living have reserved what lies
// before that instant; zero: they were not asked.
func (m *Member) decide(ctx context.Context, living time.Time) (f floor.Floor, at store.Condition,
	verdict floor.Verdict, err error,
) {
	claim := func(f floor.Floor) (next floor.Floor, write bool) {
		v := m.view() // after the floor was read
		v.Living = living
		next, verdict = f.Claim(v, m.Name())
		return next, verdict == floor.Write
	}
	f, at, err = m.changeFloor(ctx, claim)
	if err == nil && verdict == floor.Write {
		m.log.Info("wrote what others must know before a node ID is claimed", "from", f.From, "longest_window",
			f.Window, "why", f.Why)
		claim(f)
	}
	return f, at, verdict, err
}

// living returns the latest instant that those may have used, or may use, who live and whose clocks agree with this
// one.
func (m *Member) living(ctx context.Context) (last time.Time, err error) {
	pulses, err := m.Pulses(ctx)
	if err != nil {
		return last, err
	}
	for _, p := range pulses {
		if r, ok := m.judge.read(p, p.Every+time.Second); ok && !r.Differs() {
			last = later(last, p.Reserved)
		}
	}
	return last, nil
}

// tellFloor opens or settles the floor of a store that has lost data, however long that takes, and stops the use of
// node IDs that another process has claimed before the floor was there. The others are used up to their horizons, which
// all lie below the floor.
func (m *Member) tellFloor(ctx context.Context, why error) {
	m.testify()
	losses := m.losses.Load() // only this goroutine counts them
	for tries := 0; ; tries++ {
		f, at, err := m.changeFloor(ctx, func(f floor.Floor) (floor.Floor, bool) {
			m.testify() // again: its clock may have been judged meanwhile
			return f.Lost(m.view(), m.Name(), why.Error())
		})
		if err == nil {
			m.told(floorAt{losses, at.Version})
			if f.Open {
				m.log.Warn("the store has lost data; members make no IDs before one whose clock is believed has said "+
					"from when on", "by", f.By)
			} else {
				m.log.Warn("the store has lost data; wrote the time before which members make no IDs", "from",
					f.From, "by", f.By)
			}
			break
		}
		m.log.Error("the store has lost data; can't write the time before which members make no IDs, trying again",
			"err", err)
		if retry.Sleep(ctx, backoff.After(tries)) != nil {
			return
		}
	}
	for _, s := range m.Sequencers() {
		if t := s.status.Load().inUse(); t.fence != nil {
			if taken, err := t.fence.TakenOver(ctx); taken || err != nil {
				s.withdraw(t, errLostData)
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Resume ends the wait after the store has lost data, and returns until when it would have lasted; the zero time
// when there was no wait. It is for an operator who knows that all earlier owners have stopped, and that no clock of
// theirs was ahead of this member's. A *ClockError is returned while most others disagree with this member's clock;
// other errors are of the store, or that of ctx.
func (m *Member) Resume(ctx context.Context) (until time.Time, err error) {
	if _, err := m.opened(); err != nil {
		return until, err
	}
	if err := m.judged().err(); err != nil {
		return until, err
	}
	_, _, err = m.changeFloor(ctx, func(f floor.Floor) (next floor.Floor, write bool) {
		next, ends, write := f.Resume(m.view(), m.Name())
		until = later(until, ends) // also if the write before was in doubt
		return next, write
	})
	return until, err
}
