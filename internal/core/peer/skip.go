package peer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// An entry of the log that this program can't read may be one of a newer version, or spoilt. A member that meets one
// ends its session, so that those who can read it go on without it. It uses what it has reserved, up to its horizons,
// and waits until the entry is passed over, or the log was cut beyond it.
//
// All have to pass over the same entries, those who could read them, too. Which these are is in a key of the store:
//
//   - A member puts its pulse and then reads the key, before it applies any entry; again under each new session.
//   - Who has an entry passed over proposes that in the key, then looks that nobody has a pulse, and then settles it.
//   - A member that reads a proposal takes it back. So what it read is settled, as long as it has its pulse.
//
// One who has applied an entry that was passed over had no pulse when that was settled: it reads the key under its next
// session, and replays the log again.

// skipsKey is the key.
const skipsKey = "skips"

// skips is what it holds.
type skips struct {
	Settled  []skip `json:"settled"`            // rising positions
	Proposed *skip  `json:"proposed,omitempty"` // by one who looks now whether it may be
}

// skip is an entry that is passed over. Its ID tells it from another at the same position, of a log that was lost.
type skip struct {
	Position int64  `json:"position"`
	Entry    string `json:"entry"`
	By       string `json:"by"` // the owner of the member that was asked; for people
}

// has reports whether an entry is passed over.
func (s skips) has(position int64, entry string) bool {
	return slices.ContainsFunc(s.Settled, func(one skip) bool { return one.Position == position && one.Entry == entry })
}

// fits returns an error when a checkpoint has applied an entry that is passed over.
func (s skips) fits(v cluster.Value) error {
	for _, one := range s.Settled {
		if one.Position <= v.Position() && !v.Skipped(one.Position, one.Entry) {
			return &cluster.UnreadableError{Err: fmt.Errorf("it was made by a member that had applied the entry at "+
				"position %d, which is passed over", one.Position)}
		}
	}
	return nil
}

// since reports whether entries up to a position are passed over by s and were not before.
func (s skips) since(before skips, position int64) bool {
	return slices.ContainsFunc(s.Settled, func(one skip) bool {
		return one.Position <= position && !before.has(one.Position, one.Entry)
	})
}

// errSkips is returned when entries are passed over that this member has applied: it has to replay the log again.
var errSkips = errors.New("entries of the log that this member has applied are passed over")

// SkipError is returned by Skip when the entry can't be passed over.
type SkipError struct {
	Position int64
	Why      string
}

func (e *SkipError) Error() string {
	return fmt.Sprintf("the entry at position %d is not passed over: %s", e.Position, e.Why)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*SkipError) Reason() string { return "refused" }

// stopped is why a member can't replay the log further, an ErrNotReady.
type stopped struct {
	at         int64
	entry      string // its ID; empty: it is a checkpoint
	unreadable *cluster.UnreadableError
}

func (s *stopped) Error() string {
	if s.entry == "" {
		return fmt.Sprintf("this member can't read the checkpoint at position %d of the log: %v; start it with a "+
			"newer program", s.at, s.unreadable.Err)
	}
	return fmt.Sprintf("this member can't read the entry at position %d of the log: %v; start it with a newer "+
		"program, or see firn cluster skip", s.at, s.unreadable.Err)
}

func (s *stopped) Unwrap() []error { return []error{ErrNotReady, s.unreadable} }

// stoppedAt returns why it can't replay the log further, and nil if it can.
func (m *Member) stoppedAt() error {
	if s := m.stopped.Load(); s != nil {
		return s
	}
	return nil
}

// readSkips reads the key, and takes a proposal back. It is called while the member has a pulse.
func (m *Member) readSkips(ctx context.Context) (skips, error) {
	for {
		s, at, err := m.getSkips(ctx)
		if err != nil || s.Proposed == nil {
			return s, err
		}
		m.log.Info("an entry was to be passed over, and this member lives, which may have applied it: it is not",
			"position", s.Proposed.Position)
		s.Proposed = nil
		if err := m.putSkips(ctx, s, at); err != nil && !errors.Is(err, store.ErrConflict) {
			return s, err
		}
	}
}

func (m *Member) getSkips(ctx context.Context) (s skips, at store.Condition, err error) {
	kv, err := m.store.Get(ctx, skipsKey)
	at = store.Condition{Key: skipsKey, Version: kv.Version}
	if err != nil || kv.Version == 0 {
		return s, at, err
	}
	if err := json.Unmarshal(kv.Value, &s); err != nil {
		return s, at, fmt.Errorf("%w: the key %q can't be read: %w", store.ErrUnavailable, skipsKey, err)
	}
	return s, at, nil
}

func (m *Member) putSkips(ctx context.Context, s skips, at store.Condition) error {
	value, err := json.Marshal(s)
	if err == nil {
		_, err = m.store.Commit(ctx, store.Txn{If: []store.Condition{at}, Then: []store.Op{store.Put(skipsKey, value)}})
	}
	return err
}

// learnSkips reads which entries are passed over, under a new session. It returns errSkips when the member has applied
// one.
func (p *player) learnSkips(ctx context.Context) error {
	s, err := p.readSkips(ctx)
	if err != nil {
		return err
	}
	before := p.skips
	p.skips = s
	if s.since(before, p.value.Position()) {
		return errSkips
	}
	return nil
}

