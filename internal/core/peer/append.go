package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// outcome is the outcome of a command that a caller waits for.
type outcome struct {
	cluster.Outcome
	value  cluster.Value // that it led to
	missed bool          // the outcome is unknown, or whether the command is in the log
}

// catchUp waits until it is a member and has reached what is in the log now.
func (m *Member) catchUp(ctx context.Context) (cluster.Value, error) {
	if _, _, err := m.rejoined(ctx); err != nil {
		return cluster.Value{}, err
	}
	losses := m.losses.Load()
	v, _, changed := m.look()
	began := time.Now()
	var batch store.Batch
	err := m.insist(ctx, "can't read the log at present", func() (err error) {
		batch, err = m.readOn(ctx)
		return err
	})
	switch {
	case errors.Is(err, store.ErrRolledBack):
		return v, fmt.Errorf("%w: %w", ErrNotReady, err) // it is about to join again
	case err != nil:
		return v, err
	}
	var last store.Position
	if batch.Checkpoint != nil {
		last = batch.Checkpoint.Position
	}
	if n := len(batch.Entries); n > 0 {
		last = batch.Entries[n-1].Position
	}
	for v.Position() < int64(last) {
		if m.losses.Load() != losses {
			return v, errJoining // the store has lost that log
		}
		select {
		case <-changed:
		case <-m.done:
			return v, m.ended()
		case <-ctx.Done():
			return v, m.troubles.because(ctx.Err())
		}
		if err := m.stoppedAt(); err != nil {
			return v, err
		}
		v, _, changed = m.look()
	}
	m.lookups.caughtUp(began)
	return v, nil
}

// do appends a command of this member's, once it has joined, and waits until it has replayed it. After a missed
// outcome the caller may repeat the command, which is idempotent.
func (m *Member) do(ctx context.Context, command func(member string) cluster.Command) (outcome, error) {
	_, incarnation, err := m.rejoined(ctx)
	if err != nil {
		return outcome{}, err
	}
	data, err := cluster.Entry{At: m.Wall(), Who: asker(ctx), Command: command(incarnation.id)}.Encode()
	if err != nil {
		return outcome{}, err
	}
	entry, came := fresh.Text(), make(chan outcome, 1)
	m.mu.Lock()
	m.outcomes[entry] = came
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.outcomes, entry)
	}()
	for tries := 0; ; tries++ {
		losses := m.losses.Load()
		_, failed := m.store.Append(ctx, entry, data)
		var again <-chan time.Time
		if failed != nil {
			m.breaks(losses, failed)
			if !passes(failed) {
				return outcome{}, failed
			}
			m.troubles.note(ctx, "can't write to the log at present, trying again", failed)
			again = time.After(backoff.After(tries))
		}
		select {
		case o := <-came: // also of one whose append was in doubt
			return o, nil
		case <-again:
			if errors.Is(failed, store.ErrAmbiguous) {
				return outcome{missed: true}, nil // if the log was cut, the doubt never ends
			}
		case <-m.done:
			select {
			case o := <-came: // of the command that ended it
				return o, nil
			default:
				return outcome{}, m.ended()
			}
		case <-ctx.Done():
			return outcome{}, m.troubles.because(ctx.Err())
		}
	}
}

// insist repeats something that only reads until it succeeds, fails for good, or ctx ends.
func (m *Member) insist(ctx context.Context, what string, try func() error) error {
	for tries := 0; ; tries++ {
		err := try()
		if err == nil || !passes(err) {
			return err
		}
		m.troubles.note(ctx, what+", trying again", err)
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return m.troubles.because(err)
		}
	}
}

// passes reports whether an error of the store may pass.
func passes(err error) bool {
	return errors.Is(err, store.ErrAmbiguous) || errors.Is(err, store.ErrUnavailable)
}
