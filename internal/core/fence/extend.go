package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/store"
)

// perTransaction is the most fences in one transaction: each needs two conditions.
const perTransaction = store.MaxOps / 2

// Extend moves the horizon to one window ahead of the clock, and returns nil when the store has confirmed that or
// there is nothing to write. ErrLost is returned when the horizon can never move again, and ErrCopied when, besides,
// the use must end at once. On any other error it has not moved yet, and the caller calls Extend again soon.
func (f *Fence) Extend(ctx context.Context) error { return ExtendAll(ctx, []*Fence{f})[0] }

// ExtendAll commits a Round of these fences, without a step of the clock and without more.
func ExtendAll(ctx context.Context, fences []*Fence) []error {
	_, errs := Round{Fences: fences}.Commit(ctx)
	return errs
}

// Round is what one renewal writes.
type Round struct {
	Fences []*Fence // must share one Store

	// Ahead is how far the clock is about to step ahead, which the caller believes: the horizons then lie a window
	// ahead of where it steps to, and MaxStep does not stop that. Zero: it does not step.
	Ahead time.Duration

	// More is committed along with the last transaction if there is room: one condition and two operations at most.
	More store.Txn
}

// Commit extends each of the fences, and returns what Extend would, in their order. It sends one transaction for every
// 64 fences that have something to write. If one of these is lost, Commit extends the others all the same, in a few
// more transactions. It leaves a fence that another call is writing to that call.
//
// It also returns the version of what More put. Zero means that it was not written, or that nobody can tell: the
// horizons come first, and are written without it if the store refuses both together.
func (r Round) Commit(ctx context.Context) (more store.Version, errs []error) {
	errs = make([]error, len(r.Fences))
	var drafts []draft
	var places []int // of their fences
	send := func(along store.Txn) {
		version, failed := commit(ctx, drafts, along)
		for i, err := range failed {
			errs[places[i]] = err
		}
		more, drafts, places = version, nil, nil
	}
	for i, f := range r.Fences {
		if !f.tryLock() {
			continue
		}
		defer f.unlock()
		if d := f.draft(r.Ahead); d.action.Kind == Commit && f.State().Phase == Held {
			drafts, places = append(drafts, d), append(places, i)
		}
		if len(drafts) == perTransaction {
			send(store.Txn{})
		}
	}
	send(r.More)
	for i, f := range r.Fences {
		if s := f.State(); s.Copied {
			errs[i] = isCopied(f.node)
		} else if s.Phase != Held {
			errs[i] = fmt.Errorf("%w: node ID %d is %v", ErrLost, f.node, s.Phase)
		}
	}
	return more, errs
}

// write commits what is due for one fence, and returns the outcome.
func (f *Fence) write(ctx context.Context) error {
	d := f.draft(0)
	if d.action.Kind != Commit {
		return nil
	}
	_, errs := commit(ctx, []draft{d}, store.Txn{})
	return errs[0]
}

// draft is the action that is due for a fence.
type draft struct {
	fence  *Fence
	made   time.Time
	action Action
	stamp  string // of the write
}

func (f *Fence) draft(ahead time.Duration) draft {
	f.mu.Lock()
	elapsed := time.Since(f.written)
	f.mu.Unlock()
	d := draft{fence: f, made: time.Now()}
	due := Due{Now: f.config.Clock().Add(ahead).UnixMilli(), Elapsed: elapsed.Milliseconds()}
	if d.action = f.stepBy(due, ahead); d.action.Kind == Commit {
		f.mu.Lock()
		d.stamp = f.stamps.Next()
		f.mu.Unlock()
	}
	return d
}

// commit sends the drafts in one transaction, and more along with them, whose version it returns; zero: not written, or
// in doubt. It returns the outcome of each draft. Without drafts it sends nothing.
//
// For one fence, a joint transaction that failed on another fence's condition is a write that was never applied,
// which the protocol allows. One in doubt carries the fence's own two conditions among others: once the fence has
// written again, the store can't apply it any more.
func commit(ctx context.Context, drafts []draft, more store.Txn) (store.Version, []error) {
	if len(drafts) == 0 {
		return 0, nil
	}
	joint := store.Txn{If: slices.Clone(more.If), Then: slices.Clone(more.Then)}
	for _, d := range drafts {
		t := d.fence.transaction(d.action.Write, d.stamp)
		joint.If = append(joint.If, t.If...)
		joint.Then = append(joint.Then, t.Then...)
	}
	version, err := drafts[0].fence.config.Store.Commit(ctx, joint)
	if failedForGood(err) && (len(drafts) > 1 || len(more.Then) > 0) {
		return 0, split(ctx, drafts, more)
	}
	errs := make([]error, len(drafts))
	for i, d := range drafts {
		errs[i] = d.answered(ctx, version, err)
	}
	if err != nil {
		version = 0
	}
	return version, errs
}

// split commits drafts whose joint transaction failed for good, which does not say what is at fault: again without
// more, and then each half by itself.
func split(ctx context.Context, drafts []draft, more store.Txn) []error {
	if len(more.Then) > 0 {
		_, errs := commit(ctx, drafts, store.Txn{})
		return errs
	}
	half := len(drafts) / 2
	_, errs := commit(ctx, drafts[:half], store.Txn{})
	_, rest := commit(ctx, drafts[half:], store.Txn{})
	return append(errs, rest...)
}

// failedForGood reports whether the store refused a transaction because of something in it.
func failedForGood(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrRefused) ||
		errors.Is(err, store.ErrSessionEnded)
}

// answered steps the fence with the answer. After a conflict of its own, the fence reads its keys to see why.
func (d draft) answered(ctx context.Context, version store.Version, err error) error {
	f := d.fence
	switch {
	case err == nil:
		f.step(Applied{Write: d.action.Write, Version: version})
		f.mu.Lock()
		f.written = d.made
		f.stamps.Settle(d.stamp)
		f.mu.Unlock()
		return nil
	case errors.Is(err, store.ErrConflict):
		if f.step(Conflict{}).Kind != Look {
			return nil
		}
		return f.look(ctx)
	case errors.Is(err, store.ErrAmbiguous):
		f.step(Doubt{})
	}
	return err
}