// Skip has all members pass over the entry at a position of the log, where this member has stopped since it can't read
// it. It is for an operator who knows that no program in use is meant to read it; what the entry said is lost. It does
// nothing when the entry is passed over already.
//
// A *SkipError is returned when the member has not stopped there; while another member lives that has not stopped, as
// it may have applied the entry; and when one that has was there before, and cut the log beyond it. Other errors are of
// the store, or that of ctx. After an error of the store the entry may be passed over or not: repeat it.
func (m *Member) Skip(ctx context.Context, position int64) error {
	if _, err := m.opened(); err != nil {
		return err
	}
	refuse := func(why string) error { return &SkipError{position, why} }
	for tries := 0; ; tries++ {
		err := m.trySkip(ctx, position, refuse)
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrAmbiguous) {
			return err
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return err
		}
	}
}

// trySkip is Skip, but for conflicts and doubt, after which it is called again.
func (m *Member) trySkip(ctx context.Context, position int64, refuse func(string) error) error {
	s, at, err := m.getSkips(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(s.Settled, func(one skip) bool {
		return one.Position == position
	}) && m.stopped.Load() == nil {
		return nil
	}
	stop := m.stopped.Load()
	switch {
	case stop == nil:
		return refuse("this node can read the log; ask one that can't")
	case stop.at != position || stop.entry == "":
		return refuse(fmt.Sprintf("this node has stopped at position %d: %v", stop.at, stop.unreadable.Err))
	case s.has(position, stop.entry):
		return nil // this member is about to go on
	}
	wanted := skip{position, stop.entry, m.Name()}
	if s.Proposed == nil || *s.Proposed != wanted {
		s.Proposed = &wanted
		if err := m.putSkips(ctx, s, at); err != nil {
			return err
		}
		if s, at, err = m.getSkips(ctx); err != nil {
			return err
		}
		if s.Proposed == nil || *s.Proposed != wanted {
			return store.ErrConflict
		}
	}
	why, err := m.whyNotSkip(ctx, position)
	if err != nil {
		return err
	}
	s.Proposed = nil
	if why == "" {
		s.Settled = append(s.Settled, wanted)
		slices.SortFunc(s.Settled, func(a, b skip) int { return cmp.Compare(a.Position, b.Position) })
	}
	if err := m.putSkips(ctx, s, at); err != nil {
		return err
	}
	if why != "" {
		return refuse(why)
	}
	m.log.Warn("an entry of the log is passed over", "position", position, "entry", stop.entry, "was",
		stop.unreadable.Err)
	return nil
}

// whyNotSkip returns why an entry that was proposed can't be passed over; empty: it can.
func (m *Member) whyNotSkip(ctx context.Context, position int64) (string, error) {
	living, err := m.Pulses(ctx)
	if err != nil {
		return "", err
	}
	for id, p := range living {
		return fmt.Sprintf("the member %s (owner %q) lives and has not stopped there, so that it may have applied the "+
			"entry; stop it, or give all members its program", id, p.Owner), nil
	}
	batch, err := m.store.Read(ctx, 0)
	if err == nil && batch.Checkpoint != nil && int64(batch.Checkpoint.Position) >= position {
		return fmt.Sprintf("a member that could read it has cut the log at position %d; members go on from there",
			batch.Checkpoint.Position), nil
	}
	return "", err
}

// againEvery is how often a member that has stopped looks whether it can go on, or up to twice that.
const againEvery = time.Second

// stopAt has the member give no IDs but those reserved, until it can go on replaying the log, or ctx ends. It then
// replays it again from its beginning, under a new session. The error is one of the store that does not pass.
func (p *player) stopAt(ctx context.Context, stop *stopped) error {
	p.log.Error("this member can't read the log any further: it gives IDs up to its horizons, extends none and "+
		"claims none. "+
		"Start it with a newer program. If none can read the entry, stop all members that have read it, and run firn "+
		"cluster skip",
		"position", stop.at, "entry", stop.entry, "err", stop.unreadable.Err)
	p.stopped.Store(stop)
	for _, s := range p.Sequencers() {
		s.tell(grant{}, stop)
	}
	p.watchOnly(nil)
	p.running.Wait()
	if p.incarnation != nil {
		p.closeSession(ctx, p.incarnation)
	}
	p.reading = newReading()
	p.miss()
	p.publish(p.value, p.entry, p.incarnation) // wakes those who wait for more
	for retry.Sleep(ctx, retry.Jitter(2*againEvery)) == nil {
		goes, err := p.goesOn(ctx, stop)
		switch {
		case goes:
			p.log.Info("this member reads the log again", "position", stop.at)
			p.publish(cluster.Value{}, "", p.incarnation)
			p.stopped.Store(nil)
			return nil
		case err != nil && !passes(err):
			p.stopped.Store(nil)
			return err
		case err != nil:
			p.troubles.note(ctx, "can't read at present whether an entry is passed over, trying again", err)
		}
	}
	return nil
}

// goesOn reports whether what the member could not read is passed over, or gone from the log.
func (m *Member) goesOn(ctx context.Context, stop *stopped) (bool, error) {
	s, _, err := m.getSkips(ctx)
	if err != nil || stop.entry != "" && s.has(stop.at, stop.entry) {
		return err == nil, err
	}
	batch, err := m.readOn(ctx)
	if err != nil || batch.Checkpoint == nil {
		return false, err
	}
	at := int64(batch.Checkpoint.Position)
	return at > stop.at || at == stop.at && stop.entry != "", nil
}
