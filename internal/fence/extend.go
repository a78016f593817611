package fence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/store"
)

// perTransaction is how many fences fit in one transaction: each takes two conditions.
const perTransaction = store.MaxOps / 2

// Extend moves the horizon to the window ahead of the clock, and reports nil when the store has
// confirmed it or there is nothing to write. ErrLost is returned when it can never move again. Every
// other error means that it has not moved yet: call Extend again, soon.
func (f *Fence) Extend(ctx context.Context) error { return ExtendAll(ctx, []*Fence{f})[0] }

// ExtendAll does what Extend does for each of the fences, and returns what Extend would, in their order.
// It sends as few transactions as it can, each for 64 fences that have something to write. When one
// fence is lost, its neighbours are extended all the same, in a few more transactions.
//
// The fences share one Store. One that another call is writing at the moment is left to that.
func ExtendAll(ctx context.Context, fences []*Fence) []error {
	errs := make([]error, len(fences))
	var batch []draft
	for i, f := range fences {
		if f.tryLock() {
			defer f.unlock()
			if d := f.draft(&errs[i]); d.action.Kind == Commit && f.State().Phase == Held {
				batch = append(batch, d)
			}
		}
		if len(batch) == perTransaction || i == len(fences)-1 {
			commit(ctx, batch)
			batch = nil
		}
	}
	for i, f := range fences {
		if phase := f.State().Phase; phase != Held {
			errs[i] = fmt.Errorf("%w: node ID %d is %v", ErrLost, f.node, phase)
		}
	}
	return errs
}

// write does what is due for one fence, and tells the outcome.
func (f *Fence) write(ctx context.Context) (err error) {
	if d := f.draft(&err); d.action.Kind == Commit {
		commit(ctx, []draft{d})
	}
	return err
}

// draft is what is due for a fence.
type draft struct {
	fence  *Fence
	made   time.Time
	action Action
	err    *error // where the outcome is told
}

func (f *Fence) draft(err *error) draft {
	f.mu.Lock()
	elapsed := time.Since(f.written)
	f.mu.Unlock()
	made := time.Now()
	return draft{f, made, f.step(Due{Now: f.config.Clock().UnixMilli(), Elapsed: elapsed.Milliseconds()}), err}
}

// commit sends the drafts in one transaction. If that fails for good, nobody knows whose fault it is, and
// each half is tried by itself.
//
// To one fence, a joint transaction that failed because of another one's condition is a
// transaction that was never applied, which the protocol is used to. And one in doubt is under its
// own two conditions, among others: as soon as the fence has written again, it can't be
// applied any more.
func commit(ctx context.Context, drafts []draft) {
	if len(drafts) == 0 {
		return
	}
	var joint store.Txn
	for _, d := range drafts {
		t := d.fence.transaction(d.action.Write)
		joint.If = append(joint.If, t.If...)
		joint.Then = append(joint.Then, t.Then...)
	}
	version, err := drafts[0].fence.config.Store.Commit(ctx, joint)
	if half := len(drafts) / 2; half > 0 && failedForGood(err) {
		commit(ctx, drafts[:half])
		commit(ctx, drafts[half:])
		return
	}
	for _, d := range drafts {
		*d.err = d.answered(ctx, version, err)
	}
}

// failedForGood tells whether a transaction was not applied because of something in it.
func failedForGood(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrSessionEnded)
}

// answered has the fence take the answer; after a conflict of its own it looks why.
func (d draft) answered(ctx context.Context, version store.Version, err error) error {
	f := d.fence
	switch {
	case err == nil:
		f.step(Applied{Write: d.action.Write, Version: version})
		f.mu.Lock()
		f.written = d.made
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
