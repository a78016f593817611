package servertest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/calls"
)

// First is the first ID of an Issuer: above 2^53, so that it is seen when one is handled as a float.
const First = firn.ID(1 << 60)

// Issuer is a [calls.Issuer] that gives First, First+1 and so on. The zero value is ready, of the layout firn.Default.
type Issuer struct {
	IDs       firn.Layout                 // of the IDs that it says it gives; zero: firn.Default
	Prefix    string                      // of its definition
	Scattered bool                        // its definition says that its IDs are scattered
	Same      bool                        // every call gets First and those that follow
	Before    func(context.Context) error // called before IDs are given; they are not when it fails. Nil: nothing
	Err       error                       // it is not ready for, until Fail is called

	given atomic.Int64
	after atomic.Int64
	err   atomic.Pointer[error]
}

// Fail has it fail with err and not be ready; nil ends that.
func (f *Issuer) Fail(err error) { f.err.Store(&err) }

// Ready returns the error of the last Fail, and Err before that.
func (f *Issuer) Ready() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return f.Err
}

// Definition returns one with IDs, Prefix and Scattered.
func (f *Issuer) Definition() cluster.Definition {
	d := cluster.Define(firn.Default)
	if f.IDs != (firn.Layout{}) {
		d = cluster.Define(f.IDs)
	}
	d.Prefix, d.Scattered = f.Prefix, f.Scattered
	return d
}

// Given returns how many IDs it has given.
func (f *Issuer) Given() int64 { return f.given.Load() }

// Next gives the next ID.
func (f *Issuer) Next(ctx context.Context) (firn.ID, error) {
	var one [1]firn.ID
	err := f.FillAfter(ctx, 0, 0, one[:])
	return one[0], err
}

// After returns the ID that those of the last call were to exceed; 0: none.
func (f *Issuer) After() firn.ID { return firn.ID(f.after.Load()) }

// FillAfter gives the next IDs, whichever they are to exceed.
func (f *Issuer) FillAfter(ctx context.Context, after firn.ID, _ time.Duration, ids []firn.ID) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	f.after.Store(int64(after))
	next := First + firn.ID(f.given.Add(int64(len(ids)))) - firn.ID(len(ids))
	if f.Same {
		next = First
	}
	for i := range ids {
		ids[i] = next + firn.ID(i)
	}
	return nil
}

func (f *Issuer) wait(ctx context.Context) error {
	if f.Before != nil {
		if err := f.Before(ctx); err != nil {
			return err
		}
	}
	if err := f.Ready(); err != nil {
		return err
	}
	return ctx.Err()
}

var _ calls.Issuer = (*Issuer)(nil)
