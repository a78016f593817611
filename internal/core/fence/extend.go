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
// there is nothing to write. ErrLost is returned when the horizon can never move again, and ErrCopied when, besides, the use must end at once. On any other error it has
// not moved yet, and the caller calls Extend again soon.
func (f *Fence) Extend(ctx context.Context) error { return ExtendAll(ctx, []*Fence{f})[0] }

// ExtendAll extends each of the fences, and returns what Extend would, in their order. It sends one transaction
// for every 64 fences that have something to write. If one of these is lost, ExtendAll extends the others all the
// same, in a few more transactions.
//
// The fences must share one Store. ExtendAll leaves a fence that another call is writing to that call.
func ExtendAll(ctx context.Context, fences []*Fence) []error {
	_, errs := ExtendAlong(ctx, fences, 0, store.Txn{})
	return errs
}

// ExtendAlong is ExtendAll for a clock that is about to step ahead by so much, which the caller believes: the
// horizons then lie a window ahead of where it steps to, and MaxStep does not stop that. Zero: it does not step.
//
// It also commits more along with the last transaction if there is room: one condition and
// two operations at most. It returns the version of what that put. Zero means that it was not written, or that
// nobody can tell: the horizons come first, and are written without it if the store refuses both together.
func ExtendAlong(ctx context.Context, fences []*Fence, ahead time.Duration, more store.Txn) (version store.Version, errs []error) {
	errs = make([]error, len(fences))
	var batch []draft
	for i, f := range fences {
		if f.tryLock() {
			defer f.unlock()
			if d := f.draft(ahead, &errs[i]); d.action.Kind == Commit && f.State().Phase == Held {
				batch = append(batch, d)
			}
		}
		switch {
		case i == len(fences)-1 && len(batch) < perTransaction:
			version = commit(ctx, batch, more)
		case i == len(fences)-1, len(batch) == perTransaction:
			commit(ctx, batch, store.Txn{})
			batch = nil
		}
	}
	for i, f := range fences {
		if s := f.State(); s.Copied {
			errs[i] = isCopied(f.node)
		} else if s.Phase != Held {
			errs[i] = fmt.Errorf("%w: node ID %d is %v", ErrLost, f.node, s.Phase)
		}
	}
	return version, errs
}

// write commits what is due for one fence, and returns the outcome.
func (f *Fence) write(ctx context.Context) (err error) {
	if d := f.draft(0, &err); d.action.Kind == Commit {
		commit(ctx, []draft{d}, store.Txn{})
	}
	return err
}

// draft is the action that is due for a fence.
type draft struct {
	fence  *Fence
	made   time.Time
	action Action
	stamp  string // of the write
	err    *error // where the outcome goes
}

func (f *Fence) draft(ahead time.Duration, err *error) draft {
	f.mu.Lock()
	elapsed := time.Since(f.written)
	f.mu.Unlock()
	d := draft{fence: f, made: time.Now(), err: err}
	due := Due{Now: f.config.Clock().Add(ahead).UnixMilli(), Elapsed: elapsed.Milliseconds()}
	if d.action = f.stepBy(due, ahead); d.action.Kind == Commit {
		f.mu.Lock()
		d.stamp = f.stamps.Next()
		f.mu.Unlock()
	}
	return d
}

// commit sends the drafts in one transaction, and more along with them, whose version it returns; zero: not
// written, or in doubt. If it fails for good, the store does not say what is at fault: commit tries again without
// more, and then each half by itself.
//
// For one fence, a joint transaction that failed on another fence's condition is a write that was never applied,
// which the protocol allows. One in doubt carries the fence's own two conditions among others: once the fence has
// written again, the store can't apply it any more.
func commit(ctx context.Context, drafts []draft, more store.Txn) store.Version {
	if len(drafts) == 0 {
		return 0
	}
	joint := store.Txn{If: slices.Clone(more.If), Then: slices.Clone(more.Then)}
	for _, d := range drafts {
		t := d.fence.transaction(d.action.Write, d.stamp)
		joint.If = append(joint.If, t.If...)
		joint.Then = append(joint.Then, t.Then...)
	}
	version, err := drafts[0].fence.config.Store.Commit(ctx, joint)
	switch half := len(drafts) / 2; {
	case !failedForGood(err):
	case len(more.Then) > 0:
		commit(ctx, drafts, store.Txn{})
		return 0
	case half > 0:
		commit(ctx, drafts[:half], store.Txn{})
		commit(ctx, drafts[half:], store.Txn{})
		return 0
	}
	for _, d := range drafts {
		*d.err = d.answered(ctx, version, err)
	}
	if err != nil {
		return 0
	}
	return version
}

// failedForGood reports whether the store refused a transaction because of something in it.
func failedForGood(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrSessionEnded)
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
