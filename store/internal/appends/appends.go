// Package appends adds entries to a log, each once or not at all, over a service
// that loses answers. It is the part of it that all stores share: when to try
// again, and when to give up because nobody can tell any more.
//
// A try adds the entry under two conditions: no entry of its ID is in the log, and
// the checkpoint is the one that the sender knows of. The first is not enough.
// A try whose answer was lost may have added the entry, and others may have
// trimmed it since: the next try would find none and add it again. With the
// second, no try takes effect after a checkpoint that its sender had not seen, and
// nothing is trimmed without one. So the sender learns of it, and looks: what was
// in the log before its first try is not its entry, and if nothing else
// was trimmed, its entry was not.
package appends

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/retry"
	"github.com/firn-id/firn/store"
)

// Seen is what was seen of the log at one moment.
type Seen struct {
	// Entry is the position of the entry that was looked for, be it that it was
	// added just now. Zero: there is none, and none was added.
	Entry store.Position

	Checkpoint store.Version  // that of the checkpoint; zero when there is none
	Trimmed    store.Position // where the checkpoint is: entries up to there may be gone
	Now        store.Position // entries that are added later have greater positions
}

// Log is what a store does itself. Errors are those of package store.
type Log interface {
	// Look sees the log, and looks for no entry.
	Look(ctx context.Context) (Seen, error)

	// Try adds an entry if none of its ID is there and the checkpoint has this
	// version. It is sent once.
	Try(ctx context.Context, id string, data []byte, checkpoint store.Version) (Seen, error)
}

// Appender appends for one client. Make it with New. It is safe for concurrent use.
type Appender struct {
	log   Log
	pause time.Duration // between tries

	mu     sync.Mutex // guards what follows, and open and users of every entry
	latest moment
	known  bool // latest was seen, and isn't the zero value
	ids    map[string]*entry
	open   []*entry // those in doubt that may be forgotten, the oldest first
}

// moment is what a first try needs to know: that the log was like this once.
type moment struct {
	checkpoint store.Version
	now        store.Position
}

// entry is one that is being appended, or that was left in doubt.
type entry struct {
	id    string
	turn  chan struct{} // held, by filling it, by the one call that tries
	users int           // the calls that hold the turn or wait for it
	open  bool          // some try may have added the entry, or may yet

	// since is when none of the tries that may have added the entry had been
	// sent; all of them were under its checkpoint. It is guarded by turn.
	since moment
}

// New makes an Appender that waits so long between its tries.
func New(log Log, pause time.Duration) *Appender {
	return &Appender{log: log, pause: pause, ids: make(map[string]*entry)}
}

// Learn tells of what was seen by any other call, so that the next append need
// not look.
func (a *Appender) Learn(seen Seen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known || seen.Now >= a.latest.now {
		a.latest, a.known = moment{seen.Checkpoint, seen.Now}, true
	}
}

// Forget drops what was learned: the store was rolled back.
func (a *Appender) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.latest, a.known = moment{}, false
}

// Append is that of store.Log. It ends with its context.
func (a *Appender) Append(ctx context.Context, id string, data []byte) (store.Position, error) {
	e := a.use(id)
	defer a.release(e)
	select {
	case e.turn <- struct{}{}:
	default:
		select {
		case e.turn <- struct{}{}:
		case <-ctx.Done():
			return 0, inDoubt(ctx, id, errors.New("another call appends it"))
		}
	}
	defer func() { <-e.turn }()
	for {
		position, wait, err := a.try(ctx, e, data)
		if position > 0 || err != nil {
			return position, err
		}
		if !wait {
			continue
		}
		_ = retry.Sleep(ctx, a.pause)
	}
}

// try makes one try. With neither a position nor an error another is due, after
// a pause or at once.
func (a *Appender) try(ctx context.Context, e *entry, data []byte) (position store.Position, wait bool, err error) {
	doubted := a.inDoubt(e)
	under := e.since
	if !doubted {
		if under, err = a.moment(ctx); err != nil {
			return 0, false, err
		}
	}
	if err := ctx.Err(); err != nil {
		if doubted {
			return 0, false, inDoubt(ctx, e.id, err)
		}
		return 0, false, fmt.Errorf("append %s: %w: %w", e.id, store.ErrUnavailable, err)
	}
	seen, err := a.log.Try(ctx, e.id, data, under.checkpoint)
	switch {
	case errors.Is(err, store.ErrAmbiguous):
		if !doubted {
			e.since = under
			a.doubt(e)
		}
		if ctx.Err() != nil {
			return 0, false, err
		}
		return 0, true, nil
	case err != nil && !doubted:
		return 0, false, err
	case errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil:
		return 0, true, nil
	case err != nil:
		return 0, false, inDoubt(ctx, e.id, err)
	}
	if seen.Now < under.now {
		a.Forget()
		a.settle(e)
		return 0, false, fmt.Errorf("append %s: %w: it was written up to %d, and now to %d only", e.id, store.ErrRolledBack, under.now, seen.Now)
	}
	a.Learn(seen)
	switch {
	case seen.Entry > 0:
		a.settle(e)
		return seen.Entry, false, nil
	case doubted && seen.Trimmed > under.now:
		return 0, false, inDoubt(ctx, e.id, errors.New("entries of the time since its first try were trimmed"))
	}
	// There is no such entry, none was trimmed, and no try that is still under
	// way can take effect under the new checkpoint: it begins afresh.
	a.settle(e)
	return 0, false, nil
}

// moment is the latest known, or one that is looked up.
func (a *Appender) moment(ctx context.Context) (moment, error) {
	a.mu.Lock()
	latest, known := a.latest, a.known
	a.mu.Unlock()
	if known {
		return latest, nil
	}
	seen, err := a.log.Look(ctx)
	if err != nil {
		return moment{}, err
	}
	a.Learn(seen)
	return moment{seen.Checkpoint, seen.Now}, nil
}

func (a *Appender) use(id string) *entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.ids[id]
	if e == nil {
		e = &entry{id: id, turn: make(chan struct{}, 1)}
		a.ids[id] = e
	}
	e.users++
	return e
}

// release forgets the entry, unless others use it or it is in doubt. Of those
// in doubt that nobody uses only so many are kept.
func (a *Appender) release(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.users--
	switch {
	case e.users > 0:
	case !e.open:
		delete(a.ids, e.id)
	case len(a.open) > store.MaxInDoubt:
		for i, old := range a.open {
			if old.users == 0 {
				a.open = append(a.open[:i], a.open[i+1:]...)
				delete(a.ids, old.id)
				break
			}
		}
	}
}

func (a *Appender) inDoubt(e *entry) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return e.open
}

func (a *Appender) doubt(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.open = true
	a.open = append(a.open, e)
}

func (a *Appender) settle(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !e.open {
		return
	}
	e.open = false
	for i, other := range a.open {
		if other == e {
			a.open = append(a.open[:i], a.open[i+1:]...)
			break
		}
	}
}

// inDoubt is the error of an append of which nobody can tell. What the last try
// came to doesn't say what came of it, and so can't be found by errors.Is.
func inDoubt(ctx context.Context, id string, cause error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("append %s: %w: %w: %v", id, store.ErrAmbiguous, ctx.Err(), cause) //nolint:errorlint // see above
	}
	return fmt.Errorf("append %s: %w: %v", id, store.ErrAmbiguous, cause) //nolint:errorlint // see above
}
