// Package appends adds entries to a log, each once or not at all, over a service
// that loses answers. All stores share it: it decides when to try again, and when to
// give up because nobody can tell any more.
//
// A try adds the entry under two conditions: no entry of its ID is in the log, and the
// checkpoint is the one that the sender knows. The first is not enough: a try whose
// answer was lost may have added the entry, and others may have trimmed it since; the
// next try would find no entry and add it again. With the second condition, no try takes
// effect after a checkpoint that its sender has not seen, and nothing is trimmed without
// a checkpoint. So the sender learns of the new checkpoint, and compares: what was in the
// log before its first try is not its entry, and if nothing later was trimmed, its entry
// was not.
package appends

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// Seen is the state of the log at one moment.
type Seen struct {
	// Entry is the position of the entry that the call asked for or has added. Zero:
	// there is no such entry, and none was added.
	Entry store.Position

	Checkpoint store.Version  // of the checkpoint; zero: there is none
	Trimmed    store.Position // where the checkpoint is: entries up to there may be gone
	Now        store.Position // later entries have greater positions
}

// Log is the part that each store implements. Errors are those of package store.
type Log interface {
	// Look reads the state of the log, and looks for no entry.
	Look(ctx context.Context) (Seen, error)

	// Try adds an entry if there is none with its ID and the checkpoint has this
	// version. It sends one call.
	Try(ctx context.Context, id string, data []byte, checkpoint store.Version) (Seen, error)
}

// Appender appends for one client. New makes it. It is safe for concurrent use.
type Appender struct {
	log   Log
	pause time.Duration // between tries

	mu     sync.Mutex // guards what follows, and open and users of every entry
	latest moment
	known  bool // latest was seen
	ids    map[string]*entry
	open   []*entry // those in doubt, the oldest first
}

// moment is a state of the log that was seen once: what a first try needs to know.
type moment struct {
	checkpoint store.Version
	now        store.Position
}

// entry is being appended, or is in doubt.
type entry struct {
	id    string
	turn  chan struct{} // held, by filling it, by the one call that tries
	users int           // the calls that hold the turn or wait for it
	open  bool          // some try may have added the entry, or may yet

	// since is from before the first of the tries that may have added the entry; all
	// of them were under its checkpoint. It is guarded by turn.
	since moment
}

// New makes an Appender that pauses between tries.
func New(log Log, pause time.Duration) *Appender {
	return &Appender{log: log, pause: pause, ids: make(map[string]*entry)}
}

// Learn tells the Appender what another call has seen, so that the next append need not
// look.
func (a *Appender) Learn(seen Seen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known || seen.Now >= a.latest.now {
		a.latest, a.known = moment{seen.Checkpoint, seen.Now}, true
	}
}

// Forget drops what Learn told, after the store was rolled back.
func (a *Appender) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.latest, a.known = moment{}, false
}

// Append implements store.Log. It ends with its context.
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
		if wait {
			_ = retry.Sleep(ctx, a.pause)
		}
	}
}

// try makes one try. Without a position and an error another try is due, after a pause if
// wait is set.
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
		return 0, false, fmt.Errorf("append %s: %w: it was written up to %d, and now to %d only", e.id,
			store.ErrRolledBack, under.now, seen.Now)
	}
	a.Learn(seen)
	switch {
	case seen.Entry > 0:
		a.settle(e)
		return seen.Entry, false, nil
	case doubted && seen.Trimmed > under.now:
		return 0, false, inDoubt(ctx, e.id, errors.New("entries of the time since its first try were trimmed"))
	}
	// There is no such entry, none was trimmed, and no earlier try can take effect under
	// the new checkpoint: it begins again.
	a.settle(e)
	return 0, false, nil
}

// moment is the latest known moment, or reads the current one.
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

// release forgets the entry, unless others use it or it is in doubt, and the oldest unused
// entry in doubt when there are more than MaxInDoubt.
func (a *Appender) release(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.users--
	switch {
	case e.users > 0:
	case !e.open:
		delete(a.ids, e.id)
	case len(a.open) > store.MaxInDoubt:
		if i := slices.IndexFunc(a.open, func(old *entry) bool { return old.users == 0 }); i >= 0 {
			delete(a.ids, a.open[i].id)
			a.open = slices.Delete(a.open, i, i+1)
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
	if e.open {
		e.open = false
		a.open = slices.DeleteFunc(a.open, func(other *entry) bool { return other == e })
	}
}

// inDoubt is the error of an append that may or may not have happened. The cause is the
// last try's, which does not say what came of the append: errors.Is must not find it.
func inDoubt(ctx context.Context, id string, cause error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("append %s: %w: %w: %s", id, store.ErrAmbiguous, ctx.Err(), cause.Error())
	}
	return fmt.Errorf("append %s: %w: %s", id, store.ErrAmbiguous, cause.Error())
}
